"""Many lassos with one matrix, whose solutions have few entries: what the best multipliers outside a core come from."""

import numpy as np
import numpy.typing as npt
import scipy.sparse

from diffrac_cvx.machine.time_budget import poll
from diffrac_cvx.points.checks import Array

ROUNDS = 6  # of coordinate descent on some entries, and of a look for those that are missing
ADDED = 16  # entries for each lasso in a round, those that are furthest beyond their box
SWEEPS = 10  # of coordinate descent in a round
SETTLED = 1e-3  # change of a sweep, to the largest entry, below which it ends
MISSING = 1e-2  # by how much, to the side of its box, an entry has to be beyond it
ENTRIES = 2**22  # of the blocks of the matrix that are held at once
SIMILAR = 256  # lassos, ordered by how many entries they have, whose blocks are of one size


def lassos(P: Array, T: Array, box: Array) -> Array:
    """Return about the minima of z'Pz/2 - z'T_j + sum_k box_kj |z_k|, P positive definite, a column for each j."""
    w, m = T.shape
    Z, rest, sides = np.zeros((m, w)), np.array(T.T, order="C"), np.ascontiguousarray(box.T)  # T is kept
    left = np.arange(m)
    for _ in range(ROUNDS):
        missing = (np.abs(rest[left]) > (1.0 + MISSING) * sides[left]) & (Z[left] == 0.0)
        left = left[missing.any(axis=1)]
        counts = np.count_nonzero(Z[left], axis=1)
        left = left[np.argsort(counts, kind="stable")]
        counts.sort()
        start = 0
        while start < len(left):
            poll()
            size = min(w, int(counts[min(start + SIMILAR, len(left)) - 1]) + ADDED)
            some = left[start : start + min(SIMILAR, max(1, ENTRIES // size**2))]
            start += len(some)
            places = most_promising_entries(rest[some], Z[some], sides[some], size)
            before, after = descend(P, places, rest[some], Z[some], sides[some])
            ends = np.arange(len(some) + 1) * size
            moved = scipy.sparse.csr_array(((after - before).ravel(), places.ravel(), ends), shape=(len(some), w))
            rest[some] -= moved @ P
            rows = Z[some]
            np.put_along_axis(rows, places, after, axis=1)
            Z[some] = rows
    return np.asarray(Z.T)


def most_promising_entries(rest: Array, Z: Array, sides: Array, size: int) -> npt.NDArray[np.intp]:
    """Return so many places for each lasso: of all entries that are not 0, then of those furthest beyond their box."""
    score = np.abs(rest) - sides
    score[Z != 0.0] = np.inf
    return np.argpartition(-score, size - 1, axis=1)[:, :size]


def descend(P: Array, places: npt.NDArray[np.intp], rest: Array, Z: Array, sides: Array) -> tuple[Array, Array]:
    """Return the entries at these places before and after coordinate descent on them, for all lassos at once."""
    blocks, diagonal = P[places[:, :, None], places[:, None, :]], np.diag(P)[places]
    r, before, b = (np.take_along_axis(rows, places, axis=1) for rows in (rest, Z, sides))
    z = before.copy()
    for _ in range(SWEEPS):
        change = 0.0
        for k in range(places.shape[1]):
            pull = r[:, k] + diagonal[:, k] * z[:, k]
            step = np.sign(pull) * np.maximum(np.abs(pull) - b[:, k], 0.0) / diagonal[:, k] - z[:, k]
            z[:, k] += step
            r -= step[:, None] * blocks[:, k]
            change = max(change, float(np.abs(step).max(initial=0.0)))
        if change <= SETTLED * float(np.abs(z).max(initial=0.0)):
            break
    return before, z
