"""Duality of the imbalance alpha and its weight nu: Eq. (7) along alpha, Eq. (8) along nu."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from diffrac_cvx.metrics import factor_imbalance
from diffrac_cvx.paths import PathRecorder, RegularizationPath, as_grid, solve_along
from diffrac_cvx.points.checks import in_unit_interval
from diffrac_cvx.relaxations import constrained_alpha
from diffrac_cvx.solvers import low_rank, solve
from diffrac_cvx.typing import Array


@dataclass(frozen=True, eq=False)
class Duality:
    r"""Duality: the penalised problem along nu, and the constrained problem at the imbalances of its solutions.

    With p the value of (8) and q that of (7), :math:`p(\nu) = \min_\alpha q(\alpha) + \nu \alpha`, and the minimum is
    attained at the imbalance of a solution of (8).

    Attributes
    ----------
    penalized : RegularizationPath
        Path of Eq. (8) over nu.
    constrained : RegularizationPath
        Path of Eq. (7) over the imbalances of the penalised solutions, entry by entry.
    """

    penalized: RegularizationPath
    constrained: RegularizationPath

    @property
    def sums(self) -> tuple[Array, Array]:
        """Lower and upper bounds on q(alpha) + nu alpha."""
        line = self.penalized.parameter * self.constrained.parameter
        return self.constrained.lower + line, self.constrained.upper + line

    @property
    def bracket_distance(self) -> Array:
        """Distance between the bounds on p(nu) and those on q(alpha) + nu alpha: 0 if they overlap, as they must."""
        lower, upper = self.sums
        return np.maximum(np.maximum(lower - self.penalized.upper, self.penalized.lower - upper), 0.0)

    def bounds(self, alphas: npt.ArrayLike) -> tuple[Array, Array]:
        r"""Return certified lower and upper bounds on q at any imbalances.

        The lower bound is the maximum of :math:`p(\nu) - \nu\alpha` over the grid.  The upper bound, since q is convex,
        consists of the chords between its upper bounds at the solutions, q(0) <= 1 and q(1) = 0.

        Parameters
        ----------
        alphas : (k,) array
            Imbalances, in [0, 1].

        Raises
        ------
        ParameterError
            If an imbalance is outside [0, 1].
        """
        grid = as_grid(alphas, "alphas", in_unit_interval)
        lines = self.penalized.lower - np.outer(grid, self.penalized.parameter)
        at = np.concatenate([self.constrained.parameter, [0.0, 1.0]])
        upper = np.concatenate([self.constrained.upper, [1.0, 0.0]])
        order = np.lexsort((upper, at))
        at, first = np.unique(at[order], return_index=True)
        return np.maximum(lines.max(axis=1), 0.0), np.interp(grid, at, upper[order][first])


def duality(X: Array, nus: Sequence[float], *, solver: str, tol: float = 1e-6, **solver_options: Any) -> Duality:
    r"""Solve (8) along nu, and (7) at the imbalance of each solution.

    .. math::
        p(\nu) = \min_{0 \le \alpha \le 1}\ q(\alpha) + \nu \alpha

    Source: Eq. (7) and (8), sections 2.2 and 2.3.

    Parameters
    ----------
    X : (n, d) array
        Data; centred here.
    nus : (m,) array
        Weights of the imbalance, in [0, 1]; returned in increasing order.
    solver : str
        CVXPY solver that solves (7), with an n x n variable.
    tol : float
        Certified gap at which the solvers stop.
    **solver_options
        Options of the CVXPY solver itself, such as ``eps_abs`` of SCS, passed to `solve`.
    """
    grid = np.sort(as_grid(nus, "nus", in_unit_interval))
    recorder = PathRecorder(X)
    pairs = []
    for result in solve_along(grid[::-1], lambda nu, start, **_: low_rank(recorder.X, nu, start=start, tol=tol)):
        other = solve(constrained_alpha(X, factor_imbalance(result.factor)), solver, tol=tol, **solver_options)
        pairs.append((recorder.row(result), recorder.row(other)))
    penalized, constrained = zip(*pairs[::-1], strict=True)
    first = recorder.path("nu", grid, penalized)
    return Duality(penalized=first, constrained=recorder.path("alpha", first.imbalance, constrained))
