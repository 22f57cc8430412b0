"""The methods: this relaxation at fixed weights and at its own choice, and what is used on wide tables instead."""

from collections.abc import Callable, Iterable
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
    """What a method found."""

    labels: Array  # in two values
    columns: npt.NDArray[np.intp] | None = None  # chosen, the most important one first; None where none are
    gap: float = np.nan  # proved, relative; NaN of a method that proves nothing


class Method(NamedTuple):
    """A method at its own choice of what has to be chosen, and at every setting that is tried."""

    own: Callable[[Array, np.random.Generator], Found]
    tuned: Callable[[Array, np.random.Generator], Iterable[Found]] = lambda X, rng: ()  # labels say which is the best


def solve(X: Array, lam: float, seconds: float = SECONDS) -> dc.Result:
    """Solve the relaxation until the relative gap is `GOAL`."""
    return dc.low_rank(X, lam=lam, ridge=RIDGE, tol=GOAL * lam, time_limit=seconds, callback=is_narrow)


def by_fista(X: Array, lam: float, seconds: float) -> dc.Result:
    """Solve by accelerated FISTA until the relative gap is `GOAL`."""
    return dc.fista(X, lam=lam, ridge=RIDGE, tol=GOAL * lam, max_iter=10**7, time_limit=seconds, callback=is_narrow)


def by_cvxpy(X: Array, lam: float, seconds: float) -> dc.Result:
    """Solve through CVXPY, by SCS; its compilation is part of the time."""
    return dc.solve(dc.v_space(X, 1.0, dc.Penalty(lam=lam, ridge=RIDGE)), "SCS", tol=GOAL * lam, time_limit=seconds)


def is_narrow(progress: dc.Progress) -> bool:
    """Whether a solve is done."""
    return progress.upper - progress.lower <= GOAL * progress.upper


SOLVERS: dict[str, Callable[[Array, float, float], dc.Result]] = {  # those that are timed
    "low_rank": solve,
    "FISTA": by_fista,
    "CVXPY": by_cvxpy,
}


def relax(X: Array, _: np.random.Generator, *, lam: float | None = None) -> Found:
    """Cluster by the relaxation, by default at the l1 weight that the table's size suggests.

    The columns chosen are those of a V_jj that is not small beside the largest.
    """
    n, d = X.shape
    result = solve(X, suggested_lam(n, d, RIDGE) if lam is None else lam)
    used = result.features(rtol=ALIVE).selected
    return Found(dc.rounding.kmeans_centered(result.factor), used, result.gap / result.upper)


# What is used instead, each at its own choice and over what it is tuned by


def by_labels(method: Callable[..., Array]) -> Method:
    """Return the method of a function that returns labels alone."""
    return Method(lambda X, rng: Found(method(X, rng=rng)))


def by_selection(select: Callable[..., Selection], setting: str, values: Callable[[int], Iterable[float]]) -> Method:
    """Return the method of a function that chooses columns, by a setting whose values are those for d columns."""
    return Method(
        lambda X, rng: Found(*select(X, rng=rng)),
        lambda X, rng: (Found(*select(X, **{setting: value}, rng=rng)) for value in values(X.shape[1])),
    )


def by_search(criterion: str) -> Method:
    """Return the search for a principal component in two values."""
    search = partial(baselines.two_valued_component, criterion=criterion)
    return by_labels(search)._replace(
        tuned=lambda X, rng: (Found(search(X, components=k, rng=rng)) for k in COMPONENTS if k < len(X))
    )


OWN = "relaxation"
FIXED = {f"lambda {lam:g}": lam for lam in LAMS}
RELAXATIONS = {OWN: Method(relax), **{name: Method(partial(relax, lam=lam)) for name, lam in FIXED.items()}}
SELECTING = {
    "sparse k-means": by_selection(select_sparse_kmeans, "bound", grid_of_bounds),
    "IF-PCA": by_selection(select_ifpca, "features", lambda d: (count for count in KEPT if count <= d)),
    "sparse component": by_selection(select_sparse_component, "bound", grid_of_bounds),
}
RIVALS = {
    "k-means": by_labels(baselines.kmeans_standardized),
    "mixture": by_labels(baselines.gaussian_mixture),
    "spectral": by_labels(baselines.spectral),
    "first component": Method(lambda X, _: Found(baselines.first_component(X))),
    **SELECTING,
    **{name: by_search(criterion) for name, criterion in CRITERIA.items()},
}
METHODS: dict[str, Method] = {**RELAXATIONS, **RIVALS}
