"""Large simulated tables, created in chunks: a file of many rows, word counts, and chunks created by workers."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import scipy.sparse

CHUNK = 500_000  # rows created at a time
NOISE = 0.25  # in the column of the labels
FREQUENT = 20.0  # added to the rank of a word in Zipf's law
TOLD_APART, MORE_OFTEN = 200, 6.0  # words that differ between the two topics, and the ratio of their frequencies
PARTNERS, TOGETHER = 200, 0.8  # words accompanied by a rare one, and how often


def rotation(d: int) -> npt.NDArray[np.float32]:
    """Return a rotation, (d, d)."""
    return np.linalg.qr(np.random.default_rng([2017, 14, d]).standard_normal((d, d)))[0].astype(np.float32)


def make_rows(seed: tuple[int, ...], rows: int, d: int) -> npt.NDArray[np.float32]:
    """Return rows (rows, d) of a rotated table, one column of which has two clusters and the others noise."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((rows, d), dtype=np.float32)
    Z[:, 0] = np.where(rng.random(rows) < 0.5, 1.0, -1.0) + NOISE * Z[:, 0]
    return Z @ rotation(d)


def write_rows(path: Path, n: int, d: int) -> None:
    """Write a table (n, d) of single precision to a .npy file, one chunk at a time."""
    file = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n, d))
    for start in range(0, n, CHUNK):
        rows = min(CHUNK, n - start)
        file[start : start + rows] = make_rows((2017, 14, start), rows, d)
    file.flush()


def make_words(n: int, d: int) -> scipy.sparse.csr_array:
    """Return log(1 + counts) of d words in n short texts of two topics, ten to twenty words each.

    Word frequencies follow Zipf's law.  Some words are more frequent in one topic, some are accompanied by a rare one.
    """
    rng = np.random.default_rng([2017, 14, n, d])
    frequency = 1.0 / (np.arange(d) + FREQUENT)
    words = rng.permutation(d)[:TOLD_APART].reshape(2, -1)
    topic, length = rng.random(n) < 0.5, rng.poisson(10, n)
    rows, columns = [], []
    for label, chosen in enumerate(words):
        probability = frequency.copy()
        probability[chosen] *= MORE_OFTEN
        texts = np.flatnonzero(topic == bool(label))
        rows.append(np.repeat(texts, length[texts]))
        columns.append(rng.choice(d, len(rows[-1]), p=probability / probability.sum()))
    row, column = np.concatenate(rows), np.concatenate(columns)
    partner = rng.permutation(np.arange(d // 5, d))[:PARTNERS]
    brings = (column < len(partner)) & (rng.random(len(column)) < TOGETHER)
    row, column = np.append(row, row[brings]), np.append(column, partner[column[brings]])
    counts = scipy.sparse.csr_array((np.ones(len(row)), (row, column)), shape=(n, d))
    counts.sum_duplicates()
    counts.data = np.log1p(counts.data)
    return counts
