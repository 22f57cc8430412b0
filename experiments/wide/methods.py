"""The methods: this relaxation at fixed weights and at its own choice, and what is used on wide tables instead."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

import diffrac_cvx as dc
from diffrac_cvx import baselines
from diffrac_cvx.baselines.principal import select_ifpca, select_sparse_component
from diffrac_cvx.baselines.selection import Selection, grid_of_bounds
from diffrac_cvx.baselines.weighted_columns import select_sparse_kmeans
from diffrac_cvx.problem.penalty import suggested_lam
from diffrac_cvx.typing import Array

LAMS, RIDGE = (0.2, 0.1, 0.05), 0.3
GOAL = 1e-2  # proved relative gap at which a solve ends
SECONDS = 2.0  # for one solve
CRITERIA = {"kurtosis": "kurtosis", "dip": "dip", "pursuit": "pursuit", "convex component": "diffrac"}
KEPT = (5, 10, 20, 50, 100, 200, 500)  # columns, to tune IF-PCA
COMPONENTS = (5, 10, 20, 40)  # to tune the search for one in two values
ALIVE = 1e-3  # of the largest entry on V's diagonal, from which on a column counts as chosen


class Found(NamedTuple):
    """What a method found.

    Attributes
    ----------
    labels : (n,) array
        In two values.
    columns : (k,) array of int, or None
        Columns chosen, the most important one first; None of a method that chooses none.
    gap : float
        Proved relative gap; NaN of a method that proves nothing.
    """

    labels: Array
    columns: npt.NDArray[np.intp] | None = None
    gap: float = np.nan


@dataclass(frozen=True)
class Method:
    """A method.

    Attributes
    ----------
    own : callable
        From the table and a generator to what it finds at its own choice of what has to be chosen.
    tuned : callable, optional
        To what it finds at every setting that is tried; the labels say which one is the best.
    """

    own: Callable[[Array, np.random.Generator], Found]
    tuned: Callable[[Array, np.random.Generator], Iterable[Found]] | None = None


def solve(X: Array, lam: float, seconds: float = SECONDS) -> dc.Result:
    """Solve the relaxation until the relative gap is `GOAL`."""
    return dc.low_rank(X, lam=lam, ridge=RIDGE, tol=GOAL * lam, time_limit=seconds, callback=is_narrow)


def is_narrow(progress: dc.Progress) -> bool:
    """Whether a solve is done."""
    return progress.upper - progress.lower <= GOAL * progress.upper


def relax(X: Array, lam: float) -> Found:
    """Cluster by the relaxation; the columns chosen are those of a V_jj that is not small beside the largest."""
    result = solve(X, lam)
    used = result.features(rtol=ALIVE).used
    return Found(dc.rounding.kmeans_centered(result.factor), used, result.gap / result.upper)


def own_choice(X: Array) -> Found:
    """Cluster by the relaxation at the l1 weight that its size alone suggests: ridge times sqrt(log d / n)."""
    n, d = X.shape
    return relax(X, suggested_lam(n, d, RIDGE))


def by_relaxation(X: Array, _: np.random.Generator, *, lam: float | None = None) -> Found:
    """Cluster by the relaxation, at a fixed lambda or at its own choice."""
    return own_choice(X) if lam is None else relax(X, lam)


# What is used instead, each at its own choice and over what it is tuned by


def by_labels(X: Array, rng: np.random.Generator, *, method: Callable[..., Array]) -> Found:
    """Cluster by a method that returns labels alone."""
    return Found(method(X, rng=rng))


def by_first_component(X: Array, _: np.random.Generator) -> Found:
    """Cluster by 2-means of the first principal component."""
    return Found(baselines.first_component(X))


def by_selection(X: Array, rng: np.random.Generator, *, method: Callable[..., Selection]) -> Found:
    """Cluster by a method that chooses columns."""
    return Found(*method(X, rng=rng))


def over_bounds(X: Array, rng: np.random.Generator, *, method: Callable[..., Selection]) -> Iterator[Found]:
    """Yield what is found at each bound on the l1 norm of the weights, from a single column to nearly all."""
    return (Found(*method(X, bound=bound, rng=rng)) for bound in grid_of_bounds(X.shape[1]))


def over_features(X: Array, rng: np.random.Generator) -> Iterator[Found]:
    """Yield what IF-PCA finds with each number of columns kept."""
    return (Found(*select_ifpca(X, features=count, rng=rng)) for count in KEPT if count <= X.shape[1])


def over_components(X: Array, rng: np.random.Generator, *, criterion: str) -> Iterator[Found]:
    """Yield what is found among each number of principal components."""
    search = partial(baselines.two_valued_component, X, criterion=criterion, rng=rng)
    return (Found(search(components=count)) for count in COMPONENTS if count < len(X))


# Solvers that are timed


def by_fista(X: Array, lam: float, seconds: float) -> dc.Result:
    """Solve by accelerated FISTA until the relative gap is `GOAL`."""
    return dc.fista(X, lam=lam, ridge=RIDGE, tol=GOAL * lam, max_iter=10**7, time_limit=seconds, callback=is_narrow)


def by_cvxpy(X: Array, lam: float, seconds: float) -> dc.Result:
    """Solve through CVXPY, by SCS; its compilation is part of the time."""
    relaxation = dc.v_space(X, 1.0, dc.Penalty(lam=lam, ridge=RIDGE))
    return dc.solve(relaxation, "SCS", tol=GOAL * lam, time_limit=seconds)


SOLVERS: dict[str, Callable[[Array, float, float], dc.Result]] = {
    "low_rank": solve,
    "FISTA": by_fista,
    "CVXPY": by_cvxpy,
}


# All methods

OWN = "relaxation"
FIXED = {f"lambda {lam:g}": lam for lam in LAMS}
RELAXATIONS = {
    OWN: Method(by_relaxation),
    **{name: Method(partial(by_relaxation, lam=lam)) for name, lam in FIXED.items()},
}
SELECTING = {
    "sparse k-means": Method(
        partial(by_selection, method=select_sparse_kmeans), partial(over_bounds, method=select_sparse_kmeans)
    ),
    "IF-PCA": Method(partial(by_selection, method=select_ifpca), over_features),
    "sparse component": Method(
        partial(by_selection, method=select_sparse_component), partial(over_bounds, method=select_sparse_component)
    ),
}
RIVALS = {
    "k-means": Method(partial(by_labels, method=baselines.kmeans_standardised)),
    "mixture": Method(partial(by_labels, method=baselines.gaussian_mixture)),
    "spectral": Method(partial(by_labels, method=baselines.spectral)),
    "first component": Method(by_first_component),
    **SELECTING,
    **{
        name: Method(
            partial(by_labels, method=partial(baselines.two_valued_component, criterion=criterion)),
            partial(over_components, criterion=criterion),
        )
        for name, criterion in CRITERIA.items()
    },
}
METHODS: dict[str, Method] = {**RELAXATIONS, **RIVALS}
