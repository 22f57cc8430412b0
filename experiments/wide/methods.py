"""Methods: this relaxation with fixed weights and with its own choice, and the alternatives for wide tables."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

import diffrac_cvx as dc
from diffrac_cvx.baselines import gaussian_mixture, kmeans_standardized
from diffrac_cvx.machine.work import work_done
from diffrac_cvx.points.linear_algebra import standardize_columns
from diffrac_cvx.problem.penalty import suggested_lam
from diffrac_cvx.rounding.two_clusters import kmeans_1d
from diffrac_cvx.typing import Array
from experiments.rivals.neighbors import spectral
from experiments.rivals.principal import ifpca, leading_scores, sparse_component
from experiments.rivals.selection import Selection, grid_of_bounds
from experiments.rivals.two_valued import two_valued_component
from experiments.rivals.weighted_columns import sparse_kmeans

LAMS, RIDGE = (0.2, 0.1, 0.05), 0.3
GOAL = 1e-2  # certified relative gap at which a solve ends
OPERATIONS = 1e11  # per solve, some seconds; counted, so that the results do not depend on the clock
CRITERIA = {"kurtosis": "kurtosis", "dip": "dip", "pursuit": "pursuit", "convex component": "diffrac"}
KEPT = (5, 10, 20, 50, 100, 200, 500)  # numbers of columns, to tune IF-PCA
COMPONENTS = (5, 10, 20, 40)  # to tune the search for a bimodal component
PERMUTED, QUANTILE = 20, 0.95  # tables with permuted columns, and the quantile of their singular values
ALIVE = 1e-3  # relative to the largest diagonal entry of V: from here on a column counts as selected


class Found(NamedTuple):
    """Result of a method."""

    labels: Array  # two values
    columns: npt.NDArray[np.intp] | None = None  # selected, most important first; None if the method selects none
    gap: float = np.nan  # certified relative gap; NaN without a certificate


class Method(NamedTuple):
    """A method with its own choice of parameters, and with every setting it can be tuned over."""

    own: Callable[[Array, np.random.Generator], Found]
    tuned: Callable[[Array, np.random.Generator], Iterable[Found]] = lambda X, rng: ()  # the labels choose the best


def relax(X: Array, _: np.random.Generator, *, lam: float | None = None) -> Found:
    """Cluster by the relaxation, by default with the l1 weight suggested for the size of the table.

    The selected columns are those whose V_jj is not small compared with the largest.
    """
    lam = suggested_lam(len(X), X.shape[1], RIDGE) if lam is None else lam
    end = work_done() + OPERATIONS

    def is_done(progress: dc.Progress) -> bool:
        return progress.upper - progress.lower <= GOAL * progress.upper or work_done() > end

    result = dc.low_rank(X, lam=lam, ridge=RIDGE, tol=GOAL * lam, callback=is_done)
    used = result.features(rtol=ALIVE)
    return Found(dc.rounding.kmeans_centered(result.factor), used, result.gap / result.upper)


# Alternatives that estimate common factors of the columns: they remove them first, or search among them


def count_factors(X: Array, rng: np.random.Generator) -> int:
    """Return the number of leading singular values above those of tables with permuted columns.

    Source: Horn, "A rationale and test for the number of factors in factor analysis", Psychometrika 1965; quantiles
    instead of means, as usual today.
    """
    values = np.linalg.svd(X, compute_uv=False)
    permuted = [np.linalg.svd(rng.permuted(X, axis=0), compute_uv=False) for _ in range(PERMUTED)]
    above = values > np.quantile(permuted, QUANTILE, axis=0)
    return int(np.argmin(above)) if not above.all() else len(values)


def without_factors(X: Array, *, bound: float | None = None, rng: np.random.Generator) -> Selection:
    """Return the clusters of a sparse principal component after the common factors are projected out.

    The columns are scaled to variance 1 before and after; the bound is that of `sparse_component`.
    """
    X = standardize_columns(X)
    factors = leading_scores(X, count_factors(X, rng))
    return sparse_component(X - factors @ (factors.T @ X), bound=bound, rng=rng)


def best_component(X: Array, *, components: int = 20, rng: np.random.Generator) -> Array:
    """Return exact 2-means of the principal component that it explains best, by the share of its variance."""

    def explained(scores: Array) -> float:
        labels = kmeans_1d(scores)
        means = [scores[labels == sign].mean() for sign in (-1.0, 1.0)]
        return float(np.mean((labels > 0) * means[1] ** 2 + (labels < 0) * means[0] ** 2) / np.mean(scores**2))

    return kmeans_1d(max(leading_scores(standardize_columns(X), components).T, key=explained))


# Alternatives, each with its own choice of parameters and its tuning grid


def by_labels(method: Callable[..., Array]) -> Method:
    """Return the method for a function that returns only labels."""
    return Method(lambda X, rng: Found(method(X, rng=rng)))


def by_selection(select: Callable[..., Selection], setting: str, values: Callable[[int], Iterable[float]]) -> Method:
    """Return the method for a function that selects columns by a setting; `values` gives the settings for d columns."""
    return Method(
        lambda X, rng: Found(*select(X, rng=rng)),
        lambda X, rng: (Found(*select(X, **{setting: value}, rng=rng)) for value in values(X.shape[1])),
    )


def by_count(search: Callable[..., Array]) -> Method:
    """Return the search for a bimodal direction among a number of principal components."""
    return by_labels(search)._replace(
        tuned=lambda X, rng: (Found(search(X, components=k, rng=rng)) for k in COMPONENTS if k < len(X))
    )


OWN = "relaxation"
FIXED = {f"lambda {lam:g}": lam for lam in LAMS}
RELAXATIONS = {OWN: Method(relax), **{name: Method(partial(relax, lam=lam)) for name, lam in FIXED.items()}}
SELECTING = {
    "sparse k-means": by_selection(sparse_kmeans, "bound", grid_of_bounds),
    "IF-PCA": by_selection(ifpca, "features", lambda d: (count for count in KEPT if count <= d)),
    "sparse component": by_selection(sparse_component, "bound", grid_of_bounds),
    "without factors": by_selection(without_factors, "bound", grid_of_bounds),
}
RIVALS = {
    "k-means": by_labels(kmeans_standardized),
    "mixture": by_labels(gaussian_mixture),
    "spectral": by_labels(spectral),
    "first component": by_labels(partial(two_valued_component, components=1)),
    **SELECTING,
    **{name: by_count(partial(two_valued_component, criterion=way)) for name, way in CRITERIA.items()},
    "best component": by_count(best_component),
}
METHODS: dict[str, Method] = {**RELAXATIONS, **RIVALS}
