"""Checker of certificates: it poses the problem from the table and verifies the bounds, without any search."""

import math
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from diffrac_cvx.certificates.certificate import Certificate, Fields, Proof, parse
from diffrac_cvx.certificates.consistency import RoundingBound
from diffrac_cvx.certificates.label_bounds import (
    LabelMultipliers,
    Projection,
    balanced_value,
    class_bound,
    class_value,
    correlation_value,
    label_bound,
    label_value,
    projection_of,
)
from diffrac_cvx.certificates.labels import LabelDual, LabelProblem
from diffrac_cvx.certificates.proof import Multipliers
from diffrac_cvx.certificates.screening import normalized_value, prove_bound, prove_normalized
from diffrac_cvx.certificates.values import certified_clusters_value, certified_labels_value, or_zero_direction
from diffrac_cvx.errors import DataError, ParameterError, ResourceError
from diffrac_cvx.machine.threads import one_thread
from diffrac_cvx.points.checks import Array, PointWeights, as_clusters, as_labels, require_table
from diffrac_cvx.points.constraints import Chunklets, Constraints, require_satisfied
from diffrac_cvx.points.exclusion import exclude_columns
from diffrac_cvx.points.factors import Factor, dense
from diffrac_cvx.points.linear_algebra import unit_rows
from diffrac_cvx.points.linear_constraints import LinearConstraints
from diffrac_cvx.points.reading import as_stored, many_rows, raw_table, read_points
from diffrac_cvx.points.table import Table, array_table
from diffrac_cvx.problem.direction_problem import DirectionProblem, direction_problem, problem_by_rows
from diffrac_cvx.problem.penalty import Penalty, ridge_of, weights_of

TOLERANCE, ROW_TOLERANCE = 1e-10, 1e-14  # by how much a stated bound may exceed the proved one; for each row


@one_thread()
def check_certificate(X: npt.ArrayLike, certificate: Any) -> Certificate:
    """Verify a certificate on a table, and return it with the bounds that it proves.

    The certificate contains the parameters of its problem: compare nu, penalty, weights and constraints with your own.
    The bounds are recomputed from the table, rounding errors included, without any search.

    Source: duality; for labels, clique inequalities as in Deza and Laurent, Geometry of Cuts and Metrics, 1997.  Not in
    the paper.

    Parameters
    ----------
    X : (n, d) array
        The table, as given to the solver.
    certificate : Certificate, path, or result with a certificate
        The certificate, its file, or a `Result` or `OptimalLabels`.

    Returns
    -------
    Certificate
        The certificate, whose ``lower`` and ``upper`` are the bounds proved here.

    Raises
    ------
    DataError
        If the file is damaged, or the certificate does not prove its bounds on this table.
    """
    given = getattr(certificate, "certificate", certificate)
    if given is None:
        raise DataError("the result has no certificate. Pass a result of a solver of this package.")
    if not isinstance(given, Certificate):
        if not isinstance(given, str | PathLike):
            raise DataError(f"certificate has type {type(given).__name__}. Pass a certificate, its file, or a result.")
        given = Certificate.load(given)
    X = as_stored(X)
    if not isinstance(X, Table):
        require_table(X)
    try:
        checked = parse(arrays_of(given))
        if type(given.penalty) is not Penalty:  # a user-defined class states the problem
            checked = replace(checked, penalty=given.penalty)
        lower, upper = proved_bounds(X, checked)
        tolerance = TOLERANCE + ROW_TOLERANCE * checked.shape[0]
        if not lower >= checked.lower - tolerance * max(1.0, abs(checked.lower)):
            raise DataError(f"its multipliers prove {lower!r} and not the lower bound {checked.lower!r}")
        if not upper <= checked.upper + tolerance * max(1.0, abs(checked.upper)):
            raise DataError(f"the objective of its point may be {upper!r}, above {checked.upper!r}")
        if lower > upper:
            raise DataError(f"its lower bound {lower!r} exceeds the objective {upper!r} of its point")
    except DataError as error:
        raise DataError(f"the certificate is refused: {error}. It proves nothing about this table.") from error
    return replace(checked, lower=lower, upper=upper)


def arrays_of(given: Certificate) -> dict[str, Any]:
    """Return the arrays of a certificate; raise DataError if its parts are not those of one."""
    try:
        return given.arrays()
    except Exception as error:  # fields may have any type
        raise DataError(f"its fields have other types ({type(error).__name__})") from error


