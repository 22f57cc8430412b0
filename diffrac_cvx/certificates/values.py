"""The objective of (15) at a V in the user's units, rounding included: what is returned is never below it."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from diffrac_cvx.machine import time_budget
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.factors import Factor, dense, is_sparse, scale_rows, squared_norm, sum_of_absolute_products
from diffrac_cvx.points.linear_algebra import inverse_or_one, power_of_two, row_blocks
from diffrac_cvx.points.sparse import Points, SparseColumns, row_sizes
from diffrac_cvx.points.streamed import BLOCK, Poll, StreamedRows
from diffrac_cvx.problem.floating_point import UNIT, round_up, sum_error
from diffrac_cvx.problem.penalty import Penalty, weights_of


def proved_value(X: Points, nu: float, penalty: Penalty, G: Factor, shares: Array | None = None) -> float:
    """Return a number that the objective of (15) at V = GG' does not exceed, for the exactly centred data.

    A product with a row is off by the rounding of a sum of as many terms as there are columns, and the centring of X by
    that of the means: both are bounded by the norm of the row, columns in units that make them comparable, times that
    of G.  So the number is close to the objective unless G has large entries that cancel.

    Parameters
    ----------
    X : (n, d) array, StreamedRows or SparseColumns
        Data, centred in double precision.
    nu : float
        Weight of the imbalance, in [0, 1].
    penalty : Penalty
        Weights a and c.
    G : (d, r) array or sparse array, or (d + 1, r) with the offset last
        Factor of V.
    shares : (n,) array, optional
        Shares of the points in all means, off by a few units in their last place; equal ones if None.
    """
    n, d = X.shape
    a, c = weights_of(penalty, d)
    offset = dense(G[d:]).ravel() if G.shape[0] > d else np.zeros(G.shape[1])
    features = G[:d]
    size = column_sizes(X, shares)
    units = power_of_two(inverse_or_one(size))
    scaled = scale_rows(features, 1.0 / units)
    columns = scaled.multiply(scaled).sum(axis=1) if is_sparse(scaled) else np.sum(scaled**2, axis=1)
    norm = float(np.sqrt(np.sum(columns)) + np.linalg.norm(offset))
    factor = RoundedFactor(features, offset, units, norm, n)
    if isinstance(X, StreamedRows):
        gain, energy = X.total(bounds_of_part, factor, poll=time_budget.poll)
        roundings = X.summands + 16
    else:
        gain, energy = bounds_of_blocks(row_blocks(X), factor, None if shares is None else n * shares)
        roundings = min(n, BLOCK) + n // BLOCK + 16
    cost = energy / n + squared_norm(scale_rows(features, a))
    if nu < 1.0:
        cost += nu / (1.0 - nu) * float(offset @ offset)
    if c.any():
        cost += sum_of_absolute_products(scale_rows(features, c))
    lost = sum_error(roundings) * 2.0 * gain / n + sum_error(roundings + d + G.shape[1]) * cost + 8.0 * UNIT
    return float(1.0 - 2.0 * gain / n + cost + round_up(lost))


class RoundedFactor(NamedTuple):
    """A factor of V in the user's units, and what the rounding of its products with rows depends on.

    Attributes
    ----------
    features : (d, r) array or sparse array
        Its rows of the features.
    offset : (r,) array
        That of the offset.
    units : (d,) array
        Of the columns, that make them comparable.
    norm : float
        Norm of the factor in these units.
    n : int
        Number of points.
    """

    features: Factor
    offset: Array
    units: Array
    norm: float
    n: int


def bounds_of_part(part: StreamedRows, poll: Poll, factor: RoundedFactor) -> tuple[float, float]:
    """Return `bounds_of_blocks` of a part of the rows."""

    def blocks() -> Iterator[Array]:
        for block in part.blocks():
            poll()
            yield block

    return bounds_of_blocks(blocks(), factor)


def bounds_of_blocks(
    blocks: Iterator[Array], factor: RoundedFactor, counts: Array | None = None
) -> tuple[float, float]:
    """Return what the sum of sqrt(q) is not below, and what the sum of q is not above, over all rows of some blocks.

    Rows may have counts, which weigh them.
    """
    features, offset, units, norm, n = factor
    d, r = features.shape
    gain = energy = 0.0
    done = 0
    for block in blocks:
        if isinstance(block, SparseColumns) and is_sparse(features):
            lower, upper = bounds_of_sparse_rows(block, factor)
            gain += float(np.sum(np.sqrt(lower)))
            energy += float(np.sum(upper))
            continue
        XG = np.asarray(block @ features) + offset
        length = np.sqrt(np.sum(XG**2, axis=1))
        norms = row_sizes(block, units) + 1.0
        off = sum_error(d + r + 8) * norms * norm + 4.0 * sum_error(n) * norm * d**0.5
        roots = np.maximum(length * (1.0 - sum_error(r + 8)) - off, 0.0)
        energies = (length * (1.0 + sum_error(r + 8)) + off) ** 2
        if counts is not None:
            roots, energies = (part * counts[done : done + len(block)] for part in (roots, energies))
        done += len(block)
        gain += float(np.sum(roots))
        energy += float(np.sum(energies))
    return gain, energy


def bounds_of_sparse_rows(block: SparseColumns, factor: RoundedFactor) -> tuple[Array, Array]:
    """Return what q_i is not below and not above, for the rows of a block, without a dense product.

    The rows of X G are a sparse matrix and one row r: q_i is the sum of (s + r)^2 - r^2 over the entries of the former,
    plus |r|^2, and is off by rounding in proportion to |s + r|^2 + 2 |r|^2, beside what the products themselves are.
    """
    features, offset, units, norm, n = factor
    d, r = features.shape
    XG = SparseColumns(block.S @ features, block.r @ features + offset)
    q = np.maximum(XG.power(2) @ np.ones(r), 0.0)
    row = float(XG.r @ XG.r)
    products = sum_error(d + r + 8) * (row_sizes(block, units) + 1.0) * norm + 4.0 * sum_error(n) * norm * d**0.5
    off = sum_error(2 * r + 16) * (3.0 * q + 4.0 * row) + 2.0 * np.sqrt(q) * products + products**2
    return np.maximum(q - off, 0.0), q + off


def column_sizes(X: Points, shares: Array | None = None) -> Array:
    """Return the root mean squares of the columns, weighted where points have shares, shape (d,)."""
    if shares is not None:
        return np.asarray(np.sqrt(shares @ X**2))
    if isinstance(X, StreamedRows):
        return np.sqrt(np.diag(X.second_moment()))
    if isinstance(X, SparseColumns):
        return np.sqrt(X.mean_squares())
    total = np.zeros(X.shape[1])
    for block in row_blocks(X):
        total += np.sum(block**2, axis=0)
    return np.sqrt(total / len(X))


def proved_labels_value(
    X: Points, y: Array, v: Array, nu: float, a: Array, c: Array, shares: Array | None = None
) -> float:
    """Return a number that Eq. (9) at labels and a direction does not exceed, for the exactly centred data.

    Parameters
    ----------
    X : (n, d) array
        Data, centred in double precision.
    y, v : (n,) and (d,) array
        Labels in {-1, +1}, and the direction.
    nu : float
        Weight of the imbalance, in [0, 1].
    a, c : (d,) array
        Ridge and weights of the l1 part.
    shares : (n,) array, optional
        Shares of the points in all means, off by a few units in their last place; equal ones if None.
    """
    n, d = X.shape
    units = power_of_two(inverse_or_one(column_sizes(X, shares)))
    # A sum of +1 and -1 is exact; one of shares is rounded once, and they are off by a few units.
    mean, rounded = (float(y.mean()), 4.0) if shares is None else (math.fsum(y * shares), 16.0)
    size = float(np.linalg.norm(v / units))
    if isinstance(X, StreamedRows):
        (total,) = X.total(misfits_of_part, v, mean, units, size, n, aligned=(y,), poll=time_budget.poll)
        misfit = float(total) / n
    else:
        found = misfits(X, y - mean, v, units, size, n, rounded)
        misfit = float(np.mean(found) if shares is None else shares @ found)
    penalty = float(np.sum((a * v) ** 2) + np.sum(c * np.abs(v)) ** 2)
    total = misfit + nu * mean**2 + penalty
    return float(round_up(total if shares is None else total + 32.0 * UNIT, n + 2 * d + 32))


def misfits(X: Points, target: Array, v: Array, units: Array, size: float, n: int, rounded: float = 4.0) -> Array:
    """Return what (target_i - x_i'v)^2 is not above, shape (n,); size is the norm of v over the units."""
    d = X.shape[1]
    off = (sum_error(d + 16) * row_sizes(X, units) + 4.0 * sum_error(n) * d**0.5) * size
    residual = np.abs(target - X @ v)
    return np.asarray((residual + off + rounded * UNIT * (1.0 + residual)) ** 2)


def misfits_of_part(
    part: StreamedRows, poll: Poll, v: Array, mean: float, units: Array, size: float, n: int, y: Array
) -> tuple[float]:
    """Return the sum of `misfits` over a part of the rows."""
    total, start = 0.0, 0
    for block in part.blocks():
        poll()
        total += float(np.sum(misfits(block, y[start : start + len(block)] - mean, v, units, size, n)))
        start += len(block)
    return (total,)


def proved_clusters_value(
    X: Points, Z: Array, W: Array, nu: float, a: Array, c: Array, shares: Array | None = None
) -> float:
    """Return a number that the cost of K clusters, as in `certify_clusters`, does not exceed.

    With c_k the objective of Eq. (9) at cluster k against the others, labels 2 z_k - 1 and direction 2 w_k, the cost is
    (K sum_k c_k - nu (K - 2)^2) / (4 (K - 1)).

    Parameters
    ----------
    X : (n, d) array
        Data, centred in double precision.
    Z : (n, K) array
        Indicators of the clusters, K at least 2.
    W : (K, d) array
        Their directions.
    nu, a, c, shares
        As for `proved_labels_value`.
    """
    K = Z.shape[1]
    one_by_one = [proved_labels_value(X, 2.0 * z - 1.0, 2.0 * w, nu, a, c, shares) for z, w in zip(Z.T, W, strict=True)]
    total = round_up(K * float(np.sum(one_by_one)), K + 4)
    allowance = 8.0 * UNIT * (total + K**2)
    return float((total - nu * (K - 2) ** 2 + allowance) / (4.0 * (K - 1)) * (1.0 + 4.0 * UNIT))
