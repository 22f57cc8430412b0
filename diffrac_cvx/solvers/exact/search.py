"""Certified optimal labels for Eq. (9): a portfolio of branch and bound and cutting planes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from diffrac_cvx.certificates.consistency import require_consistent
from diffrac_cvx.certificates.cut_certificate import CutCertificate, LabelProblem
from diffrac_cvx.certificates.values import certified_labels_value, or_zero_direction
from diffrac_cvx.errors import ParameterError
from diffrac_cvx.machine.deadlines import Timer, time_limited
from diffrac_cvx.machine.memory import available_memory, require_memory
from diffrac_cvx.machine.threads import one_thread
from diffrac_cvx.points.checks import Array, in_unit_interval, nonnegative, positive
from diffrac_cvx.points.constraints import Chunklets, Constraints
from diffrac_cvx.points.dense import array_points
from diffrac_cvx.points.floating_point import round_up
from diffrac_cvx.points.linear_algebra import inverse_or_one
from diffrac_cvx.points.points import Points
from diffrac_cvx.points.reading import raw_table, read_points
from diffrac_cvx.problem.direction_problem import without_collinear
from diffrac_cvx.problem.penalty import NO_PENALTY, Penalty, Weight, resolve_penalty, weights_of
from diffrac_cvx.problem.result import Bracket, Status
from diffrac_cvx.rounding.directions import oriented_direction
from diffrac_cvx.solvers.exact.cuts import CutRelaxation
from diffrac_cvx.solvers.exact.tree import Tree

TREE_WORK, MORE_WORK = 2e9, 1.5e10  # operations of branch and bound before the cutting planes; if it is successful
MIN_ROOT_GAPS = 0.01, 0.05  # gaps of the root relaxation, without and with an l1 term, below which it gets more
MOST_COLUMNS = 1000  # for cutting planes without an l1 term, if there are fewer chunklets
CUT_BYTES = 80.0  # bytes of the cutting planes for each pair of chunklets


@dataclass(frozen=True, eq=False)
class OptimalLabels:
    """Result of `optimal_labels`: labels and certified bounds on the optimal objective.

    Attributes
    ----------
    labels : (n,) array
        Best labels found, -1 or +1; they satisfy the constraints.
    lower, upper : float
        Certified bounds, rounding errors included: no labels that satisfy the constraints have an objective of Eq. (9)
        below ``lower``, and that of ``labels`` is at most ``upper``.
    status : Status
        Termination status of the search, or of the search for persistent points if that was cut short.
    n_nodes, n_cuts : int
        Number of relaxations solved by branch and bound, and of clique inequalities at the end of the cutting planes.
    root_bound : float
        Lower bound of the root relaxation, before branching and without inequalities.
    hardness : float
        d_eff (d_eff + 1) / (2 m), with d_eff = tr X (X'X + n Diag(a)^2)^-1 X' for m chunklets (points, without
        constraints): the smaller, the easier.  See the notes of `optimal_labels`.
    history : list of (seconds, lower, upper)
        Bounds over time; the upper bounds are not corrected for rounding.
    certificate : CutCertificate or None
        Certificate of the bounds, which `check_certificate` verifies, if the cutting planes proved the lower bound.
    seconds : float
        Wall-clock time in seconds.
    persistent : (n,) array of bool, or None
        Persistent points: those certified to have the same label, up to one global sign, in every labelling whose
        objective is at most ``upper`` + ``persistency_slack``.  Known labels fix the sign.  Points still
        undecided at the time limit or when the callback stopped the search are False.  None unless requested.
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
    certificate: CutCertificate | None = None
    persistent: npt.NDArray[np.bool_] | None = None
    n_excluded: int = 0

    @property
    def gap(self) -> float:
        """Gap ``upper - lower``, rounded up."""
        return self.bracket.gap

    @property
    def bracket(self) -> Bracket:
        """Lower and upper bound."""
        return Bracket(self.lower, self.upper, self.n_excluded)

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
    persistency_slack: float | None = None,
    certificate: bool = False,
) -> OptimalLabels:
    r"""Return the best labels of Eq. (9), with certified bounds on the optimal objective.

    .. math::
        \min_{y \in \{-1, 1\}^n,\ v}\ \tfrac1n \|\Pi_n y - X v\|_2^2 + \nu (1^\top y / n)^2 + \sum_j a_j^2 v_j^2
        + \Big( \sum_j c_j |v_j| \Big)^2

    A portfolio of two methods.  Branch and bound: each node is the relaxation (15) with the labels of some points fixed
    relative to each other, and is closed if no labels in it can improve on the best ones found by more than tol.
    Cutting planes: the relaxation in the space of labels with violated triangle inequalities, and inequalities on five
    and seven points, added until its bound reaches the best labels; memory is O(n^2).  Branch and bound comes first,
    for a fixed amount of work, then cutting planes, and where these stall branch and bound again.  The run time may
    grow exponentially; a search that is stopped early returns valid bounds.

    Without an l1 term, this is L1-norm principal component analysis: the best labels are the signs of :math:`X v` at
    the v that maximises :math:`\|X v\|_1` over :math:`v^\top (X^\top X / n + \mathrm{Diag}(a)^2) v = 1`.

    Notes
    -----
    The number ``hardness`` of the result predicts the effort: nearly all instances of ``make optimal`` with a hardness
    up to 0.25 are solved within its limit of seconds, and most up to 2.  Cutting planes are used if their memory is
    free, for tables with at most as many columns as chunklets or, without an l1 term, with at most 1000 columns.

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
        Must-link and cannot-link constraints and known labels; only labellings that satisfy them are considered.
    tol : float
        Certified gap ``upper - lower`` at which the search stops, > 0; default 1e-4.
    time_limit : float, optional
        Time limit in seconds for the search and for ``persistency_slack`` together; the bounds are valid in any case.
        If only the latter is cut short, the labels may still be certified optimal: see ``gap``.
    callback : callable, optional
        Called periodically with the bounds and the numbers of nodes and of inequalities; return True to stop.
    sample_weight : (n,) array, optional
        Non-negative weights of the points, on any scale: weight 2 duplicates a point, weight 0 ignores it.
    persistency_slack : float, optional
        If given, also find the points that have the same label in every labelling whose objective is at most this
        much above ``upper``.  This takes one more relaxation per point after the search.
    certificate : bool
        Whether to search for a certificate where branch and bound alone proves the labels optimal; default False.

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
        If the data of the search, or of a certificate on request, would not fit in memory.

    Examples
    --------
    >>> found = optimal_labels([[0.0], [1.0], [2.0], [9.0]], ridge=0.1)
    >>> found.labels.tolist()
    [1.0, 1.0, 1.0, -1.0]
    """
    penalty = resolve_penalty(penalty, lam, ridge)
    nu, tol = in_unit_interval(nu, "nu"), positive(tol, "tol")
    timer = Timer(None if time_limit is None else nonnegative(time_limit, "time_limit"))
    constraints = constraints or Constraints()
    sample = read_points(X, sample_weight, constraints=constraints)
    all_chunklets = constraints.chunklets_of(sample.n_all)
    chunklets = Chunklets(
        sample.with_weight(all_chunklets.membership), sample.with_weight(all_chunklets.sign), all_chunklets.labeled
    )
    reduced = without_collinear(sample.X, penalty)
    points, weights = array_points(reduced.array(), reduced.weights), weights_of(penalty, reduced.shape[1])
    tree = Tree(points, nu, penalty, chunklets, all_chunklets.n_chunklets, tol, reduced.n_excluded)
    tree.timer, tree.callback = timer, callback
    if persistency_slack is not None:
        nonnegative(persistency_slack, "persistency_slack")

    # 1. The problem of the cutting planes, which know no feature groups and no signs of coefficients.
    fields: dict[str, Any] = {
        "nu": nu,
        "ridge": weights.a**2,
        "lam": weights.c**2,
        "weights": sample.expand(reduced.normalized_weights),
        "membership": all_chunklets.membership,
        "sign": all_chunklets.sign,
        "columns": np.isin(
            np.arange(reduced.shape[1]), reduced.excluded.columns if reduced.excluded else (), invert=True
        ),
    }
    m, table, relaxation = all_chunklets.n_chunklets, None, None
    size, most_columns = CUT_BYTES * m**2, 0 if penalty.has_l1 else MOST_COLUMNS
    if weights.is_l1 and points.shape[1] <= max(m, most_columns) and size < available_memory():
        table = raw_table(X)
        problem = LabelProblem(table, **fields)
        relaxation = CutRelaxation(problem) if problem.least > 0.0 and problem.B.any() else None
    if certificate and not weights.is_l1:
        raise ParameterError("certificate = True supports no feature groups and no sign constraints. Remove them.")
    if certificate:
        require_memory(size, f"the certificate of {m} points", "use fewer points")

    # 2. Branch and bound for a fixed amount of work, cutting planes, and branch and bound again.
    def add_cuts(relaxation: CutRelaxation, improve: Callable[[Array], float]) -> Status | None:
        def report() -> Status | None:
            tree.floor, tree.n_cuts = max(tree.floor, relaxation.lower), relaxation.n_cuts
            return tree.stop_status()

        return relaxation.solve(lambda: tree.cutoff, improve, report)

    with time_limited(timer.deadline):
        status = tree.search(np.inf if relaxation is None else TREE_WORK)
        root_gap = tree.best - tree.root_bound
        if status is None and (tree.best - tree.lower < 0.4 * root_gap or root_gap < MIN_ROOT_GAPS[penalty.has_l1]):
            status = tree.search(MORE_WORK)  # branch and bound closes the gap quickly
        if relaxation is not None and (status is None or (certificate and status is Status.OPTIMAL)):
            status = add_cuts(relaxation, tree.improve) or status
        status = status or tree.search() or Status.STALLED

    # 3. Labels of the points, with the bounds.
    labels = all_chunklets.labels_from_signs(tree.signs)
    labels = labels if all_chunklets.labeled >= 0 else labels * labels[0]
    oriented, v = oriented_direction(points, sample.with_weight(labels), weights)
    upper, v = or_zero_direction(certified_labels_value(points, oriented, v, nu, weights), v)

    # 4. Points with the same label in all labellings whose objective is at most `upper`, rounding included, plus slack.
    def bound_merged(i: int, j: int, sign: float, cutoff: float) -> float:
        assert relaxation is not None
        if relaxation.n_rounds == 0:  # branch and bound alone proved the labels optimal
            add_cuts(relaxation, lambda _: tree.best)
        node = relaxation.merged(i, j, sign)
        node.solve(lambda: cutoff, lambda _: cutoff, tree.stop_status)
        return node.lower

    persistent = None
    if persistency_slack is not None:
        cutoff, tighter = round_up(upper + persistency_slack), None if relaxation is None else bound_merged
        with time_limited(timer.deadline):
            persistent_chunklets, status = tree.persistent(cutoff, all_chunklets.labeled, status, tighter)
        persistent = persistent_chunklets[all_chunklets.membership]
    lower = max(tree.lower, 0.0)
    require_consistent(lower, upper, "these labels")
    if status is Status.OPTIMAL and upper - lower > tol:
        status = Status.STALLED
    proof = None
    if table is not None and relaxation is not None and relaxation.dual is not None:
        diagonal, cliques, C = relaxation.dual
        v = v * (oriented[0] * sample.with_weight(labels)[0])
        C = np.zeros((0, 0)) if C is None else C
        proof = CutCertificate(labels, v, 0.0, 1.0, diagonal=diagonal, cliques=cliques, C=C, **fields)
        proof = proof.with_bounds(table)
    return OptimalLabels(
        labels=labels,
        lower=lower,
        upper=upper,
        status=status,
        n_nodes=tree.n_nodes,
        n_cuts=tree.n_cuts,
        root_bound=tree.root_bound,
        hardness=hardness(points, weights.a, m),
        history=tree.history,
        seconds=timer.elapsed,
        certificate=proof,
        persistent=persistent,
        n_excluded=tree.n_excluded,
    )


def hardness(points: Points, a: Array, m: int) -> float:
    """Return d_eff (d_eff + 1) / (2 m), with d_eff = tr X (X'PX + Diag(a)^2)^-1 X'P computed on the shorter side."""
    X = points.weighted_rows().array() / len(points) ** 0.5
    units = np.sqrt(np.sum(X**2, axis=0) + a**2)
    X, a = X * inverse_or_one(units), np.maximum(a * inverse_or_one(units), 1e-12)  # nearly none, for a = 0
    squares = np.linalg.svd(X / a, compute_uv=False) ** 2
    effective = float(np.sum(squares / (1.0 + squares)))
    return effective * (effective + 1.0) / (2.0 * m)
