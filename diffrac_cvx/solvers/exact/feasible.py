"""Best labels for given scores and linear constraints.

Bags, sizes and chains have closed forms; other constraints need an integer program.  Chunklets that share no row are
independent, so each connected set of rows is solved separately.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.optimize
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from diffrac_cvx.errors import DataError
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.linear_constraints import Indices, LinearConstraints, Sparse

MAX_NODES, MAX_PROGRAMS = 1000, 50  # branch-and-bound nodes per integer program, and programs per call
Best = Callable[[Array], Array | None]  # signs with the largest sum of scores times signs


class FeasibleSigns:
    """Signs z of chunklets with z_anchor = 1 that satisfy linear constraints on them."""

    def __init__(self, linear: LinearConstraints, anchor: int) -> None:
        self.linear, self.anchor = linear, anchor
        A = scipy.sparse.csr_array(scipy.sparse.vstack([rows.coefficients for rows in linear]))
        right, slack = (np.concatenate([getattr(rows, name) for rows in linear]) for name in ("right", "slack"))
        low = np.where(np.arange(len(right)) < len(linear.at_most.right), -np.inf, right - slack)
        self.parts: list[tuple[Indices, Indices, Best]] = []  # rows, signs, and the function that optimises these
        if A.nnz:
            blocks: Any = [[None, A], [A.T, None]]
            number = connected_components(scipy.sparse.block_array(blocks), directed=False)[1]
            of_rows, of_signs = np.split(number, [len(right)])
            for part in np.unique(of_rows[np.diff(A.indptr) > 0]):
                rows, signs = np.flatnonzero(of_rows == part), np.flatnonzero(of_signs == part)
                self.parts.append((rows, signs, best_of(A[rows][:, signs], low[rows], (right + slack)[rows])))

    def __len__(self) -> int:
        """Return the number of chunklets."""
        return int(self.linear.at_most.coefficients.shape[1])

    def __call__(self, scores: Array) -> Array | None:
        """Return feasible signs z with nearly the largest sum of scores times signs; None if none are found."""
        z = np.where(scores >= 0.0, 1.0, -1.0)
        z[self.anchor] = 1.0
        for _, signs, best in self.parts:
            found = best(scores[signs])
            if found is None:
                return None
            z[signs] = found
        return None if self.linear.violated(z, 1.0) else z


def best_of(A: Sparse, low: Array, high: Array) -> Best:
    """Return the function from scores to the best signs z with low <= A z <= high."""
    dense = A.toarray()
    scale, base = np.abs(dense[:, 0]), dense[0] / (dense[0, 0] or 1.0)
    if np.all(np.abs(base) == 1.0) and np.all(np.abs(dense) == scale[:, None]):
        sides = dense[:, 0] / scale
        if np.array_equal(dense, (sides * scale)[:, None] * base):
            lows, highs = (np.where(sides > 0.0, one, -other) / scale for one, other in ((low, high), (high, low)))
            return partial(best_of_number, base, float(lows.max()), float(highs.min()))
    path = path_of(dense, low, high)
    return partial(best_on_path, path) if path is not None else partial(best_by_program, A, low, high)


def best_of_number(base: Array, low: float, high: float, scores: Array) -> Array | None:
    """Return the best signs with low <= base'z <= high for signs in base, which bounds the number of agreements."""
    m, gains = len(base), base * scores
    least, most = (max(np.ceil((m + low) / 2.0), 0.0), min(np.floor((m + high) / 2.0), float(m)))
    if least > most:
        return None
    number = int(min(max(np.sum(gains > 0.0), least), most))
    z = -base
    chosen = np.argsort(-gains, kind="stable")[:number]
    z[chosen] = base[chosen]
    return z


def path_of(A: Array, low: Array, high: Array) -> Indices | None:
    """Return the order of signs if the rows require that they rise along one path; None otherwise."""
    k, m = A.shape
    size = np.abs(A).max(axis=1)
    if k != m - 1 or np.any((A != 0.0).sum(axis=1) != 2) or np.any(A.sum(axis=1) != 0.0):
        return None
    if np.any(np.isfinite(low)) or np.any(high < 0.0) or np.any(high >= size):
        return None
    before, after = np.argmax(A, axis=1), np.argmin(A, axis=1)
    if len(np.unique(before)) < k or len(np.unique(after)) < k:
        return None
    following = dict(zip(before.tolist(), after.tolist(), strict=True))
    path = [int(np.setdiff1d(before, after)[0])] if len(np.setdiff1d(before, after)) else []
    while path and path[-1] in following:
        path.append(following[path[-1]])
    return np.array(path) if len(path) == m else None


def best_on_path(path: Indices, scores: Array) -> Array:
    """Return the best signs that rise along a path: -1 up to a point, +1 after it."""
    start = int(np.argmin(np.append(0.0, np.cumsum(scores[path]))))
    z = np.ones(len(path))
    z[path[:start]] = -1.0
    return z


def best_by_program(A: Sparse, low: Array, high: Array, scores: Array) -> Array | None:
    """Return the best signs by an integer program in t = (z + 1) / 2; None if none are found."""
    shift = np.asarray(A.sum(axis=1)).ravel()
    constraints = [scipy.optimize.LinearConstraint(2.0 * A, low + shift, high + shift)]
    for _ in range(MAX_PROGRAMS):
        scale = max(float(np.abs(scores).max(initial=0.0)), 1e-300)
        program: dict[str, Any] = {"c": -scores / scale, "constraints": constraints}
        program |= {"integrality": np.ones(len(scores), dtype=np.int64), "bounds": scipy.optimize.Bounds(0.0, 1.0)}
        limit: Any = {"node_limit": MAX_NODES}
        found = scipy.optimize.milp(**program, options=limit if scores.any() else {})  # {}: only feasibility matters
        if found.x is None:  # presolving may be wrong on coefficients near the tolerance of the program
            found = scipy.optimize.milp(**program, options=limit | {"presolve": False})
        if found.x is None:
            return None
        z = np.where(found.x > 0.5, 1.0, -1.0)
        sums = A @ z
        if not np.any((sums > high) | (sums < low)):
            return z
        # The program has a tolerance: exclude signs that violate a row, by the signs of its largest terms alone.
        for side, most in ((1.0, high), (-1.0, -low)):
            for k in np.flatnonzero(side * sums > most):
                mask = cover(side * A[[k]].toarray()[0] * z, most[k])
                constraints.append(scipy.optimize.LinearConstraint(2.0 * mask * z, ub=mask.sum() - 2.0 + mask @ z))
    return None


def cover(terms: Array, most: float) -> Array:
    """Return the mask of the fewest terms by which a row exceeds its right side, whatever the other signs."""
    order = np.argsort(-terms, kind="stable")[: np.sum(terms > 0.0)]
    reached = 2.0 * np.cumsum(terms[order]) - np.sum(np.abs(terms)) > most
    mask = np.zeros(len(terms))
    mask[order[: np.argmax(reached) + 1] if reached.any() else order] = 1.0
    return mask


def require_feasible(feasible: FeasibleSigns, has_known: bool) -> None:
    """Raise DataError if no signs are found, naming a minimal set of rows that contradict each other."""
    zeros = np.zeros(len(feasible))
    if feasible(zeros) is not None:
        return
    linear = feasible.linear
    for name in linear.names:
        fewer = linear.without(name)
        if FeasibleSigns(fewer, feasible.anchor)(zeros) is None:
            linear = fewer
    named = " and ".join([*linear.names, *["the known labels"] * has_known])
    raise DataError(f"no labels satisfy {named}. Remove one of them.")
