"""Gaps in scores: the deepest valley of their density, and a test of a density with one mode."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression

from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.linear_algebra import inverse_or_one

BANDWIDTH = 0.35  # of the Gaussian kernel, times the scale of the scores
FACTORS = (0.7, 1.3)  # times that bandwidth, of the kernels for the p-value
N_CELLS, REACH = 128, 8.0  # cells of the histogram, which reaches so many scales from the median
QUARTILE_RATIO = 1.349  # distance of the quartiles of a normal distribution, in standard deviations
N_DRAWS = 399  # samples from the unimodal density
SMALLEST_PVALUE = 1.0 / (1.0 + N_DRAWS)


class Valley(NamedTuple):
    """Deepest valley of a density estimate."""

    depth: float  # difference of the roots of smoothed counts at the lower peak and at the valley
    at: float


def quantiles_of(scores: Array, p: Array, at: tuple[float, ...]) -> Array:
    """Return quantiles of scores with weights p of sum 1."""
    order = np.argsort(scores)
    return np.interp(at, np.cumsum(p[order]) - p[order] / 2.0, scores[order])


def bandwidth_of(scores: Array, p: Array) -> float:
    """Return 0.35 times the scale of the scores, the smaller of their standard deviation and that of quartiles.

    It is 0 if all scores are equal.
    """
    deviation = float(np.sqrt(p @ (scores - p @ scores) ** 2))
    low, high = quantiles_of(scores, p, (0.25, 0.75))
    return BANDWIDTH * (min(deviation, float(high - low) / QUARTILE_RATIO) or deviation)


class Histogram:
    """Cells in which samples are counted and smoothed, chosen by the scores of a sample."""

    def __init__(self, scores: Array, p: Array) -> None:
        self.bandwidth = bandwidth_of(scores, p)
        reach = REACH / BANDWIDTH * self.bandwidth
        self.low, self.step = quantiles_of(scores, p, (0.5,))[0] - reach, 2.0 * reach / N_CELLS
        self.centres = self.low + (np.arange(N_CELLS) + 0.5) * self.step

    def counts(self, samples: Array, counts: Array | None = None) -> Array:
        """Return the counts of samples (k, n) in the cells, shape (k, N_CELLS); each counts 1 by default."""
        cell = np.floor((samples - self.low) / self.step).astype(np.intp)
        inside = (cell >= 0) & (cell < N_CELLS)
        flat = (np.arange(len(samples))[:, None] * N_CELLS + cell)[inside]
        weights = None if counts is None else np.broadcast_to(counts, samples.shape)[inside]
        return np.bincount(flat, weights, len(samples) * N_CELLS).reshape(len(samples), N_CELLS).astype(np.float64)

    def depths(self, counts: Array, factor: float = 1.0) -> Array:
        """Return the depths of cells with counts (k, N_CELLS), smoothed with a factor times the bandwidth."""
        distance = (self.centres[:, None] - self.centres) / (factor * self.bandwidth)
        return depths(np.sqrt(counts @ np.exp(-0.5 * distance**2)))


def depths(roots: Array) -> Array:
    """Return the depth of each cell below the lower of the highest peaks on its two sides, same shape."""
    left = np.maximum.accumulate(roots, axis=-1)
    right = np.maximum.accumulate(roots[..., ::-1], axis=-1)[..., ::-1]
    return np.asarray(np.minimum(left, right) - roots)


def deepest_valley(scores: Array, p: Array) -> Valley | None:
    """Return the deepest valley of the density of scores with weights p of sum 1; None if they have one mode."""
    if not np.ptp(scores) > 0.0:
        return None
    cells = Histogram(scores, p)
    depth = cells.depths(cells.counts(scores[None], p / np.sum(p**2)))[0]
    k = int(np.argmax(depth))
    return Valley(float(depth[k]), float(cells.centres[k])) if depth[k] > 0.0 else None


def pvalue_of_one_mode(scores: Array, p: Array, rng: np.random.Generator) -> float:
    """Return the p-value of the deepest valley of scores among samples from the nearest unimodal density.

    The samples have the size 1 / sum p_i^2 of equal weights.
    """
    if not np.ptp(scores) > 0.0:
        return 1.0
    edges, quantiles, size = nearest_unimodal(scores, p)
    return pvalue_of_depth(scores, p, np.interp(rng.random((N_DRAWS, size)), quantiles, edges))


def pvalue_of_depth(scores: Array, p: Array, samples: Array, counts: Array | None = None) -> float:
    """Return the p-value of the deepest valley of scores among those of samples (k, m), counted equally or not.

    The valley is the deepest of two bandwidths, whose depths are standardised by their means and deviations in the
    scores and the samples together: many groups need a narrow kernel, a small group a wide one.
    """
    if not np.ptp(scores) > 0.0:
        return 1.0
    cells = Histogram(scores, p)
    table = np.vstack([cells.counts(scores[None], p / np.sum(p**2)), cells.counts(samples, counts)])
    depth = np.stack([cells.depths(table, factor).max(axis=1) for factor in FACTORS])
    deviation = depth.std(axis=1, keepdims=True)
    standardized = (depth - depth.mean(axis=1, keepdims=True)) * inverse_or_one(deviation)
    largest = standardized.max(axis=0)
    return float(np.mean(largest >= largest[0] - 1e-9))


def nearest_unimodal(scores: Array, p: Array) -> tuple[Array, Array, int]:
    """Return edges and cumulative shares of the unimodal histogram nearest to the scores, and the size of samples."""
    order = np.argsort(scores)
    ordered, p = scores[order], p[order]
    below = np.append(0.0, np.cumsum(p))[:-1]  # share of the scores below each
    size = round(float(1.0 / np.sum(p**2)))
    n_cells = max(4, round(size / round(size**0.5)))
    ends = np.unique(np.searchsorted(below, np.linspace(0.0, below[-1], n_cells + 1) * (1.0 - 1e-12)))
    edges = ordered[ends]
    width = np.maximum(np.diff(edges), 1e-9 * (ordered[-1] - ordered[0]))
    quantiles = np.append(0.0, np.cumsum(unimodal_density(width, np.diff(below[ends]) / below[-1]) * width))
    return edges, quantiles / quantiles[-1], size


def unimodal_density(width: Array, share: Array) -> Array:
    """Return the unimodal histogram heights of largest likelihood, for cells of these widths and shares, sum 1."""
    height, best = share / width, share
    largest = -np.inf
    for mode in range(len(height)):
        rising = isotonic_regression(height[: mode + 1], weights=width[: mode + 1]).x
        falling = isotonic_regression(height[mode:], weights=width[mode:], increasing=False).x
        found = np.concatenate([rising[:-1], [max(rising[-1], falling[0])], falling[1:]])
        found = found / (found @ width)
        likelihood = float(share @ np.log(np.maximum(found, 1e-300)))
        if likelihood > largest:
            best, largest = found, likelihood
    return best
