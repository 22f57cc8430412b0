"""Splits of a table that its structure test tries: by the relaxation, and by a share of the rows on one side."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from diffrac_cvx.certificates import certify_labels
from diffrac_cvx.errors import DegenerateDataWarning
from diffrac_cvx.machine.deadlines import EarlyExitError, is_late, seconds_left
from diffrac_cvx.machine.work import work_done
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.linear_algebra import inverse_or_one, is_above_rounding
from diffrac_cvx.points.table import Table
from diffrac_cvx.problem.penalty import Penalty, weights_of
from diffrac_cvx.problem.result import Progress, Result
from diffrac_cvx.rounding.directions import LabelRegression, best_affine_function, label_candidates
from diffrac_cvx.rounding.many_clusters import cluster_jointly
from diffrac_cvx.solvers import low_rank

SPLIT_TOL, SPLIT_RTOL, SPLIT_MAX_ITER = 1e-2, 0.1, 120  # tolerances and iteration limit of each split
SPLIT_OPERATIONS = 4e9  # of each split
N_AXES, N_STARTS, MIN_RANDOM = 6, 24, 8  # starts: both signs of leading axes, and random directions
MAX_ALTERNATIONS = 30  # of labels and their direction
N_OPTIMA, MAX_CORRELATION = 3, 0.9  # local optima of a share, and of the scores of two of them


@dataclass(frozen=True, eq=False)
class Split:
    """How points are split by the relaxation: weights and number of clusters."""

    nu: float
    penalty: Penalty
    n_clusters: int = 2

    def directions(self, X: Table) -> Array:
        """Return directions (d, K - 1) between the clusters of scaled points; their scores have variance 1 or 0."""
        pair_penalty, result = weights_of(self.penalty, X.shape[1]), self.solve(X)
        if self.n_clusters == 2:
            regression = LabelRegression(X, pair_penalty)
            labels = label_candidates(regression, result.F)[1]
            W = regression.oriented(labels * labels[0])[1][:, None]
        else:
            functions = cluster_jointly(X, result, self.n_clusters, weights=pair_penalty, rng=0)
            W = (functions.coef - functions.coef.mean(axis=0)).T
            W = W @ np.linalg.svd(X.times_root_counts(X @ W), full_matrices=False)[2][: self.n_clusters - 1].T
        return with_unit_scores(X, W)

    def affine_function(self, X: Table) -> tuple[Array, float]:
        """Return the direction and intercept that separate the two clusters of scaled points."""
        return best_affine_function(X, self.solve(X).factor, self.nu, weights_of(self.penalty, X.shape[1]))

    def objective(self, X: Any) -> float:
        """Return the objective of the split in two, Eq. (9)."""
        labels = label_candidates(LabelRegression(X, weights_of(self.penalty, X.shape[1])), self.solve(X).F)[1]
        return certify_labels(X, labels, 0.0, nu=self.nu, penalty=self.penalty).objective

    def solve(self, X: Any) -> Result:
        """Solve the relaxation of points at a loose tolerance, within a number of operations; raise at the deadline."""
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore", DegenerateDataWarning)
            limits: dict[str, Any] = {"max_iter": SPLIT_MAX_ITER, "time_limit": seconds_left()}
            limits["rtol"] = SPLIT_RTOL if X.shape[1] > len(X) and self.penalty.has_l1 else 0.0
            result = low_rank(X, self.nu, self.penalty, tol=SPLIT_TOL, callback=StopAfterWork(), **limits)
        if is_late():
            raise EarlyExitError(result.status)
        return result


@dataclass(frozen=True, eq=False)
class ShareSplits:
    """How points are split into shares and the rest: labels and their ridge regression alternate."""

    shares: tuple[float, ...]
    ridge: float

    def directions(self, X: Table) -> Array:
        """Return three directions for each of k shares whose largest scores they explain, shape (d, 3 k).

        The labels of points are 1 for the largest scores, which hold the share of the weights, and 0 otherwise.  They
        alternate with their ridge regression from several starts; constraints are not used.  The directions of a share
        are the best explained local optima whose scores correlate by less than 0.9; missing ones are 0.
        """
        if is_late():
            raise EarlyExitError("time limit reached")
        roots = np.sqrt(len(X) * X.normalized_weights)[:, None]
        U, s, Vt = np.linalg.svd(roots * X.array(), full_matrices=False)
        mask = is_above_rounding(s, X.shape)
        U, s, Vt = U[:, mask], s[mask], Vt[mask]
        if not len(s):
            return np.zeros((X.shape[1], N_OPTIMA * len(self.shares)))
        shrunk = s / np.sqrt(s**2 + len(X) * self.ridge)
        G = U * shrunk  # the fitted values of ridge regression on y are G G' y
        axes = np.eye(len(s))[:, :N_AXES]
        n_random = max(N_STARTS - 2 * axes.shape[1], MIN_RANDOM)
        starts = np.hstack([axes, -axes, np.random.default_rng(0).standard_normal((len(s), n_random))])
        C = np.hstack([optima_of_share(G, starts, roots, share, X.weights) for share in self.shares])
        return with_unit_scores(X, Vt.T @ (C * (shrunk / s)[:, None]))


def optima_of_share(G: Array, starts: Array, roots: Array, share: float, weights: Array | None) -> Array:
    """Return G'y of the labels y that alternation finds and G explains best, up to three that differ, shape (r, 3)."""
    scores, explained = G @ starts, np.full(starts.shape[1], -np.inf)
    for _ in range(MAX_ALTERNATIONS):
        C = G.T @ (roots * top_share(scores / roots, share, weights))
        last, explained, scores = explained, np.sum(C**2, axis=0), G @ C
        if np.all(explained <= last * (1.0 + 1e-12)):
            break
    unit = scores * inverse_or_one(np.linalg.norm(scores, axis=0))
    correlations = np.abs(unit.T @ unit)
    chosen: list[int] = []
    for i in np.argsort(-explained, kind="stable"):
        if len(chosen) < N_OPTIMA and np.all(correlations[i, chosen] < MAX_CORRELATION):
            chosen.append(int(i))
    optima = np.zeros((len(C), N_OPTIMA))
    optima[:, : len(chosen)] = C[:, chosen]
    return optima


def top_share(scores: Array, share: float, weights: Array | None) -> Array:
    """Return 1 for the largest scores of each column that hold a share of the weights, 0 for others, same shape."""
    n = len(scores)
    top = np.zeros_like(scores)
    if weights is None:
        k = max(2, round(share * n))
        np.put_along_axis(top, np.argpartition(-scores, k - 1, axis=0)[:k], 1.0, axis=0)
        return top
    order = np.argsort(-scores, axis=0)
    above = np.cumsum(weights[order], axis=0) - weights[order] / 2.0
    np.put_along_axis(top, order, (above <= share).astype(float), axis=0)
    return top


def with_unit_scores(X: Table, W: Array) -> Array:
    """Return directions (d, k) scaled so that the scores of the points have variance 1, or 0."""
    return np.asarray(W * inverse_or_one(np.sqrt(X.mean_of((X @ W) ** 2))))


class StopAfterWork:
    """Callback that stops a solver after a number of operations, which does not depend on the clock."""

    def __init__(self) -> None:
        self.start, self.last = work_done(), (0, 0.0, 1.0)

    def __call__(self, progress: Progress) -> bool:
        now = progress.iteration, progress.lower, progress.upper
        is_new, self.last = now != self.last, now  # the callback may also be called between two iterates
        return is_new and work_done() - self.start > SPLIT_OPERATIONS
