"""DIMACS errors of a solver's point: residuals, distances from the cones, gap and complementarity."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from diffrac_cvx.points.checks import Array
from diffrac_cvx.problem.result import DimacsErrors

# Order in which a solver stacks the triangle of a semidefinite matrix, off-diagonal entries times sqrt(2).
TRIANGLES = {"CLARABEL": np.tril_indices, "SCS": np.triu_indices}


class ConicPoint(NamedTuple):
    """Point x, s and z of a solver, in the notation of `DimacsErrors`."""

    x: Array
    s: Array
    z: Array


def dimacs_errors(solver: str, data: dict[str, Any], raw: Any) -> DimacsErrors | None:
    """Return the DIMACS errors of a CLARABEL or SCS solution; None for other solvers and cones, or without a point.

    ``data`` is the output of ``cvxpy.Problem.get_problem_data`` and ``raw`` that of ``solve_via_data``.
    """
    if solver not in TRIANGLES or data.get("P") is not None:
        return None
    cones, point = data["dims"], conic_point(raw)
    if not are_supported(cones) or not all(np.all(np.isfinite(part)) for part in point):
        return None
    return errors_at(scipy.sparse.csc_array(data["A"]), data["b"], data["c"], point, cones, solver)


def are_supported(cones: Any) -> bool:
    """Return whether all cones, given as CVXPY's ``dims``, are of the types used by this package's relaxations."""
    return not (cones.exp or getattr(cones, "pnd", None) or any(power != 0.5 for power in cones.p3d))


def conic_point(raw: Any) -> ConicPoint:
    """Return x, s and z of a raw result: an object from CLARABEL, a dictionary from SCS (where z is called y)."""
    parts = (raw["x"], raw["s"], raw["y"]) if isinstance(raw, dict) else (raw.x, raw.s, raw.z)
    return ConicPoint(*(np.asarray(np.nan if part is None else part, dtype=float) for part in parts))


def errors_at(A: Any, b: Array, c: Array, point: ConicPoint, cones: Any, solver: str) -> DimacsErrors:
    """Return the six DIMACS errors at a point."""
    x, s, z = point
    of_b, of_c = (1.0 + float(np.abs(vector).max(initial=0.0)) for vector in (b, c))
    primal, dual = float(c @ x), -float(b @ z)
    of_values = 1.0 + abs(primal) + abs(dual)
    return DimacsErrors(
        err1=float(np.linalg.norm(A @ x + s - b)) / of_b,
        err2=distance_outside(s, cones, solver, dual=False) / of_b,
        err3=float(np.linalg.norm(A.T @ z + c)) / of_c,
        err4=distance_outside(z, cones, solver, dual=True) / of_c,
        err5=abs(primal - dual) / of_values,
        err6=abs(float(s @ z)) / of_values,
    )


def distance_outside(vector: Array, cones: Any, solver: str, *, dual: bool) -> float:
    """Return the largest distance of the parts of a vector from their cones, or from the dual cones if `dual`."""
    return max((float(distance) for distance in distances(vector, cones, solver, dual=dual)), default=0.0)


def distances(vector: Array, cones: Any, solver: str, *, dual: bool) -> Iterator[float]:
    """Yield minus the least eigenvalue of each part, or 0 if it is in its cone."""
    zero, nonnegative, remainder = np.split(vector, np.cumsum([cones.zero, cones.nonneg]))
    if not dual:  # the dual of the zero cone is the whole space
        yield np.abs(zero).max(initial=0.0)
    yield (-nonnegative).max(initial=0.0)
    for size in cones.soc:
        head, remainder = np.split(remainder, [size])
        yield max(np.linalg.norm(head[1:]) - head[0], 0.0)
    for side in cones.psd:
        head, remainder = np.split(remainder, [side * (side + 1) // 2])
        yield max(-least_eigenvalue(head, side, solver), 0.0)
    # x y >= w^2 is [[x, w], [w, y]] >= 0, and 4 x y >= w^2, its dual, is [[x, w/2], [w/2, y]] >= 0.
    x, y, w = remainder.reshape(len(cones.p3d), 3).T
    w = w / 2 if dual else w
    yield (np.hypot((x - y) / 2, w) - (x + y) / 2).max(initial=0.0)


def least_eigenvalue(triangle: Array, side: int, solver: str) -> float:
    """Return the least eigenvalue of a symmetric matrix, given its triangle as stacked by the solver."""
    rows, columns = TRIANGLES[solver](side)
    matrix = np.zeros((side, side))
    matrix[rows, columns] = matrix[columns, rows] = np.where(rows == columns, triangle, triangle / 2**0.5)
    return float(np.linalg.eigvalsh(matrix)[0]) if side else 0.0
