"""Direct relaxation of the correlation (2), which the paper shows to be trivial: (23), (24)."""

import numpy as np
import numpy.typing as npt

from diffrac_cvx.points.checks import Array, as_data
from diffrac_cvx.points.linear_algebra import column_basis, psd_factor, unit_rows
from diffrac_cvx.problem.result import Bracket
from diffrac_cvx.relaxations.label_space import label_size, require_label_memory
from diffrac_cvx.relaxations.relaxation import Relaxation, Solution, matrix_of

CORRELATION_ALTERNATIVE = "use another relaxation, because this one is trivial for all data"


def correlation(X: npt.ArrayLike) -> Relaxation:
    r"""Return the direct relaxation of the correlation, without an imbalance parameter; it is trivial for all data.

    .. math::
        \min_{M \succeq 0}\ - \mathrm{tr}\, M X (X^\top X)^{+} X^\top
        \quad\text{such that}\quad \mathrm{diag}(M) = 1 + \tfrac{1}{n^2} 1^\top M 1

    Its infimum is -n for any X with a nonzero column, and 0 otherwise: tr MH <= tr M Pi = n, with H the projection on
    the columns of X.  It may be approached only as M grows without bound; Y = M / (1 + 1'M1/n^2) then tends to 11'.

    Source: Eq. (23) and (24), section 2.3 and appendix B.

    Parameters
    ----------
    X : (n, d) array
        Data; centred internally.

    Raises
    ------
    DataError
        If X is invalid.
    ResourceError
        If an n x n matrix would not fit in memory.
    """
    import cvxpy as cp

    data = as_data(X)
    n = len(data)
    require_label_memory(n, "correlation")
    Q = column_basis(data)
    M = cp.Variable((n, n), PSD=True, name="M")

    def read() -> Solution:
        return read_correlation(matrix_of(M), Q)

    problem = cp.Problem(cp.Minimize(-cp.sum(cp.multiply(Q @ Q.T, M))), [cp.diag(M) == 1 + cp.sum(M) / n**2])
    size = label_size(n)._replace(instead=CORRELATION_ALTERNATIVE)
    return Relaxation("correlation", "Eq. (23)-(24)", problem, read, size, trivial=Bracket(-float(n), 0.0))


def read_correlation(M: Array, Q: Array) -> Solution:
    """Return the feasible point of Y = M / (1 + 1'M1/n^2), with rows of F at unit norm; the lower bound is -n."""
    n = len(Q)
    F = unit_rows(psd_factor(M, rtol=1e-14))
    centered_fraction = 1.0 - float(np.sum(F.mean(axis=0) ** 2))
    value = -float(np.sum((Q.T @ F) ** 2)) / centered_fraction if centered_fraction > 0 else 0.0
    lower = -float(n) if Q.shape[1] else 0.0
    value = max(value, lower)
    return Solution(F=F, value=value, bracket=Bracket(lower, value))
