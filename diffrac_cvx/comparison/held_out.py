"""Held-out scores: partitions of points into folds, and scores of points by directions fitted without them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.linear_algebra import inverse_or_one
from diffrac_cvx.points.rows import Indices, Mask
from diffrac_cvx.points.table import Table

N_FOLDS = 5
N_PARTITIONS, N_PARTITIONS_WIDE, WIDE = 3, 2, 100  # partitions into folds; fewer with more than 100 columns
MAX_UNTIED = 0.9  # of the rows: with fewer distinct values, those of a column are spread


class Fold(NamedTuple):
    """Rows of a fit, centred and scaled, and which rows are left out."""

    X: Table  # rows of the fit
    fitted: Array  # the same with ties spread
    mean: Array  # (d,), of the rows of the fit
    scale: Array  # (d,)
    mask: Mask  # (n,), of the rows left out


@dataclass(frozen=True, eq=False)
class Folds:
    """Partitions of points into folds; iterating gives each `Fold` of each partition."""

    points: Table
    untied: Array  # (n, d), the points with ties spread
    standardize: bool
    numbers: npt.NDArray[np.intp]  # (number of partitions, n), fold of each point

    def __iter__(self) -> Iterator[Fold]:
        for number in self.numbers:
            for k in range(N_FOLDS):
                mask = number == k
                X, mean, scale = scaled(self.points.subset(~mask), self.standardize)
                yield Fold(X, (self.untied[~mask] - mean) * scale, mean, scale, mask)


class HeldOutScores(NamedTuple):
    """Affine functions of the points: of each the mean over the partitions of those fitted without it."""

    masks: list[Mask]  # of each fold, the points left out
    coef: list[Array]  # of each fold, (d, k)
    mean: list[Array]  # of each fold, (d,), where the scores are 0

    def strongest_columns(self, most: int) -> Indices:
        """Return at most so many columns, increasing: those with the largest sums of squared coefficients."""
        squares = np.sum([np.sum(V**2, axis=1) for V in self.coef], axis=0)
        return np.sort(np.argsort(-squares, kind="stable")[:most])

    def on(self, columns: Indices) -> "HeldOutScores":
        """Return the parts of the scores on some columns, as functions of a table with only these."""
        return HeldOutScores(self.masks, [V[columns] for V in self.coef], [mean[columns] for mean in self.mean])

    def __call__(self, table: Array) -> Array:
        """Return the scores (n, k) of a table (n, d) in place of the points."""
        scores = np.zeros((len(table), self.coef[0].shape[1]))
        for mask, V, mean in zip(self.masks, self.coef, self.mean, strict=True):
            scores[mask] += table[mask] @ V - mean @ V
        return scores


def held_out_scores(folds: Folds, directions: Sequence[Array]) -> HeldOutScores:
    """Return the scores of the points by directions (d, k) of each fold, fitted without them.

    The directions of all folds are rotated to agree with the first.  If one of them is 0, all scores are 0.
    """
    found = HeldOutScores([], [], [])
    is_zero = not all(W.any(axis=0).all() for W in directions)
    for fold, W in zip(folds, directions, strict=True):
        V = fold.scale[:, None] * rotated_to(W, directions[0]) / len(folds.numbers)
        found.masks.append(fold.mask)
        found.coef.append(np.zeros_like(V) if is_zero else V)
        found.mean.append(fold.mean)
    return found


def rotated_to(W: Array, first: Array) -> Array:
    """Return directions (d, k) rotated among themselves to agree with others."""
    U, _, Vt = np.linalg.svd(W.T @ first)
    return np.asarray(W @ (U @ Vt))


def partitions(blocks: Indices, d: int, rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """Return partitions of the points into folds, with blocks of linked points in the same fold."""
    n_partitions, n_blocks = N_PARTITIONS if d <= WIDE else N_PARTITIONS_WIDE, int(blocks.max()) + 1
    return np.stack([rng.permutation(np.arange(n_blocks) % N_FOLDS)[blocks] for _ in range(n_partitions)])


def scaled(points: Table, standardize: bool) -> tuple[Table, Array, Array]:
    """Return the points centred and, if required, scaled to unit variance, with their means and scales."""
    mean = points.mean_of(points.array())
    centered = points.with_array(points.array() - mean)
    scale = np.ones(points.shape[1])
    if standardize:
        deviation = np.sqrt(centered.mean_squares())
        scale = inverse_or_one(np.where(deviation > 1e-12 * np.abs(mean), deviation, 0.0))
    return centered.scaled(scale), mean, scale


def spread_ties(table: Array, rng: np.random.Generator) -> Array:
    """Return the table with repeated values spread evenly over the cells between the midpoints to their neighbours."""
    spread = table.copy()
    for j, column in enumerate(table.T):
        values, index = np.unique(column, return_inverse=True)
        if 1 < len(values) <= MAX_UNTIED * len(column):
            middle = (values[1:] + values[:-1]) / 2.0
            low, high = np.append(2.0 * values[0] - middle[0], middle), np.append(middle, 2.0 * values[-1] - middle[-1])
            spread[:, j] = rng.uniform(low[index], high[index])
    return spread
