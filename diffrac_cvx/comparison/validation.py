"""Validation of a solver of problem (15) against the reference implementation, on designed instances."""

import inspect
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.optimize

from diffrac_cvx.certificates import certify_v, certify_y, check_certificate
from diffrac_cvx.comparison.disagreements import contradictions_between, contradictions_within
from diffrac_cvx.comparison.methods import MethodResult, summarize_error
from diffrac_cvx.comparison.rendered_table import ReportTable, TableReport, table_of_entries
from diffrac_cvx.datasets.planted import make_planted
from diffrac_cvx.errors import DataError, DegenerateDataWarning, ParameterError
from diffrac_cvx.points.checks import Array, as_seed, positive, repetitions
from diffrac_cvx.points.factors import dense
from diffrac_cvx.problem.formatting import format_ends, format_gap, format_lower, formatted_lower, formatted_upper
from diffrac_cvx.problem.penalty import Penalty
from diffrac_cvx.problem.result import Bracket, Result, Status
from diffrac_cvx.relaxations.direction_space import v_space
from diffrac_cvx.solvers import solve

SHAPES = ((12, 3), (20, 5), (30, 8), (40, 2), (25, 12), (60, 6), (10, 14), (8, 20), (16, 16), (30, 1))
NUS = (0.0, 0.25, 0.5, 0.75, 1.0)
PENALTIES = ("none", "ridge", "weak l1", "strong l1", "mixed")
TRAITS = ("clean", "noisy", "unbalanced", "badly scaled", "degenerate")
FEASIBILITY = 1e-6  # relative violation of a constraint that counts as rounding
AGREEMENT = 1e-6  # difference between a reported objective and the recomputed one that counts as rounding
DEFAULT_TOL = 1e-4
REFERENCE_TOL = 1e-6
MAX_EVALUATIONS = 100  # of the search for the lower bound of labels; each of its bounds is valid

COLUMNS = (
    "n", "d", "nu", "penalty", "trait", "returned", "objective", "lower", "upper", "reference_lower", "reference_upper",
    "status", "seconds", "violations",
)  # fmt: skip

Solver = Callable[[Array, float, Penalty], Any]


class Instance(NamedTuple):
    """Arguments of a solver: data X (n, d), weight nu of the imbalance, and penalty."""

    X: Array
    nu: float
    penalty: Penalty


class Design(NamedTuple):
    """Kind of an instance: its size, nu, and the names of its penalty and of a trait of its data."""

    n: int
    d: int
    nu: float
    penalty: str
    trait: str

    def instance(self, seed: int) -> Instance:
        """Return the instance of this kind with a seed."""
        n, d, nu, penalty, trait = self
        rng = np.random.default_rng([seed, n, d, int(100 * nu), PENALTIES.index(penalty), TRAITS.index(trait)])
        noise = {"noisy": 0.5, "clean": 0.0}.get(trait, 0.1)
        X = make_planted(n, d, min(2, d), 0.25 if trait == "unbalanced" else 0.0, noise, rng=rng).X
        units: Array = np.ones(d)
        if trait == "badly scaled":
            units = np.power(10.0, rng.integers(-4, 5, size=d))
        if trait == "degenerate":
            X[0] = 0.0
            X[:, -1] = X[:, 0]
        varied = rng.uniform(0.5, 1.5, size=d)
        weights = {
            "none": Penalty(),
            "ridge": Penalty(a=0.3 * units),
            "weak l1": Penalty(c=0.1 * units),
            "strong l1": Penalty(c=0.6 * units),
            "mixed": Penalty(a=0.2 * units * varied, c=0.3 * units * (varied > 0.8)),
        }
        return Instance(X * units, nu, weights[penalty])


def all_designs() -> list[Design]:
    """Return all sizes, nu and penalties, with traits such that every pair of traits occurs."""
    return [
        Design(n, d, nu, penalty, TRAITS[(i + 2 * j + 3 * k) % len(TRAITS)])
        for (i, (n, d)), (j, nu), (k, penalty) in product(enumerate(SHAPES), enumerate(NUS), enumerate(PENALTIES))
    ]