def proved_bounds(X: Any, given: Certificate) -> tuple[float, float]:
    """Return the bounds that a certificate proves on a table."""
    if np.shape(X) != given.shape:
        raise DataError(f"it is for a table of shape {given.shape}, not {np.shape(X)}")
    with np.errstate(all="ignore"):
        try:
            problem = Statement(X, given)
            lowers = [problem.lower_bound(proof) for proof in given.proofs]
            if np.any(np.isnan(lowers)):
                raise DataError("the bound of a proof is not a number")
            if lowers and not covers_all_signs([proof.signs for proof in given.proofs]):
                raise DataError("its branches do not cover all labels")
            return max(min(lowers, default=-np.inf), problem.trivial), problem.value()
        except (DataError, ParameterError, ResourceError):
            raise
        except (ArithmeticError, ValueError) as error:
            raise DataError(f"its numbers leave the range of double precision ({error})") from error


def never_streamed(n: int, d: int) -> bool:  # noqa: ARG001
    """Return False: the table is read into memory, however many rows it has."""
    return False


class Statement:
    """The problem of a certificate, posed from the table."""

    def __init__(self, X: Any, given: Certificate) -> None:
        self.given, self.table, (n, d) = given, X, given.shape
        self.pair_penalty, weights = weights_of(given.penalty, d), read_weights(given.weights)
        self.chunklets = Chunklets(np.arange(n), np.ones(n), -1)
        if given.membership is not None and given.sign is not None:
            self.chunklets = Chunklets(given.membership.astype(np.intp), given.sign, -1)
        constraints = None if given.membership is None else self.chunklets
        # The storage format of the table for which the solvers stated their bounds.
        are_many = None
        if any(proof.G is not None for proof in given.proofs):
            are_many = many_rows
        elif any(proof.signs is not None or proof.diagonal is not None for proof in given.proofs):
            are_many = never_streamed
        by_columns = given.penalty.has_l1 and given.relaxation == "directions"
        self.sample = read_points(X, weights, constraints=constraints, are_many=are_many, by_columns=by_columns)
        self.weights = np.ones(len(self.sample.X_all)) if weights is None else weights.of_all()
        self.problem = self.pose(self.sample.X)
        excluded = self.problem.coordinates.excluded
        found = np.zeros(0) if excluded is None else excluded.columns
        is_trivial = given.excluded is None and not given.proofs  # the bound then holds for all columns too
        if not is_trivial and not np.array_equal(np.zeros(0) if given.excluded is None else given.excluded, found):
            raise DataError("its excluded columns are not those that are collinear or constant")
        self.points = exclude_columns(self.sample.X, excluded)
        in_label_space = given.F is not None or any(proof.weight is not None for proof in given.proofs)
        if in_label_space and given.weights is not None:
            raise DataError("points with weights have no form in (7) and (8)")
        self.H = projection_of(self.sample.X, ridge_of(given.penalty, d)) if in_label_space else None
        if given.relaxation == "clusters" and not self.pair_penalty.is_even:
            raise DataError("K clusters have no known signs of coefficients")
        if given.linear is not None and not self.pair_penalty.is_even:
            raise DataError("labels with linear constraints have no known signs of coefficients")

    def pose(self, points: Table) -> DirectionProblem:
        return direction_problem(points, self.given.nu, self.given.penalty)

    # The lower bound

    @property
    def trivial(self) -> float:
        """The bound that holds without multipliers."""
        given, has_columns = self.given, bool(self.points.used_columns().any())
        if given.relaxation == "correlation":
            return -float(len(self.points)) if has_columns else 0.0
        if given.relaxation == "normalized":
            return -1.0 if has_columns else max(-((1.0 - given.nu) ** 0.5) * (1.0 + 2.0**-50), -1.0)
        if given.relaxation == "classes" and given.n_clusters is not None:
            return class_bound(0.0, given.nu, given.n_clusters)
        return given.nu if given.alpha is None and not has_columns else 0.0

    def lower_bound(self, proof: Proof) -> float:
        """Return the lower bound that one proof proves."""
        given = self.given
        if proof.diagonal is not None and proof.weight is not None and given.relaxation != "labels_at_alpha":
            return self.bound_in_label_space(proof.diagonal, proof.weight)
        if proof.diagonal is not None:
            return self.bound_on_labels(proof)
        if proof.u is None and proof.signs is not None:
            return self.bound_without_labels(proof.signs)
        if given.relaxation not in ("labels", "directions", "normalized", "clusters"):
            raise DataError(f"multipliers of directions prove nothing about {given.relaxation!r}")
        if proof.signs is not None and given.relaxation != "labels":
            raise DataError(f"branches prove nothing about {given.relaxation!r}")
        problem = self.problem if proof.signs is None else self.pose(self.merged(proof.signs))
        if given.relaxation == "normalized":
            return prove_normalized(problem, to_problem(proof, problem))
        was_read = proof.G is None and problem.X.is_streamed  # the rows may have been read into memory by the solver
        lower = -np.inf if was_read and proof.free is not None else bound_of(proof, problem)
        if lower == -np.inf and was_read:
            lower = bound_of(proof, self.pose(self.sample.X.in_columns()))
        return lower

    def bound_in_label_space(self, D: Array, weight: float) -> float:
        """Return the bound on (7), (8), or K classes, from D and the weight of 11'/n."""
        given, H = self.given, self.H
        if H is None or given.relaxation in ("normalized", "correlation"):
            raise DataError(f"the multipliers of (7) and (8) prove nothing about {given.relaxation!r}")
        if given.relaxation != "imbalance" and weight != 1.0 - given.nu:
            raise DataError("its weight is not 1 - nu")
        if len(D) != len(H.sums[2]):
            raise DataError(f"its diagonal has {len(D)} entries for {len(H.sums[2])} chunklets")
        lower = label_bound(H, LabelMultipliers(D, weight), given.alpha)
        is_class, K = given.relaxation == "classes", given.n_clusters
        return class_bound(lower, given.nu, K) if is_class and K is not None else lower

    def bound_without_labels(self, signs: Array) -> float:
        """Return infinity if no labels with these signs satisfy the linear constraints; otherwise raise DataError."""
        problem = self.label_problem()
        if problem.linear is None or len(signs) != len(problem.w) or not signs[problem.anchor]:
            raise DataError("a branch without multipliers is not one of linear constraints")
        if not problem.linear.are_contradicted(signs * signs[problem.anchor]):
            raise DataError("the linear constraints do not exclude the labels of a branch without multipliers")
        return np.inf

    def label_problem(self, nu: float | None = None) -> LabelProblem:
        """Return the label problem of the certificate, or that with another nu."""
        given, penalty = self.given, self.pair_penalty
        columns = np.ones(given.shape[1], dtype=bool)
        columns[[] if given.excluded is None else given.excluded] = False
        members = self.chunklets[:2]
        if given.labeled > int(members[0].max()):
            raise DataError("labeled is not a chunklet")
        table, weights, linear = raw_table(self.table), self.weights, (given.linear, given.labeled)
        nu, K = given.nu if nu is None else nu, given.n_clusters or 2
        return LabelProblem(table, nu, penalty.a, penalty.c, weights, *members, columns, *linear, K)

    def bound_on_labels(self, proof: Proof) -> float:
        """Return the bound on Eq. (9) from mu, rows of inequalities, and C."""
        given, penalty = self.given, self.pair_penalty
        is_partition = given.relaxation == "clusters" and given.n_clusters != 2
        if is_partition and not (penalty.is_zero and proof.rows is None):
            raise DataError("rows of two clusters, or an l1 term, are in the proof of a bound on K clusters")
        if not is_partition and (proof.sets is not None or proof.floors is not None):
            raise DataError("sets and floors prove bounds on more than two clusters alone")
        is_on_labels, at_alpha = given.relaxation in ("labels", "labels_at_alpha"), given.alpha is not None
        if not (is_partition or is_on_labels) or not penalty.is_l1 or proof.signs is not None:
            raise DataError("rows of inequalities prove bounds on labels, without groups and signs of columns, alone")
        nu = given.nu if not at_alpha else 1.0 - (proof.weight or 0.0)
        if not np.isfinite(nu):
            raise DataError("the multiplier of the imbalance is not finite")
        problem = self.label_problem(nu)
        if proof.diagonal is None or len(proof.diagonal) != len(problem.w):
            raise DataError(f"its diagonal does not fit {len(problem.w)} chunklets")
        C = symmetric_matrix(proof, given.shape[1])
        if C is not None and np.any(np.abs(C) > problem.box):
            raise DataError("C exceeds c_j c_k")
        n_rows = (0, 0) if problem.linear is None else tuple(len(rows.right) for rows in problem.linear)
        if proof.products is not None and (problem.linear is None or np.any(proof.products.rows >= n_rows[0])):
            raise DataError(f"its products have an inequality that is not one of {n_rows[0]}")
        if proof.equal is not None and len(proof.equal) != n_rows[1]:
            raise DataError(f"equal has {len(proof.equal)} rows for {n_rows[1]} equations")
        reason = "" if proof.sets is None else proof.sets.invalid(problem.n_clusters)
        if reason:
            raise DataError(reason)
        parts = proof.products, proof.equal, proof.sets, proof.floors
        lower = problem.lower_bound(LabelDual(proof.diagonal, proof.rows, C, *parts))
        return lower if given.alpha is None else at_imbalance(lower, nu, given.alpha)

    def merged(self, signs: Array) -> Table:
        """Return the points with the chunklets that a branch fixes merged into one."""
        membership, sign, _ = self.chunklets
        n_added = int(self.given.linear is not None and self.given.labeled < 0)  # a chunklet without points
        if len(signs) != int(membership.max()) + 1 + n_added or not signs.any():
            raise DataError(f"signs has {len(signs)} entries, or none that is not 0")
        chunklets = Chunklets(self.sample.with_weight(membership), self.sample.with_weight(sign), -1).merged(signs)
        return array_table(self.points.array(), self.points.weights, chunklets)

    # The upper bound

    def value(self) -> float:
        """Return an upper bound on the objective at the point of the certificate; a trivial one without a point."""
        given, problem = self.given, self.problem
        if given.labels is not None and given.direction is not None:
            return self.value_of_labels(given.labels, given.direction)
        if given.F is not None and self.H is not None:
            return self.value_in_label_space(given.F, self.H)
        if given.G is None:
            return {"normalized": np.inf, "correlation": 0.0}.get(given.relaxation, 1.0)
        if given.G.shape[0] != given.shape[1] + int(given.nu < 1.0):
            raise DataError(f"G has {given.G.shape[0]} rows")
        if given.relaxation == "directions":
            return RoundingBound(self.points, given.nu, given.penalty).or_trivial(given.G)[1]
        U = dense(problem.coordinates.transform_factor(given.G))
        size = float(np.sum((problem.R @ U) ** 2)) ** 0.5
        return normalized_value(problem, U / size) if size > 0.0 else np.inf

    def value_of_labels(self, labels: Array, direction: Array) -> float:
        """Return an upper bound on the objective of labels, or of clusters, at their directions."""
        given, sample, points, penalty = self.given, self.sample, self.points, self.pair_penalty
        K = given.n_clusters
        if given.relaxation == "clusters":
            found, K = as_clusters(Fields({"labels": labels}).integers("labels", (None,), 0, 2**62), len(labels), K)
            Z = (sample.with_weight(found)[:, None] == np.arange(K)).astype(np.float64)
            value = certified_clusters_value(points, Z, direction, given.nu, penalty)
        else:
            y = as_labels(labels, len(labels)).astype(np.float64)
            require_satisfied(y, self.chunklets)
            if given.linear is not None:
                self.require_linear(given.linear, y)
            y = sample.with_weight(y)
            value = min(  # of y or of -y, with sign constraints
                certified_labels_value(points, sign * y, sign * direction, given.nu, penalty)
                for sign in ((1.0,) if penalty.is_even else (1.0, -1.0))
            )
        return or_zero_direction(value, direction)[0]

    def require_linear(self, linear: LinearConstraints, y: Array) -> None:
        """Raise DataError if labels violate linear constraints, or known labels."""
        known = self.chunklets.membership == self.given.labeled
        if np.any(y[known] != self.chunklets.sign[known]):
            raise DataError("its labels are not those that are known")
        violated = linear.violated(y)
        if violated:
            raise DataError(f"its labels violate {violated[0]}")

    def value_in_label_space(self, F: Array, H: Projection) -> float:
        """Return an upper bound on the objective of Y = FF' with unit rows."""
        given, K = self.given, self.given.n_clusters
        F = F[:, 1:] if given.relaxation == "classes" else F  # the first column is constant
        F = H.points.chunklets.common_unit_rows(unit_rows(F))
        if given.relaxation == "imbalance" and given.alpha is not None:
            return balanced_value(H, F, given.alpha)
        if given.relaxation == "correlation":
            return correlation_value(H, F)
        value = label_value(H, F, given.nu)
        return value if K is None else class_value(value, given.nu, K)


