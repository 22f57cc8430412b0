"""Answers of a solver of problem (15): read, checked for feasibility, and evaluated apart from the solvers."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.optimize

from diffrac_cvx.certificates import certify_v, certify_y, check_certificate
from diffrac_cvx.comparison.instances import Instance
from diffrac_cvx.comparison.posed import pose
from diffrac_cvx.errors import DataError
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.factors import dense
from diffrac_cvx.problem.result import Bracket, Result

FEASIBILITY = 1e-6  # relative violation of a constraint that counts as rounding
AGREEMENT = 1e-6  # difference between a reported objective and the recomputed one that counts as rounding
MAX_EVALUATIONS = 100  # of the search for the lower bound of labels; each of its bounds is valid


class Answer(NamedTuple):
    """Answer of a solver: its kind, its point with the recomputed objectives, and why it is not feasible."""

    kind: str  # "V", "F", "Result", or the type of anything else
    problems: tuple[str, ...] = ()  # violations of feasibility
    objective: float = np.nan  # f(V), or h(F) without V
    labels_objective: float = np.nan  # lower bound on h(F)
    bounds: Bracket | None = None
    result: Result | None = None
    V: Array | None = None  # of a feasible answer
    F: Array | None = None


def read_answer(outcome: Any, instance: Instance) -> Answer:
    """Return the answer of a solver, with its objectives if it is feasible."""
    X, nu, penalty = instance
    n, d = X.shape
    result, V, F = None, None, None
    if isinstance(outcome, Result):
        kind, result, V, F = "Result", outcome, outcome.V, outcome.F
    else:
        point = as_real_matrix(outcome)
        if point.shape in ((d, d), (d + 1, d + 1)):
            kind, V = "V", point
        elif point.ndim == 2 and len(point) == n:
            kind, F = "F", point
        else:
            name = type(outcome).__name__
            what = f"an array of shape {point.shape}" if point.size else f"an object of type {name}"
            wanted = f"V with shape {(d, d)} or {(d + 1, d + 1)}, F with {n} rows, or a Result"
            return Answer(name, (f"the solver returns {what}. Return {wanted}.",))
    problems = [*([] if V is None else problems_of_v(V, instance)), *([] if F is None else problems_of_f(F, n))]
    bounds = None if result is None else result.bracket
    if problems:
        return Answer(kind, tuple(problems), bounds=bounds, result=result)
    if V is not None and F is None:
        bounds = certify_v(X, V, nu, penalty)
    elif F is not None and V is None and result is None and not penalty.has_l1:
        bounds = certify_y(X, F, nu, penalty=penalty)
    labels = np.nan if F is None else labels_objective(instance, F)
    objective = labels if V is None else pose(instance).objective(V)
    return Answer(kind, (), objective, labels, bounds, result, V, F)


def as_real_matrix(outcome: Any) -> Array:
    """Return an array of floats; an empty one for anything that is not a dense or sparse array of real numbers."""
    try:
        array = dense(outcome)
    except ValueError:  # rows of different lengths
        return np.zeros(0)
    return array.astype(float) if array.dtype.kind in "biuf" else np.zeros(0)


def problems_of_v(V: Array, instance: Instance) -> Iterator[str]:
    """Yield why V is not feasible: its shape, entries, symmetry and eigenvalues, on the scale of the columns of X."""
    X, nu, _ = instance
    d = X.shape[1]
    sides = (d,) if nu == 1.0 else (d, d + 1)
    if V.shape not in [(side, side) for side in sides]:
        wanted = " or ".join(str((side, side)) for side in sides)
        yield f"V has the shape {V.shape}. Return {wanted} for {d} features and nu = {nu:g}."
        return
    if not np.all(np.isfinite(V)):
        yield f"V has {np.sum(~np.isfinite(V))} entries that are NaN or infinite"
        return
    deviations = X.std(axis=0)
    units = np.append(np.where(deviations > 0.0, deviations, 1.0), 1.0)[: len(V)]
    scaled = units[:, None] * V * units
    size = np.abs(scaled).max(initial=1e-300)
    asymmetry = np.abs(scaled - scaled.T).max() / size
    if asymmetry > FEASIBILITY:
        yield f"V is not symmetric: V - V' is {asymmetry:.1e} of the largest entry, for columns of unit variance"
        return
    eigenvalues = np.linalg.eigvalsh(scaled)
    smallest, largest = eigenvalues[0], eigenvalues[-1]
    if smallest < -FEASIBILITY * size:
        yield (
            f"V is not positive semidefinite: for columns of unit variance its eigenvalues reach from {smallest:.1e} "
            f"to {largest:.1e}"
        )


def problems_of_certificate(result: Result, instance: Instance) -> Iterator[str]:
    """Yield why the certificate of a result does not prove its bounds on the instance."""
    stated = result.certificate.nu, *map(np.ndarray.tolist, result.certificate.penalty.weights(instance.X.shape[1]))
    if stated != (instance.nu, *map(np.ndarray.tolist, instance.penalty.weights(instance.X.shape[1]))):
        yield "the certificate is for another nu or penalty. Return that of the instance."
        return
    try:
        proved = check_certificate(instance.X, result)
    except DataError as error:
        yield str(error)
        return
    if not proved.lower >= result.lower or not proved.upper <= result.upper + AGREEMENT:
        yield f"the certificate proves {proved.bracket}, and the result states {result.bracket}"


def problems_of_f(F: Array, n: int) -> Iterator[str]:
    """Yield why F is not the factor of a label matrix: its shape, entries and the norms of its rows."""
    if F.ndim != 2 or len(F) != n:
        yield f"F has the shape {F.shape}. Return one row for each of the {n} points."
    elif not np.all(np.isfinite(F)):
        yield f"F has {np.sum(~np.isfinite(F))} entries that are NaN or infinite"
    else:
        norms = np.linalg.norm(F, axis=1)
        if np.abs(norms - 1.0).max() > FEASIBILITY:
            is_y = F.shape == (n, n) and np.allclose(F, F.T) and np.allclose(np.diag(F), 1.0)
            remedy = " It seems to be Y; return its factor F, Y = FF'." if is_y else ""
            yield f"F has rows of norm {norms.min():.6g} to {norms.max():.6g} instead of 1.{remedy}"


def labels_objective(instance: Instance, F: Array) -> float:
    r"""Return the objective h of (8) or (16) at F, or with an l1 penalty a lower bound on that of (11) at Y = FF'.

    For every symmetric C with \|C_ij\| <= c_i c_j the minimum over the directions is at least
    tr Y (Pi - X (X'X + n Diag(a)^2 + n C)^-1 X') / n + nu 1'Y1/n^2; it is concave in C.
    """
    X, nu, penalty = instance
    n, d = X.shape
    X, centered, imbalance = X - X.mean(axis=0), F - F.mean(axis=0), nu * float(np.sum(F.mean(axis=0) ** 2))
    a, c = penalty.weights(d)
    deviations = np.sqrt(np.mean(X**2, axis=0) + a**2 + c**2)
    units = np.where(deviations > 0.0, deviations, 1.0)
    X, a, c = X / units, a / units, c / units
    rows, targets = np.vstack([X / n**0.5, np.diag(a)]), np.vstack([centered / n**0.5, np.zeros((d, F.shape[1]))])
    if not c.any():
        W = np.linalg.lstsq(rows, targets, rcond=1e-12)[0]
        return float(np.sum((targets - rows @ W) ** 2)) + imbalance
    A, B, total = rows.T @ rows + np.diag(c**2), rows.T @ targets, float(np.sum(targets**2))
    pairs = np.triu_indices(d, 1)

    def negative_bound(entries: Array) -> tuple[float, Array]:
        C = np.zeros((d, d))
        C[pairs] = entries
        try:
            W = scipy.linalg.cho_solve(scipy.linalg.cho_factor(A + C + C.T), B)
        except scipy.linalg.LinAlgError:  # not positive definite: no bound
            return 1e10, np.zeros(len(entries))
        return float(np.sum(B * W)) - total, -2.0 * (W @ W.T)[pairs]

    limits = c[pairs[0]] * c[pairs[1]]
    options: dict[str, Any] = {"bounds": scipy.optimize.Bounds(-limits, limits), "options": {"maxfun": MAX_EVALUATIONS}}
    found = scipy.optimize.minimize(negative_bound, np.zeros(len(limits)), jac=True, method="L-BFGS-B", **options)
    return imbalance - float(found.fun)
