"""Lassos for the multipliers of the l1 norm between a working set and the coordinates outside it.

Among the multipliers C between the working set and a coordinate outside it, a lasso with the matrix P gives the t C in
the box t c_j c_k with the least e'P^-1 e, e = t C - T: e = -Pz at the minimum of z'Pz/2 - z'T + t c_j sum_k c_k |z_k|.
"""

import numpy as np
import numpy.typing as npt
import scipy.sparse

from diffrac_cvx.machine.deadlines import check_deadline
from diffrac_cvx.machine.work import CALL_OPERATIONS, count_work
from diffrac_cvx.points.checks import Array

LASSO_ROUNDS = 6  # rounds of coordinate descent on some entries, each followed by a check for missing ones
ENTRIES_PER_ROUND = 16  # new entries of each lasso in a round, those with the largest violation
LASSO_SWEEPS = 10  # sweeps of coordinate descent in a round
SWEEP_TOLERANCE = 3e-3  # change in a sweep, relative to the largest entry, at which the sweeps stop
VIOLATION_TOLERANCE = 1e-2  # violation, relative to the bound, at which an entry is added
MAX_GRAM_ENTRIES = 2**22  # of the blocks of P in memory
LASSO_BATCH = 128  # lassos of similar numbers of entries, solved with blocks of one size


def lasso_residuals(P: Array, T: Array, half_width: Array) -> npt.NDArray[np.float32]:
    """Return approximately T - PZ at the minimisers of z'Pz/2 - z'T_j + sum_k half_width_kj |z_k|, P positive definite.

    Single precision suffices, because the result only selects a multiplier.
    """
    P, (w, m) = P.astype(np.float32), T.shape
    residual, half_widths = (np.array(matrix.T, dtype=np.float32, order="C") for matrix in (T, half_width))
    Z, unsolved = np.zeros((m, w), dtype=np.float32), np.arange(m)
    for _ in range(LASSO_ROUNDS):
        beyond = np.abs(residual[unsolved]) > (1.0 + VIOLATION_TOLERANCE) * half_widths[unsolved]
        unsolved = unsolved[(beyond & (Z[unsolved] == 0.0)).any(axis=1)]
        counts = np.count_nonzero(Z[unsolved], axis=1)
        unsolved = unsolved[np.argsort(counts, kind="stable")]
        counts.sort()
        start = 0
        while start < len(unsolved):
            check_deadline()
            size = min(w, int(counts[min(start + LASSO_BATCH, len(unsolved)) - 1]) + ENTRIES_PER_ROUND)
            batch = unsolved[start : start + min(LASSO_BATCH, max(1, MAX_GRAM_ENTRIES // size**2))]
            start += len(batch)
            violation = np.where(Z[batch] == 0.0, np.abs(residual[batch]) - half_widths[batch], np.inf)
            positions = np.argpartition(-violation, size - 1, axis=1)[:, :size]  # of the largest, and of all nonzero Z
            before, after = coordinate_descent(P, positions, residual[batch], Z[batch], half_widths[batch])
            ends = np.arange(len(batch) + 1) * size
            change = scipy.sparse.csr_array(((after - before).ravel(), positions.ravel(), ends), shape=(len(batch), w))
            change.eliminate_zeros()
            residual[batch] -= change @ P
            rows = Z[batch]
            np.put_along_axis(rows, positions, after, axis=1)
            Z[batch] = rows
    return residual.T


def coordinate_descent(
    P: Array, positions: npt.NDArray[np.intp], residual: Array, Z: Array, half_widths: Array
) -> tuple[Array, Array]:
    """Return the entries at these positions before and after coordinate descent on them, for all lassos at once."""
    blocks, diagonal = P[positions[:, :, None], positions[:, None, :]], np.diag(P)[positions]
    r, before, b = (np.take_along_axis(rows, positions, axis=1) for rows in (residual, Z, half_widths))
    z = before.copy()
    for _ in range(LASSO_SWEEPS):
        change = 0.0
        count_work(positions.shape[1] * (CALL_OPERATIONS + 20.0 * positions.size))
        for k in range(positions.shape[1]):
            gradient = r[:, k] + diagonal[:, k] * z[:, k]
            step = np.sign(gradient) * np.maximum(np.abs(gradient) - b[:, k], 0.0) / diagonal[:, k] - z[:, k]
            z[:, k] += step
            r -= step[:, None] * blocks[:, k]
            change = max(change, float(np.abs(step).max(initial=0.0)))
        if change <= SWEEP_TOLERANCE * float(np.abs(z).max(initial=0.0)):
            break
    return before, z