def at_imbalance(lower: float, nu: float, alpha: float) -> float:
    """Return a lower bound for labels of imbalance alpha without its penalty, from a bound with weight nu."""
    return lower - nu * alpha - 2.0**-50 * (abs(lower) + abs(nu * alpha))


def read_weights(weights: Array | None) -> PointWeights | None:
    """Return sample weights; raise DataError if they were not divided by their sum."""
    if weights is None:
        return None
    mask = weights > 0.0
    positive = weights[mask]
    if mask.sum() >= 2 and positive.min() == positive.max():
        return PointWeights(mask, None)
    if mask.sum() < 2 or abs(math.fsum(positive) - 1.0) > 1e-15:
        raise DataError("weights are not weights of two points or more with sum 1")
    return PointWeights(mask, positive)


def covers_all_signs(branches: list[Array | None]) -> bool:
    """Return whether the branches cover all signs of the chunklets, up to one common sign.

    This holds if one of the branches fixes no further chunklet.  Otherwise one chunklet must be fixed in all of them,
    and the branches with either of its signs must cover the signs of the other chunklets.
    """
    if any(signs is None for signs in branches):
        return True
    signs = np.stack([one for one in branches if one is not None])
    common = np.flatnonzero(np.all(signs != 0.0, axis=0))
    if not len(common):
        return False
    pending = [(signs * signs[:, common[:1]], np.arange(signs.shape[1]) != common[0])]  # and the free chunklets
    while pending:
        signs, free = pending.pop()
        if len(signs) and not signs[:, free].any(axis=1).all():
            continue
        everywhere = np.flatnonzero(free & np.all(signs != 0.0, axis=0))
        if not len(signs) or not len(everywhere):
            return False
        others = free & (np.arange(len(free)) != everywhere[0])
        pending += [(signs[signs[:, everywhere[0]] == side], others) for side in (-1.0, 1.0)]
    return True