@dataclass(frozen=True, eq=False)
class Validation(TableReport):
    """Result of `validate`: one row for each instance, with all violations.

    Attributes
    ----------
    rows : tuple of dict
        "n", "d", "nu", "penalty", "trait" (kind of the instance), "returned" ("V", "F" or "Result"), "objective"
        (recomputed at the returned point), "lower", "upper" (bounds of the result, or those of `certify_v` or
        `certify_y`), "reference_lower", "reference_upper" (bounds of the reference), "status", "seconds", and
        "violations", a tuple of sentences that is empty if the solver is right.
    instances : tuple of Instance
        X, nu and the penalty of each instance, to solve it again.
    """

    rows: tuple[dict[str, Any], ...]
    instances: tuple[Instance, ...]

    @property
    def passed(self) -> bool:
        """Whether all instances passed."""
        return not self.violations

    @property
    def violations(self) -> tuple[str, ...]:
        """All violations, each with the number and the kind of its instance."""
        return tuple(
            f"instance {i} ({row['n']} x {row['d']}, nu = {row['nu']:g}, {row['penalty']}, {row['trait']}): {violation}"
            for i, row in enumerate(self.rows)
            for violation in row["violations"]
        )

    @property
    def table(self) -> Any:
        """The rows as a pandas DataFrame."""
        import pandas

        return pandas.DataFrame(list(self.rows))

    def tables(self) -> list[ReportTable]:
        """Return the printed table: all columns, with the number of violations instead of their texts."""
        records = [
            {"instance": i, **row, "violations": len(row["violations"]) or None} for i, row in enumerate(self.rows)
        ]
        return [table_of_entries(records, ("instance", *COLUMNS))]

    def messages(self) -> list[str]:
        """Return the number of instances that passed, and the violations."""
        wrong = sum(bool(row["violations"]) for row in self.rows)
        return [f"{len(self.rows) - wrong} of {len(self.rows)} instances passed", *self.violations]


def validate(solver: Solver, n_instances: int = 50, rng: int = 0, *, tol: float | None = None) -> Validation:
    r"""Check a solver of problem (15) against the CVXPY reference, and name everything that is wrong.

    Each instance is solved by the solver and by `v_space` with CLARABEL, whose bounds are certified.  The instances
    have 8 to 60 points and 1 to 20 features, nu from 0 to 1, no penalty, a ridge, an l1 penalty or both.  The data are
    clean, noisy, unbalanced, badly scaled (columns from 1e-4 to 1e4) or degenerate (a zero row, two equal columns).

    The checks: the solver raises no error and does not change X; the returned point is finite, has the right shape and
    is feasible (V symmetric and positive semidefinite, F with rows of norm 1); it is optimal up to ``tol``; the value
    of a `Result` is the objective at its V, its F belongs to its V, its bounds contain the optimum, and a status
    that claims optimality is true.  The objectives are recomputed here and share no code with the solvers:

    .. math::
        f(V) = 1 - \tfrac2n \sum_i \sqrt{x_i^\top V x_i} + \tfrac1n \mathrm{tr}\, X^\top X V + \Gamma(V), \qquad
        h(F) = \min_W\ \tfrac1n \|\Pi_n F - X W\|_F^2 + \tfrac{\nu}{n^2} \|F^\top 1\|_2^2 + \Gamma(W W^\top),

    where for an l1 penalty a lower bound on the minimum, by duality, is used instead of h.

    Source: Eq. (8), (11), (15) and (16).

    Parameters
    ----------
    solver : callable
        Called as ``solver(X, nu, penalty)``; returns V, a (d, d) array or (d + 1, d + 1) with the offset last (needed
        if nu < 1), or F, an (n, r) array with Y = FF', or a `Result`.
    n_instances : int
        Number of instances, default 50 and at most 1 000 000; the reference takes about 0.1 s each.  There are
        225 kinds; above this number, they are repeated with new data.
    rng : int
        Seed of the instances, at least 0.
    tol : float, optional
        Largest gap of a result with status OPTIMAL, and largest excess of the objective at a V or F over the optimum.
        By default that of the solver, if it has a parameter ``tol`` with a default value, otherwise 1e-4.

    Returns
    -------
    Validation
        One row for each instance; ``passed`` is True if there are no ``violations``.

    Raises
    ------
    ParameterError
        If solver is not callable, or n_instances, rng or tol is out of range.  Errors of the solver are violations.

    Examples
    --------
    >>> import diffrac_cvx as dc
    >>> dc.validate(dc.low_rank, n_instances=3).passed
    True
    """
    count, seed = repetitions(n_instances, "n_instances"), as_seed(rng, "rng")
    if not callable(solver):
        raise ParameterError(f"solver = {solver!r} is not a function. Pass one of X, nu and penalty.")
    promised = positive(default_tol(solver) if tol is None else tol, "tol")
    # An F with n rows could be confused with V if n = d or n = d + 1.
    designs = [design for design in all_designs() if design.n not in (design.d, design.d + 1)]
    order = np.random.default_rng(seed).permutation(len(designs))
    rows, instances = [], []
    for i in range(count):
        design, repetition = designs[order[i % len(designs)]], i // len(designs)
        instance = design.instance(seed + repetition)
        instances.append(instance)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DegenerateDataWarning)
            reference = solve(v_space(*instance), "CLARABEL", tol=REFERENCE_TOL)
            found = run_solver(solver, instance, reference, promised)
        known = bounds_in_row("reference_", reference.bracket)
        rows.append(dict.fromkeys(COLUMNS) | design._asdict() | found | known)
    return Validation(tuple(rows), tuple(instances))


def default_tol(solver: Solver) -> float:
    """Return the default value of the solver's parameter tol, if it has one."""
    try:
        tol = inspect.signature(solver).parameters["tol"].default
    except (KeyError, TypeError, ValueError):  # some callables have no signature
        return DEFAULT_TOL
    return float(tol) if isinstance(tol, int | float) else DEFAULT_TOL


