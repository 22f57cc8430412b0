"""Multi-class relaxation of Bach and Harchaoui (DIFFRAC), for comparison; n x n variable."""

import numpy as np
import numpy.typing as npt

from diffrac_cvx.certificates.label_bounds import bracket_nu
from diffrac_cvx.certificates.label_proof import projection_of
from diffrac_cvx.errors import ParameterError
from diffrac_cvx.points.checks import Array, centered_data, in_unit_interval, positive_int
from diffrac_cvx.points.dense import weighted_points
from diffrac_cvx.points.linear_algebra import psd_factor, unit_rows
from diffrac_cvx.problem.result import Bracket
from diffrac_cvx.relaxations.label_space import label_residual, label_size, require_label_memory
from diffrac_cvx.relaxations.relaxation import Relaxation, Solution, matrix_of, parameter, value_of


def multiclass(X: npt.ArrayLike, k: int, nu: float = 1.0) -> Relaxation:
    r"""Return the relaxation for k classes, Y = yy' with n x k indicators y, with the imbalance penalised.

    .. math::
        \min_{\mathrm{diag}(Y) = 1,\ Y \succeq 11^\top / k}
        \tfrac1n \mathrm{tr}\, Y (\Pi_n - X (X^\top X)^{+} X^\top) + \tfrac{\nu}{n^2} 1^\top Y 1

    With Y = 11'/k + (1 - 1/k) S this is Eq. (8) in S: its value is nu/k + (1 - 1/k) times that of `penalized_nu`, and
    the solutions correspond for every k.  The number of classes thus matters only for the rounding, by k-means on the
    rows of F.

    Source: section 4, the set C_K, whose last inequality is printed in the wrong direction.  Without the imbalance
    penalty, Y = 11' is optimal.

    Parameters
    ----------
    X : (n, d) array
        Data; centred internally.
    k : int
        Number of classes, at least 2.
    nu : float
        Weight of the imbalance penalty, in [0, 1]; default 1.  Change it later with ``at(nu=...)``.

    Raises
    ------
    DataError, ParameterError
        If X is invalid, k is not an integer >= 2 or nu is outside [0, 1].
    ResourceError
        If an n x n matrix would not fit in memory.
    """
    import cvxpy as cp

    points, k, nu = weighted_points(centered_data(X)), positive_int(k, "k"), in_unit_interval(nu, "nu")
    if k < 2:
        raise ParameterError(f"k = {k} must be at least 2")
    n = len(points)
    require_label_memory(n, "multiclass")
    H = projection_of(points)
    weight = parameter("nu", nu)
    Y = cp.Variable((n, n), symmetric=True, name="Y")
    objective = label_residual(Y, H) + weight * cp.sum(Y) / n**2

    def solution_of(S: Array, nu: float) -> Solution:
        lower, upper = (nu / k + (1 - 1 / k) * bound for bound in bracket_nu(H, S, nu))
        F = np.column_stack([np.full(n, k**-0.5), (1 - 1 / k) ** 0.5 * S])
        upper = min(upper, 1.0)  # the value of a single class
        return Solution(F=F, value=upper, bracket=Bracket(lower, upper, H.n_excluded))

    def read() -> Solution:
        return solution_of(unit_rows(psd_factor(matrix_of(Y) - 1.0 / k, rtol=1e-14)), value_of(weight))

    def shortcut() -> Solution | None:
        return solution_of(np.ones((n, 1)), 0.0) if value_of(weight) == 0.0 else None

    problem = cp.Problem(cp.Minimize(objective), [cp.diag(Y) == 1, Y - np.ones((n, n)) / k >> 0])
    size = label_size(n)._replace(nonzeros=2 * n * n)
    return Relaxation("multiclass", "section 4", problem, read, size, {"nu": weight}, shortcut=shortcut)