def symmetric_matrix(proof: Proof, size: int) -> Array | None:
    """Return C from its entries above the diagonal."""
    if proof.C_places is None or proof.C_values is None:
        return None
    C = np.zeros((size, size))
    if np.any(proof.C_places >= size):
        raise DataError(f"C has a place that is not below {size}")
    C[tuple(proof.C_places.T)] = proof.C_values
    return C + C.T


def bound_of(proof: Proof, problem: DirectionProblem) -> float:
    """Return the lower bound on problem (15) that a proof proves."""
    if proof.G is not None and not problem.X.is_streamed:
        problem = problem_by_rows(problem)
    return prove_bound(problem, to_problem(proof, problem))


def to_problem(proof: Proof, problem: DirectionProblem) -> Multipliers:
    """Return the multipliers of directions in the coordinates of a problem; DataError if they do not fit."""
    D, penalty = len(problem.c), problem.pair_penalty
    if proof.u is None or proof.t is None:
        raise DataError("a proof has neither a diagonal nor u and t")
    if proof.G is not None:
        if proof.G.shape[0] != len(problem.coordinates.scale) or len(proof.u):
            raise DataError("the G of a proof has another number of rows than V, or u is given too")
    elif len(proof.u) != len(problem.X):
        raise DataError(f"u has {len(proof.u)} entries for {len(problem.X)} rows")
    elif np.any((proof.u == 0.0) & ~problem.zero_rows):
        raise DataError("u is 0 at a row that is not 0")
    if proof.C_places is None:
        if not (proof.free is None and proof.blocks is None and proof.Z is None):
            raise DataError("a proof has E, blocks or Z without C")
        return Multipliers(proof.u, proof.t, G=proof.G)
    if not problem.has_l1 or np.any(proof.C_places >= D):
        raise DataError("C does not fit the penalty")
    scale, (j, k) = problem.coordinates.scale, proof.C_places.T
    values = proof.C_values * scale[j] * scale[k]
    C = scipy.sparse.csr_array((np.tile(values, 2), (np.append(j, k), np.append(k, j))), shape=(D, D))
    free, blocks, Z = proof.free, proof.blocks, proof.Z
    if free is None:
        if blocks is not None or Z is not None:
            raise DataError("a proof has blocks or Z without E")
        return Multipliers(proof.u, proof.t, C, G=proof.G)
    mask = np.zeros(D, dtype=bool)
    mask[free[free < D]] = True
    if np.any(free >= D) or np.any(np.diff(free) <= 0) or np.any(penalty.complete_groups(mask) != mask):
        raise DataError("E has a column twice, none that exists, or part of a group")
    if proof.G is not None or (not problem.X.in_memory and problem.X.is_streamed):
        raise DataError("E is not that of a table in memory")
    outside = np.flatnonzero(~mask)
    if np.any(problem.c[outside] == 0.0):
        raise DataError("E lacks a column without an l1 weight")
    if blocks is not None:
        numbers = np.arange(blocks.max(initial=-1) + 1)
        if len(blocks) != len(outside) or not np.array_equal(np.unique(blocks), numbers):
            raise DataError("blocks has another number of columns, or a block without columns")
        if not penalty.splits_into_blocks or Z is not None:
            raise DataError("blocks are not those of the columns outside E")
    if Z is not None:
        if len(Z) != len(outside):
            raise DataError(f"Z has {len(Z)} rows for {len(outside)} columns outside E")
        Z = Z * scale[outside][:, None]
    return Multipliers(proof.u, proof.t, C, free, blocks, Z)