def run_solver(solver: Solver, instance: Instance, reference: Result, tol: float) -> dict[str, Any]:
    """Run a solver on a copy of an instance, and return the entries of its row that describe its answer."""
    X = instance.X.copy()
    start = perf_counter()
    try:
        outcome = solver(X, instance.nu, instance.penalty)
        if isinstance(outcome, Result):
            outcome.F  # noqa: B018  # computed from X at the first access
    except Exception as error:  # a solver may raise anything
        failure = f"the solver raises {summarize_error(error)}"
        return {"returned": None, "seconds": perf_counter() - start, "violations": (failure,)}
    seconds = perf_counter() - start
    answer = read_answer(outcome, instance)
    violations = list(find_violations(answer, instance, reference, tol))
    if not np.array_equal(X, instance.X):
        violations.append("the solver modifies X. Work on a copy.")
    row: dict[str, Any] = {"returned": answer.kind, "objective": answer.objective}
    row |= {} if answer.bounds is None else bounds_in_row("", answer.bounds)
    status = answer.result.status.value if answer.result is not None else None
    return {**row, "status": status, "seconds": seconds, "violations": tuple(violations)}


def bounds_in_row(prefix: str, bounds: Bracket) -> dict[str, Any]:
    """Return the entries of bounds in a row."""
    lower, upper = formatted_lower(bounds.lower, bounds.gap), formatted_upper(bounds.upper, bounds.gap)
    return {f"{prefix}lower": lower, f"{prefix}upper": upper}


class Answer(NamedTuple):
    """Answer of a solver: its kind, its point with the recomputed objectives, and why it is not feasible."""

    kind: str  # "V", "F", "Result", or the type of anything else
    problems: tuple[str, ...] = ()  # violations of feasibility
    objective: float = np.nan  # f(V), or h(F) without V
    labels_objective: float = np.nan  # lower bound on h(F)
    bounds: Bracket | None = None
    result: Result | None = None


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
    return Answer(kind, (), labels if V is None else directions_objective(instance, V), labels, bounds, result)


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


def directions_objective(instance: Instance, V: Array) -> float:
    """Return the objective of (15) at V as it is, without rescaling; a (d, d) matrix has a zero offset."""
    X, nu, penalty = instance
    X = X - X.mean(axis=0)
    d = X.shape[1]
    a, c = penalty.weights(d)
    directions = V[:d, :d]
    quadratic = np.einsum("ij,jk,ik->i", X, directions, X)
    gamma = a**2 @ np.diag(directions) + c @ np.abs(directions) @ c
    if len(V) > d:
        quadratic = quadratic + 2.0 * X @ V[:d, d] + V[d, d]
        gamma += nu / (1.0 - nu) * V[d, d]
    quadratic = np.maximum(quadratic, 0.0)
    return float(1.0 - 2.0 * np.mean(np.sqrt(quadratic)) + np.mean(quadratic) + gamma)


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


def find_violations(answer: Answer, instance: Instance, reference: Result, tol: float) -> Iterator[str]:
    """Yield what is wrong with an answer, given the reference's bounds on the optimum."""
    yield from answer.problems
    result = answer.result
    if result is not None and result.certificate is not None:
        yield from problems_of_certificate(result, instance)
    if result is None:
        if answer.objective > reference.upper + tol + AGREEMENT:
            least, reached = format_ends(reference.upper, answer.objective)
            yield (
                f"{answer.kind} is not optimal: its objective {reached} exceeds the optimum, at most {least}, by "
                f"{format_lower(answer.objective - reference.upper)}, more than tol = {tol:g}"
            )
    elif result.status is Status.FAILED:
        yield f"no solution: {result.status}"
    else:
        own, optimum = MethodResult("(15)", result), MethodResult("(15)", reference)
        yield from contradictions_within("the solver", result)
        yield from contradictions_between("the solver", own, "the reference", optimum)
        # The value has to be the objective at V, F has to belong to V, and a claim of optimality to be true.
        is_bound = result.G is None and instance.penalty.has_l1
        at_point, of_labels = answer.objective, answer.labels_objective
        difference, point = at_point - result.value, "F" if result.G is None else "V"
        if (difference if is_bound else abs(difference)) > AGREEMENT:
            yield f"the value is {result.value:.9g}, but the objective at {point} is {at_point:.9g}"
        elif of_labels > result.value + AGREEMENT:
            yield (
                f"F does not belong to V: the objective of its labels is at least {of_labels:.9g}, above "
                f"the value {result.value:.9g}"
            )
        is_claimed = result.status in (Status.OPTIMAL, Status.CLOSED_FORM)
        if is_claimed and result.gap > tol * (1.0 + 1e-9):
            gap = format_gap(result.lower, result.upper)
            yield f"the status is {result.status.value}, but the gap of the bounds is {gap}, above tol = {tol:g}"
        if is_claimed and answer.objective > reference.upper + tol + AGREEMENT:
            excess = format_lower(answer.objective - reference.upper)
            yield f"the status is {result.status.value}, but the objective exceeds the optimum by {excess}"
