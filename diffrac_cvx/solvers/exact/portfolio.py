"""Certified optimal labels for Eq. (9): a portfolio of branch and bound and cutting planes."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from diffrac_cvx.certificates.certificate import Certificate, Proof
from diffrac_cvx.certificates.checker import label_proof, state
from diffrac_cvx.certificates.consistency import require_consistent
from diffrac_cvx.certificates.labels import LabelProblem
from diffrac_cvx.errors import ParameterError
from diffrac_cvx.machine.deadlines import Timer, time_limited
from diffrac_cvx.machine.memory import available_memory
from diffrac_cvx.machine.threads import one_thread
from diffrac_cvx.points.checks import Array, in_unit_interval, nonnegative, positive, require_callback, require_flag
from diffrac_cvx.points.constraints import UNCONSTRAINED, Chunklets, Constraints, require_constraints
from diffrac_cvx.points.linear_algebra import inverse_or_one
from diffrac_cvx.points.linear_constraints import LinearConstraints
from diffrac_cvx.points.reading import Sample, raw_table, read_points
from diffrac_cvx.points.table import Excluded, Table
from diffrac_cvx.problem.direction_problem import without_collinear
from diffrac_cvx.problem.penalty import NO_PENALTY, Penalty, Weight, resolve_penalty
from diffrac_cvx.problem.result import Bracket, Bracketed, Status
from diffrac_cvx.solvers.exact.cuts import CutRelaxation
from diffrac_cvx.solvers.exact.feasible import FeasibleSigns, require_feasible
from diffrac_cvx.solvers.exact.tree import Tree

TREE_WORK, MORE_WORK = 2e9, 1.5e10  # operations of branch and bound before cutting planes; if it progresses well
LAST_WORK = 2e11  # operations of branch and bound after cutting planes, if there are linear constraints
MIN_ROOT_GAPS = 0.01, 0.05  # root gaps, without and with an l1 term, below which it gets more work
MOST_COLUMNS = 1000  # largest number for cutting planes without an l1 term, if there are fewer chunklets
CUT_BYTES = 80.0  # memory of the cutting planes per pair of chunklets, in bytes


@dataclass(frozen=True, eq=False)
class OptimalLabels(Bracketed):
    """Result of `optimal_labels`: labels and certified bounds on the optimal objective.

    Attributes
    ----------
    labels : (n,) array
        Best labels found, -1 or +1; they satisfy the constraints.
    lower, upper : float
        Certified bounds, rounding errors included: no labels that satisfy the constraints have an objective of Eq. (9)
        below ``lower``, and that of ``labels`` is at most ``upper``.
    status : Status
        Termination status of the search.
    n_nodes, n_cuts : int
        Number of relaxations solved by branch and bound, and of inequalities at the end of the cutting planes.
    root_bound : float
        Lower bound of the root relaxation, before branching and without inequalities.
    hardness : float
        d_eff (d_eff + 1) / (2 m), with d_eff = tr X (X'X + n Diag(a)^2)^-1 X' for m chunklets (points, without
        constraints): the smaller, the easier.  See the notes of `optimal_labels`.
    history : list of (seconds, lower, upper)
        Bounds over time; the upper bounds are not corrected for rounding.
    certificate : Certificate or None
        Proof of the bounds, for `check_certificate`: multipliers of inequalities, or those of each branch.
    seconds : float
        Wall-clock time in seconds.
    n_excluded : int
        Number of excluded columns, see `Result`; labels and bounds refer to the table without them.
    """

    labels: Array
    lower: float
    upper: float
    status: Status
    n_nodes: int
    n_cuts: int
    root_bound: float
    hardness: float
    history: list[tuple[float, float, float]]
    seconds: float
    certificate: Certificate | None = None
    n_excluded: int = 0

    def __str__(self) -> str:
        cuts = f" and {self.n_cuts} inequalities" if self.n_cuts else ""
        found = f"{self.bracket} after {self.n_nodes} relaxations{cuts} in {self.seconds:.3g} s"
        if self.status is Status.OPTIMAL:
            return f"certified optimal to within the gap of {found}"
        return f"{self.status}: {found}"


@one_thread()
def optimal_labels(
    X: npt.ArrayLike,
    nu: float = 1.0,
    penalty: Penalty = NO_PENALTY,
    *,
    lam: Weight = None,
    ridge: Weight = None,
    constraints: Constraints | None = None,
    tol: float = 1e-4,
    time_limit: float | None = None,
    callback: Callable[[Bracket, int, int], bool | None] | None = None,
    sample_weight: npt.ArrayLike | None = None,
    certificate: bool = True,
) -> OptimalLabels:
    r"""Return the best labels of Eq. (9), with certified bounds on the optimal objective.

    .. math::
        \min_{y \in \{-1, 1\}^n,\ v}\ \tfrac1n \|\Pi_n y - X v\|_2^2 + \nu (1^\top y / n)^2 + \sum_j a_j^2 v_j^2
        + \Big( \sum_j c_j |v_j| \Big)^2

    A portfolio of two methods.  Branch and bound: each node is the relaxation (15) with the labels of some points fixed
    relative to each other.  It is closed if no labels in it can improve on the best known ones by more than tol.
    Cutting planes: violated triangle inequalities, and inequalities on five and seven points, are added to the
    relaxation in the space of labels until its bound reaches the best labels; memory is O(n^2).  Branch and bound runs
    first, for a fixed amount of work, then cutting planes, and if these stall branch and bound again.  The run time may
    grow exponentially, except with linear constraints: the search may then end with a gap.  A search that is stopped
    early returns valid bounds.

    Without an l1 term, this is L1-norm principal component analysis: the best labels are the signs of :math:`X v` at
    the v that maximises :math:`\|X v\|_1` over :math:`v^\top (X^\top X / n + \mathrm{Diag}(a)^2) v = 1`.

    Notes ----- The number ``hardness`` of the result predicts the effort: nearly all instances of ``make optimal`` with
    a hardness up to 0.25 are solved within its limit of seconds, and most up to 2.  This is an observation on these
    instances: for equal clusters at the corners of a regular simplex of even dimension at least 4, triangle
    inequalities leave a gap at any number of points.  Cutting planes are used if enough memory is free, and if the
    table has at most as many columns as chunklets or, without an l1 term, at most 1000 columns.

    Source: Eq. (9) with constraints; the methods are not in the paper.

    Parameters
    ----------
    X : (n, d) array
        Data; centred internally.
    nu : float
        Weight of the imbalance penalty, in [0, 1]; default 1.
    penalty : Penalty
        Ridge weights a and l1 weights c; no penalty by default.
    lam, ridge : float or (d,) array, optional
        Weights of the squared l1 norm and of the ridge, short for ``penalty=Penalty(lam=lam, ridge=ridge)``.
    constraints : Constraints, optional
        Constraints; only labels that satisfy them are considered.  With bags, order, sizes or rows, labels +1 and -1
        are not interchangeable, and nu = 0 makes sense if the constraints exclude equal labels for all points.
    tol : float
        Certified gap ``upper - lower`` at which the search stops, > 0; default 1e-4.
    time_limit : float, optional
        Time limit in seconds; the bounds are valid in any case.
    callback : callable, optional
        Called periodically with the bounds and the numbers of nodes and of inequalities; return True to stop.
    sample_weight : (n,) array, optional
        Non-negative weights of the points, on any scale: weight 2 duplicates a point, weight 0 ignores it.
    certificate : bool
        Whether the result has a certificate, which needs memory for each branch of the search; default True.

    Returns
    -------
    OptimalLabels
        Labels with their certified bounds.

    Raises
    ------
    DataError, ParameterError
        If an input is invalid, or the constraints contradict each other.
    InvalidBoundError
        If the objective of the labels is below the lower bound: one of the two is wrong, and neither is returned.
    ResourceError
        If the data of the search would not fit in memory.

    Examples
    --------
    >>> found = optimal_labels([[0.0], [1.0], [2.0], [9.0]], ridge=0.1)
    >>> found.labels.tolist()
    [1.0, 1.0, 1.0, -1.0]
    """
    # 1. The problem: labels of chunklets, and points without collinear columns.
    penalty = resolve_penalty(penalty, lam, ridge)
    nu, tol = in_unit_interval(nu, "nu"), positive(tol, "tol")
    timer = Timer(None if time_limit is None else nonnegative(time_limit, "time_limit"))
    require_constraints(constraints)
    require_callback(callback)
    require_flag(certificate, "certificate")
    given = constraints or Constraints()
    sample = read_points(X, sample_weight, constraints=given.without_linear)
    chunklets, linear = given.chunklets_of(sample.n_all), given.linear_of(sample.n_all)
    feasible = None if linear is None else feasible_signs(linear, chunklets)
    members, signs = sample.with_weight(chunklets.membership), sample.with_weight(chunklets.sign)
    of_points = Chunklets(members, signs, chunklets.labeled)
    points = without_collinear(sample.X, penalty)
    m = chunklets.n_chunklets if feasible is None else len(feasible)
    tree = Tree(points, nu, penalty, of_points, m, tol, timer, feasible)
    tree.callback = callback
    if linear is not None and not tree.weights.is_even:
        raise ParameterError("penalty has known signs of coefficients, and constraints has rows. Pass one of them.")
    # 2. The problem of the cutting planes.
    relaxation = cut_relaxation(X, tree, sample, chunklets, points.excluded, linear)
    # 3. Branch and bound for a fixed amount of work, cutting planes, and branch and bound again.
    with time_limited(timer.deadline):
        status = search(tree, relaxation)
    # 4. Labels of the points, with the better of the two bounds and its proof.
    labels = chunklets.labels_from_signs(tree.signs)
    labels = labels if chunklets.labeled >= 0 or linear is not None else labels * labels[0]
    upper, v = tree.evaluate(sample.with_weight(labels))
    lower, proofs = proved_bound(tree, relaxation)
    require_consistent(lower, upper, "these labels")
    proof: Certificate | None = None
    if certificate:
        without_chunklets = replace(points, chunklets=UNCONSTRAINED)
        fields = {"lower": lower, "upper": upper, "labels": labels, "direction": v, "proofs": proofs}
        proof = state("labels", nu, penalty, without_chunklets, sample.weights, constraints, **fields)
    return OptimalLabels(
        labels=labels,
        lower=lower,
        upper=upper,
        status=Status.STALLED if status is Status.OPTIMAL and upper - lower > tol else status,
        n_nodes=tree.n_nodes,
        n_cuts=tree.n_cuts,
        root_bound=tree.root_bound,
        hardness=hardness(tree.points, tree.weights.a, len(tree.rows)),
        history=tree.history,
        seconds=timer.elapsed,
        certificate=proof,
        n_excluded=tree.n_excluded,
    )


def cut_relaxation(
    X: npt.ArrayLike,
    tree: Tree,
    sample: Sample,
    chunklets: Chunklets,
    excluded: Excluded | None,
    linear: LinearConstraints | None,
) -> CutRelaxation | None:
    """Return the problem of the cutting planes; None if they do not apply, or all columns are constant.

    Cutting planes support neither feature groups nor sign constraints, and must fit in memory.
    """
    d, m, penalty = tree.points.shape[1], chunklets.n_chunklets, tree.weights
    most_columns = m if tree.penalty.has_l1 else max(m, MOST_COLUMNS)
    if not penalty.is_l1 or d > most_columns or CUT_BYTES * m**2 >= available_memory():
        return None
    included = np.ones(d, dtype=bool)
    included[[] if excluded is None else excluded.columns] = False
    counts = np.ones(sample.n_all) if sample.weights is None else sample.weights.of_all()
    members, given = chunklets[:2], (linear, chunklets.labeled)
    problem = LabelProblem(raw_table(X), tree.nu, penalty.a, penalty.c, counts, *members, included, *given)
    return CutRelaxation(problem) if problem.least > 0.0 and problem.B.any() else None


def feasible_signs(linear: LinearConstraints, chunklets: Chunklets) -> FeasibleSigns:
    """Return the signs of chunklets that satisfy linear constraints; raise DataError if there are none."""
    m = chunklets.n_chunklets
    anchor, m = (chunklets.labeled, m) if chunklets.labeled >= 0 else (m, m + 1)
    feasible = FeasibleSigns(linear.on_signs(chunklets.membership, chunklets.sign, anchor, m), anchor)
    require_feasible(feasible, has_known=chunklets.labeled >= 0)
    return feasible


def search(tree: Tree, relaxation: CutRelaxation | None) -> Status:
    """Search by branch and bound, longer if it progresses well, then by cutting planes and again by branch and bound.

    Afterwards the tree holds the best labels.
    """

    def report() -> Status | None:
        assert relaxation is not None
        tree.floor, tree.n_cuts = max(tree.floor, relaxation.lower), relaxation.n_cuts
        return tree.stop_status()

    status = tree.search(np.inf if relaxation is None else TREE_WORK)
    root_gap, least_gap = tree.best - tree.root_bound, MIN_ROOT_GAPS[tree.penalty.has_l1]
    if status is None and (tree.best - tree.lower < 0.4 * root_gap or root_gap < least_gap):
        status = tree.search(MORE_WORK)
    if relaxation is not None and status is None:
        status = relaxation.solve(lambda: tree.cutoff, tree.improve, report)
    return status or tree.search(np.inf if tree.feasible is None else LAST_WORK) or Status.STALLED


def proved_bound(tree: Tree, relaxation: CutRelaxation | None) -> tuple[float, tuple[Proof, ...]]:
    """Return the better of the bounds from branching and from inequalities, with its proofs."""
    proofs = tree.proofs
    lower = max(tree.branching_bound if proofs else 0.0, tree.trivial)
    if relaxation is None or relaxation.dual is None or relaxation.lower <= lower:
        return lower, proofs
    return relaxation.lower, (label_proof(relaxation.dual),)


def hardness(points: Table, a: Array, m: int) -> float:
    """Return d_eff (d_eff + 1) / (2 m), with d_eff = tr X (X'PX + Diag(a)^2)^-1 X'P computed on the shorter side."""
    X = points.weighted_rows().array() / len(points) ** 0.5
    units = np.sqrt(np.sum(X**2, axis=0) + a**2)
    X, a = X * inverse_or_one(units), np.maximum(a * inverse_or_one(units), 1e-12)  # a negligible ridge, for a = 0
    squares = np.linalg.svd(X / a, compute_uv=False) ** 2
    effective = float(np.sum(squares / (1.0 + squares)))
    return effective * (effective + 1.0) / (2.0 * m)