def state(
    relaxation: str,
    nu: float,
    penalty: Penalty,
    points: Table,
    weights: PointWeights | None = None,
    constraints: Constraints | None = None,
    **fields: Any,
) -> Certificate:
    """Return the certificate of a problem of these points of positive weight; with trivial bounds by default."""
    n = len(points) if weights is None else len(weights.mask)
    chunklets = points.chunklets if constraints is None else constraints.chunklets_of(n)
    linear = None if constraints is None else constraints.linear_of(n)
    if linear is not None:
        fields |= {"linear": linear, "labeled": chunklets.labeled}
    if chunklets.max_size:
        fields |= {"membership": chunklets.membership, "sign": chunklets.sign}
    if points.excluded is not None:
        fields = {"excluded": points.excluded.columns, **fields}
    fields["weights"] = points.weights if weights is None else weights.of_all()
    bounds = {"lower": 0.0, "upper": 1.0, **fields}
    return Certificate(relaxation, nu=nu, penalty=penalty, shape=(n, points.shape[1]), **bounds)


def entries_of(C: Factor | None) -> dict[str, Any]:
    """Return the entries above the diagonal of C, by the names of a proof; nothing without C."""
    if C is None:
        return {}
    upper = scipy.sparse.coo_array(scipy.sparse.triu(C, 1))
    return {"C_places": np.column_stack(upper.coords).astype(np.int64), "C_values": upper.data}


def label_proof(dual: LabelDual) -> Proof:
    """Return the multipliers of a bound on labels or partitions as a proof."""
    fields = dual._asdict()
    return Proof(diagonal=fields.pop("mu"), **entries_of(fields.pop("C")), **fields)


def to_proof(
    found: Multipliers | LabelMultipliers | None, problem: DirectionProblem | None = None
) -> tuple[Proof, ...]:
    """Return the multipliers that a solver found as proofs of a certificate; none if the bound is trivial."""
    if found is None:
        return ()
    if isinstance(found, LabelMultipliers):
        return (Proof(diagonal=found.D, weight=found.weight),)
    fields: dict[str, Any] = {"u": found.u, "t": found.t, "G": found.G, "free": found.free, "blocks": found.labels}
    if problem is None or found.C is None:
        return (Proof(**fields),)
    scale = problem.coordinates.scale
    fields |= entries_of(problem.coordinates.inverse_transform_multiplier(found.C))
    if found.Z is not None and found.free is not None:
        outside = np.setdiff1d(np.arange(len(scale)), found.free)
        fields["Z"] = found.Z / scale[outside][:, None]
    return (Proof(**fields),)
