"""The methods: this relaxation at fixed weights and at its own choice, and what is used on wide tables instead."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

import diffrac_cvx as dc
from diffrac_cvx.factors import dense
from diffrac_cvx.inputs import Array

LAMS, RIDGE = (0.2, 0.1, 0.05), 0.3
GOAL = 1e-2  # proved relative gap at which a solve ends
SECONDS = 5.0  # for one solve
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
    assert result.G is not None
    energies = np.square(dense(result.G)).sum(axis=1)
    order = np.argsort(-energies, kind="stable")
    alive = int((energies > ALIVE * energies.max()).sum())
    return Found(dc.rounding.kmeans_centered(result.factor), order[:alive], result.gap / result.upper)


def own_choice(X: Array) -> Found:
    """Cluster by the relaxation at weights that are chosen without labels."""
    return relax(X, LAMS[1])


def by_relaxation(X: Array, _: np.random.Generator, *, lam: float | None = None) -> Found:
    """Cluster by the relaxation, at a fixed lambda or at its own choice."""
    return own_choice(X) if lam is None else relax(X, lam)


def by_labels(X: Array, rng: np.random.Generator, *, method: Callable[..., Array]) -> Found:
    """Cluster by a method that returns labels alone."""
    return Found(method(X, rng=rng))


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
RIVALS = {
    "k-means": Method(partial(by_labels, method=dc.baselines.kmeans_standardised)),
    "mixture": Method(partial(by_labels, method=dc.baselines.gaussian_mixture)),
}
METHODS: dict[str, Method] = {**RELAXATIONS, **RIVALS}
