"""Gaps in scores: the deepest valley of their density, and two tests of a density with one mode."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import betainc

from diffrac_cvx.points.checks import Array

BANDWIDTH, NARROW = 0.4, 0.25  # of the Gaussian kernel, times the scale of the scores; the latter for windows
N_CELLS, REACH = 128, 8.0  # cells of the histogram, which reaches so many scales from the median
QUARTILE_RATIO = 1.349  # distance of the quartiles of a normal distribution, in standard deviations
N_DRAWS = 399  # samples from the unimodal density
SMALLEST_PVALUE = 1.0 / (1.0 + N_DRAWS)
WINDOW = 0.35  # half-width of the windows, times the distance of the valley to the nearer peak


class Valley(NamedTuple):
    """Deepest valley of a density estimate: a point with a peak on either side."""

    depth: float  # difference of the roots of smoothed counts at the lower peak and at the valley
    at: float
    low_peak: float
    high_peak: float  # the peak of larger count, on either side


def quantiles_of(scores: Array, p: Array, at: tuple[float, ...]) -> Array:
    """Return quantiles of scores with weights p of sum 1."""
    order = np.argsort(scores)
    return np.interp(at, np.cumsum(p[order]) - p[order] / 2.0, scores[order])


def bandwidth_of(scores: Array, p: Array, factor: float = BANDWIDTH) -> float:
    """Return a factor times the scale of the scores, the smaller of their standard deviation and that of quartiles.

    It is 0 if all scores are equal.
    """
    deviation = float(np.sqrt(p @ (scores - p @ scores) ** 2))
    low, high = quantiles_of(scores, p, (0.25, 0.75))
    return factor * (min(deviation, float(high - low) / QUARTILE_RATIO) or deviation)


class Histogram:
    """Cells in which samples are counted and smoothed, chosen by the scores of a sample."""

    def __init__(self, scores: Array, p: Array, factor: float = BANDWIDTH) -> None:
        bandwidth = bandwidth_of(scores, p, factor)
        reach = REACH / factor * bandwidth
        self.low, self.step = quantiles_of(scores, p, (0.5,))[0] - reach, 2.0 * reach / N_CELLS
        at = np.arange(N_CELLS) * self.step
        self.centres = self.low + at + self.step / 2.0
        self.kernel = np.exp(-0.5 * ((at[:, None] - at) / bandwidth) ** 2)

    def root_counts(self, samples: Array, counts: Array | None = None) -> Array:
        """Return the roots of the smoothed counts of samples (k, n) in the cells, shape (k, N_CELLS)."""
        cell = np.floor((samples - self.low) / self.step).astype(np.intp)
        inside = (cell >= 0) & (cell < N_CELLS)
        flat = (np.arange(len(samples))[:, None] * N_CELLS + cell)[inside]
        weights = None if counts is None else np.broadcast_to(counts, samples.shape)[inside]
        smooth = np.bincount(flat, weights, len(samples) * N_CELLS).reshape(len(samples), N_CELLS) @ self.kernel
        return np.asarray(np.sqrt(smooth))


def peaks_beside(roots: Array) -> tuple[Array, Array]:
    """Return the largest values to the left and to the right of each cell, itself included, along the last axis."""
    left = np.maximum.accumulate(roots, axis=-1)
    return left, np.maximum.accumulate(roots[..., ::-1], axis=-1)[..., ::-1]


def depths(roots: Array) -> Array:
    """Return the depth of each cell below the lower of the highest peaks on its two sides, same shape."""
    return np.asarray(np.minimum(*peaks_beside(roots)) - roots)


def deepest_valley(scores: Array, p: Array, factor: float = BANDWIDTH) -> Valley | None:
    """Return the deepest valley of the density of scores with weights p of sum 1; None if they have one mode.

    The factor is that of the bandwidth, see `bandwidth_of`.
    """
    if not np.ptp(scores) > 0.0:
        return None
    cells = Histogram(scores, p, factor)
    roots = cells.root_counts(scores[None], p / np.sum(p**2))[0]
    depth = depths(roots)
    k = int(np.argmax(depth))
    if depth[k] <= 0.0:
        return None
    peaks = int(np.argmax(roots[: k + 1])), k + int(np.argmax(roots[k:]))
    low, high = sorted(peaks, key=lambda peak: roots[peak])
    return Valley(float(depth[k]), *(float(cells.centres[i]) for i in (k, low, high)))


def pvalue_of_one_mode(scores: Array, p: Array, rng: np.random.Generator) -> float:
    """Return the p-value of the depth of the valley of scores among samples from the nearest unimodal density.

    The samples have the size 1 / sum p_i^2 of equal weights.
    """
    valley = deepest_valley(scores, p)
    if valley is None:
        return 1.0
    edges, quantiles, size = nearest_unimodal(scores, p)
    samples = np.interp(rng.random((N_DRAWS, size)), quantiles, edges)
    drawn = depths(Histogram(scores, p).root_counts(samples)).max(axis=1)
    return float(1 + np.sum(drawn >= valley.depth - 1e-12)) / (1 + N_DRAWS)


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


# Windows


def window_shares(valley: Valley, scores: Array, p: Array) -> Array:
    """Return the weights of the scores in three windows of equal width, at the valley, the low and the high peak.

    The windows are disjoint.  If the density of the scores has one mode, that at the valley has at least the mass of
    one of the others.
    """
    half = WINDOW * min(abs(valley.low_peak - valley.at), abs(valley.high_peak - valley.at))
    centres = np.array([valley.at, valley.low_peak, valley.high_peak])
    return np.asarray((np.abs(scores[:, None] - centres) <= half).T @ p)


def pvalue_of_windows(counts: Array) -> float:
    """Return the p-value of counts at a valley and two peaks: the larger of two binomial tails with probability 1/2.

    The counts may be means over partitions, which vary less.
    """
    at_valley, at_peaks = float(counts[0]), counts[1:]
    tails = [betainc(peak, at_valley + 1.0, 0.5) if peak > 0.0 else 1.0 for peak in at_peaks]
    return float(max(tails))
