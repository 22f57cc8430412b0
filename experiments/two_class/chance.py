"""Expected result of the best of many random partitions: the effect of choosing by the labels alone."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import hypergeom

from diffrac_cvx.typing import Array


class Chance(NamedTuple):
    """Smallest error of m random partitions: its mean, and the probability of an error at or below a given one."""

    expected: float
    probability: float


def errors_of_split(n: int, positive: int, size: int) -> tuple[Array, Array]:
    r"""Return the possible errors of a random partition and their probabilities, (k,) arrays each.

    Of the `size` points of one cluster, drawn without replacement, h are in the class with `positive` points, and
    :math:`y^\top \hat y = n - 2 (positive + size) + 4 h`.

    Parameters
    ----------
    n, positive, size : int
        Points, points of one class, points of one cluster.
    """
    h = np.arange(max(0, positive + size - n), min(positive, size) + 1)
    agreement = (n - 2 * (positive + size) + 4 * h) / n
    return 1.0 - agreement**2, np.asarray(hypergeom.pmf(h, n, positive, size))


def best_of_random(n: int, positive: int, sizes: Sequence[int], error: float) -> Chance:
    """Return the exact distribution of the best of independent random partitions, one for each cluster size given.

    Parameters
    ----------
    n, positive : int
        Points, and points of one class.
    sizes : sequence of int
        Points in one cluster of each partition; the reference is the same partitions with random members.
    error : float
        Error whose probability is computed.
    """
    counts = Counter(int(size) for size in sizes)
    known = {size: errors_of_split(n, positive, size) for size in counts}
    levels = np.unique(np.concatenate([np.append(errors, error) for errors, _ in known.values()]))
    none = np.zeros(len(levels))  # log of the probability that no partition has an error at or below the level
    for size, (errors, probability) in known.items():
        order = np.argsort(errors)
        below = np.concatenate([[0.0], np.cumsum(probability[order])])
        reached = below[np.searchsorted(errors[order], levels + 1e-12, side="right")]
        with np.errstate(divide="ignore"):
            none += counts[size] * np.log1p(-np.minimum(reached, 1.0))
    some = np.abs(np.expm1(none))
    at = int(np.searchsorted(levels, error + 1e-12, side="right")) - 1
    return Chance(float(np.diff(some, prepend=0.0) @ levels), float(some[at]))
