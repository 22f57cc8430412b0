"""Certified bounds of adversarial instances, compared with 60-digit arithmetic.

It fails if a bound is on the wrong side of the exact value.
"""

import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import diffrac_cvx as dc
from diffrac_cvx.certificates.label_bounds import with_imbalance
from diffrac_cvx.points.factors import dense
from diffrac_cvx.points.table import array_table
from diffrac_cvx.problem.penalties.base import PairPenalty
from diffrac_cvx.problem.penalties.group import GroupNorms
from diffrac_cvx.problem.penalties.sign import SignConstraints
from diffrac_cvx.rounding.directions import best_direction
from diffrac_cvx.typing import Array
from experiments.harness.sweep import Cell, Row, cross
from experiments.stress.exact import (
    DIGITS,
    Exact,
    all_labels,
    centered,
    direction_value,
    dual_value,
    imbalance_and_value,
    is_allowed,
    labels_matrix,
    labels_value,
    labels_values,
    point_weights_of,
    residual_matrix,
)
from experiments.stress.instances import FAMILIES, MANY_COLUMNS, WHOLE, Instance, make_instance

BATCH = 25
BATCHES = {"full": (8, 2), "smoke": (1, 1)}  # per family, and per family with many columns, which take seconds
SECONDS = 1.0  # per solve
LABELED = 8  # most points for trying all labellings
LABELED_WITH_L1 = 5  # the same with an l1 penalty
ALPHAS = (0.0, 1e-13, 1e-9, 1e-4, 0.1)  # imbalances alpha of (7); the slope of its value is -infinity at 0
WEIGHTS = (0.1, 1.0, 10.0, 1e3, 1e5, 1e7)  # of the imbalance, in the dual of (7)
DIRECTIONS = 6  # random directions in which a factor's rows are moved to minimise (7) near balance
MIXINGS = 300  # rounds of coordinate descent on the rows of a factor
ROUNDED = 1e-40  # rounding error of sixty digits
COST_TOLERANCE = Decimal("1e-9")  # change of an objective by excluding directions along which columns nearly agree
MOST_COLUMNS = 40  # most columns of a factor with many rows whose value is computed
MAIN = 4  # leading columns of a factor whose value is computed
COPIES = 6000  # of the rows of a table that changes: so many rows are streamed in blocks
BLOCK, STRETCH = 2000, 512  # rows read at a time, and numbers per checksum to detect a change
SETTINGS = {"batch": BATCH, "seconds": SECONDS}


class Stated(NamedTuple):
    """A lower bound, and the number of directions that its record reports as excluded."""

    lower: float
    excluded: int


class Least(NamedTuple):
    """The smallest known exact value, and that of the data without the directions that may be excluded."""

    value: Decimal
    without: Decimal | None


class Bound(NamedTuple):
    """A bound, its origin, and the exact number that it must not exceed (or fall below)."""

    who: str
    kind: str
    value: float
    exact: Decimal

    @property
    def excess(self) -> float:
        """Violation of the bound in 60-digit arithmetic; not positive if it holds."""
        with localcontext() as context:
            context.prec = DIGITS
            apart = Decimal(self.value) - self.exact
            return float(apart if self.kind == "lower" else -apart)


def cells_of(grid: str) -> list[Cell]:
    """Return the cells of a grid."""
    many = [family for family in WHOLE if family.endswith("outwards")]
    few = sorted({*FAMILIES, *WHOLE} - {*many})
    return [
        cell
        for group, k in zip((few, many), BATCHES[grid], strict=True)
        for cell in cross(family=group, batch=range(k))
    ]


def measure(family: str, batch: int) -> Row:
    """Check a batch of instances."""
    row: Row = {"instances": 0, "left_out": 0, "lower": 0, "upper": 0, "violations": 0}
    worst, widths, which = -np.inf, [], ""
    for number in range(batch * BATCH, (batch + 1) * BATCH):
        instance = make_instance(family, number)
        bounds, left_out = check_instance(instance)
        row["instances"] += 1
        row["left_out"] += int(left_out > 0)
        for bound in bounds:
            row[bound.kind] += 1
            if bound.excess > ROUNDED:
                row["violations"] += 1
                which = which or f"{number}: {bound.who}, {bound.kind} by {bound.excess:.1e}"
            worst = max(worst, bound.excess)
        ends = {bound.kind: bound.value for bound in reversed(bounds) if bound.who == "low_rank"}
        if len(ends) == 2:
            widths.append(ends["upper"] - ends["lower"])
    width = float(np.median(widths)) if widths else float("nan")
    return {**row, "worst": float(worst), "median_width": width, "which": which}


def check_instance(instance: Instance) -> tuple[list[Bound], int]:
    """Return all bounds on an instance with their exact limits, and the largest number of excluded directions."""
    X, nu, _, _, w, form, *_ = instance
    penalty, has_l1 = instance.penalty, instance.has_l1
    with warnings.catch_warnings(action="ignore"):
        if instance.after is not None:
            return list(bounds_while_changing(instance, instance.after)), 0
        results = dict(solved(instance, penalty))
        said = max(map(excluded_of, results.values()))
        values = {name: value_of(instance, factor_of(r)) for name, r in results.items() if is_quick(r)}
        bounds = [Bound(name, "upper", results[name].upper, value) for name, value in values.items()]
        stated = {name: stated_bound(result) for name, result in results.items()}

        def state(name: str, certify: Callable[..., Any], *given: Any, **named: Any) -> None:
            stated[name] = certified_bound(said, certify, instance.given, *given, **named)

        for name, result in results.items():
            stated[f"certificate of {name}"] = stated_again(instance.given, result)
            if instance.has_many_columns:  # takes minutes without the solver's multiplier
                continue
            state(f"certify_v of {name}", dc.certify_v, result.V, nu, penalty, sample_weight=w)
            if not has_l1 and w is None and form == "array":
                state(f"certify_y of {name}", dc.certify_y, result.F, nu, penalty=penalty)
        labels = dc.rounding.kmeans_centered(results["low_rank"].F)
        given: dict[str, Any] = {"nu": nu, "penalty": penalty, "sample_weight": w}
        proof = dc.certify_labels(instance.given, labels, -1.0, **given)
        cost = cost_of(instance, labels, proof.v)
        bounds.append(Bound("certify_labels", "upper", proof.objective, cost))
        state("certify_labels", dc.certify_labels, labels, results["low_rank"], **given)
        if instance.nonnegative is None:
            state("certify_clusters", dc.certify_clusters, (labels > 0.0).astype(int), results["low_rank"], **given)
        if w is None and form == "array" and not has_l1:
            bounds += bounds_of_balance(instance, results["low_rank"].F)
        best = value_on_all_columns(instance) if instance.has_many_columns else least_cost_of_labels(instance, X)
        # The exact value of any V, and of any labels, is at least the optimum.
        value = min([*values.values(), Decimal(nu), Decimal(1), cost, *([best] if best is not None else [])])
        least = Least(value, least_cost_of_labels(instance, instance.without))
        for name, one in stated.items():
            bounds += lower_bounds(name, one, least)
        bounds += [
            bound
            for constraints in (None, some_constraints(len(X)))
            for bound in bounds_with_constraints(instance, constraints, said)
        ]
    return bounds, max(said, *(one.excluded for one in stated.values()))


def excluded_of(record: object, otherwise: int = 0) -> int:
    """Return the number of directions that a record reports as excluded; `otherwise` if an error does not report it."""
    return int(getattr(record, "n_excluded", getattr(record, "left_out", otherwise)))


def lower_bounds(who: str, stated: Stated, least: Least) -> Iterator[Bound]:
    """Yield a lower bound with its exact limit: if directions are excluded, the value of the data without them."""
    if not stated.excluded:
        yield Bound(who, "lower", stated.lower, least.value)
    elif least.without is not None:
        yield Bound(f"{who} without directions", "lower", stated.lower, least.without + COST_TOLERANCE)


def bounds_while_changing(instance: Instance, after: Array) -> Iterator[Bound]:
    """Yield the bounds for a table that changes while it is read; they hold for the table at the start and now.

    It changes after the first certificate.  If the change is detected, the bounds hold for the table at the start.
    """
    changed: list[Instance] = []
    n, d = COPIES * len(after), after.shape[1]
    # The change fills whole checksum stretches: in a partly filled one it would be detected.
    chosen = np.flatnonzero(np.arange(n) % BLOCK < BLOCK * d // STRETCH * STRETCH // d)

    def change(progress: dc.Progress) -> None:
        if progress.lower > 0.0 and not changed:
            table[chosen] = after[chosen % len(after)]
            w = np.repeat([n - len(chosen), len(chosen)], len(after)).astype(float)
            changed.append(instance._replace(X=np.vstack([instance.X, after]), w=w))

    given: dict[str, Any] = {"nu": instance.nu, "penalty": instance.penalty, "tol": 1e-9, "time_limit": SECONDS}
    with tempfile.TemporaryDirectory() as folder:
        table = many_rows(instance, Path(folder) / "table.npy")
        try:
            result = dc.low_rank(table, max_iter=500, callback=change, **given)
            lower, upper, factors = result.lower, result.upper, [factor_of(result)]
        except dc.DataError as error:
            (lower, upper), factors = getattr(error, "bracket", None) or (0.0, 1.0), []
            changed.clear()
    for who, now in zip(("low_rank", "low_rank of what it is then"), (instance, *changed[:1]), strict=False):
        small = dc.low_rank(now.X, **given, sample_weight=now.w)
        values = [value_of(now, G) for G in (factor_of(small), *factors)]
        if factors:
            yield Bound(who, "upper", upper, values[-1])
        yield Bound(who, "lower", lower, min(values))


def many_rows(instance: Instance, path: Path) -> Any:
    """Return many copies of the rows, as an array or a memory map, of doubles or integers."""
    table = np.tile(instance.X, (COPIES, 1)).astype(np.int64 if instance.form.endswith("integers") else np.float64)
    if instance.form.startswith("rows"):
        return table
    np.save(path, table)
    return np.load(path, mmap_mode="r+", allow_pickle=False)


def value_of(instance: Instance, G: Array) -> Decimal:
    """Return the objective of (15) at V = GG'; infinity if V violates a known sign."""
    X, nu, a, c, w, _, groups, nonnegative = instance[:8]
    return direction_value(X, nu, a, c, G, w, groups) if is_allowed(G, nonnegative) else Decimal("Infinity")


def cost_of(instance: Instance, labels: Array, v: Array) -> Decimal:
    """Return the objective of (9) at labels and a direction; with known signs, at the labels or their opposite."""
    X, nu, a, c, w, _, groups, nonnegative = instance[:8]
    if nonnegative is None:
        return labels_value(X, nu, a, c, labels, v, w, groups)
    if np.any(v[nonnegative] < 0.0):
        return Decimal("Infinity")
    return min(labels_value(X, nu, a, c, y, v, w, groups) for y in (labels, -labels))


def some_constraints(n: int) -> dc.Constraints:
    """Return constraints satisfied by some labels: two pairs, and for more than four points two known labels."""
    rng = np.random.default_rng(n)
    y, (i, j, k, m) = rng.choice([-1, 1], n), rng.integers(0, n, 4)
    pairs = [(p, q) for p, q in ((i, j), (k, m)) if p != q]
    return dc.Constraints(
        must_link=[(p, q) for p, q in pairs if y[p] == y[q]],
        cannot_link=[(p, q) for p, q in pairs if y[p] != y[q]],
        labels=np.where(np.arange(n) < 2, y, np.nan) if n > 4 else None,
    )


def bounds_with_constraints(instance: Instance, constraints: dc.Constraints | None, said: int) -> Iterator[Bound]:
    """Yield the bounds of the search for optimal labels; with constraints, also those of relaxations."""
    X, nu, _, _, w, form, *_ = instance
    n, penalty, has_l1 = len(X), instance.penalty, instance.has_l1
    if form != "array" or n > most_labeled(instance) or instance.has_many_columns:
        return
    labelings = [y for y in all_labels(n) if constraints is None or satisfies(y, constraints)]
    costs = costs_of_labels(instance, labelings)
    reduced = None if instance.without is None else costs_of_labels(instance._replace(X=instance.without), labelings)
    least = Least(min(costs), None if reduced is None else min(reduced))
    what = "optimal labels" if constraints is None else "optimal labels with constraints"
    given: dict[str, Any] = {"sample_weight": w, "constraints": constraints}
    try:
        found = dc.optimal_labels(X, nu, penalty, tol=1e-9, time_limit=SECONDS, **given)
        yield from lower_bounds(what, Stated(found.lower, excluded_of(found)), least)
        yield from lower_bounds(f"certificate of {what}", stated_again(X, found), least)
        if not has_l1:
            yield Bound(what, "upper", found.upper, least.value)
    except dc.InvalidBoundError as contradiction:
        yield from lower_bounds(what, Stated(contradiction.lower, excluded_of(contradiction, said)), least)
    if constraints is not None:
        result = dc.low_rank(X, nu, penalty, tol=1e-9, max_iter=500, time_limit=SECONDS, **given)
        yield from lower_bounds("low_rank with constraints", stated_bound(result), least)
        again = certified_bound(said, dc.certify_v, X, result.V, nu, penalty, **given)
        yield from lower_bounds("certify_v with constraints", again, least)
        if not has_l1 and w is None:
            again = certified_bound(said, dc.certify_y, X, result.F, nu, penalty=penalty, constraints=constraints)
            yield from lower_bounds("certify_y with constraints", again, least)


def satisfies(y: Array, constraints: dc.Constraints) -> bool:
    """Return whether labels, or all of them reversed, satisfy the constraints."""
    known = np.flatnonzero(constraints.labels) if constraints.labels is not None else np.zeros(0, dtype=int)
    return (
        all(y[i] == y[j] for i, j in constraints.must_link)
        and all(y[i] != y[j] for i, j in constraints.cannot_link)
        and (constraints.labels is None or len(set(y[known] * constraints.labels[known])) <= 1)
    )


def bounds_of_balance(instance: Instance, F: Array) -> Iterator[Bound]:
    """Yield the bounds of (7) at balanced and nearly balanced clusters, each with an exact limit."""
    X, a = instance.X, instance.a
    K = labels_matrix(X, a)
    for alpha in ALPHAS:
        try:
            found = dc.certify_y(X, F, alpha=alpha, penalty=dc.Penalty(a))
            lower, upper, excluded = found.lower, found.upper, excluded_of(found)
        except dc.InvalidBoundError as contradiction:
            lower, upper, excluded = contradiction.lower, contradiction.objective, excluded_of(contradiction)
        wide, rng = np.column_stack([F, np.zeros(len(F))]), np.random.default_rng(0)
        moved = [wide + alpha**0.5 * rng.standard_normal(wide.shape[1]) for _ in range(DIRECTIONS)]
        points = [with_imbalance(point, fraction * alpha) for point in moved for fraction in (0.5, 0.999)]
        if len(X) <= LABELED:
            points += [y[:, None] for y in all_labels(len(X))]
        exactly = [imbalance_and_value(K, point) for point in points]
        feasible = [value for imbalance, value in exactly if imbalance <= Decimal(alpha)]
        if feasible and not excluded:
            yield Bound(f"certify_y at alpha {alpha:g}", "lower", lower, min(feasible))
        proved = [value for value in duals_of_balance(K, alpha) if value is not None]
        if proved:
            yield Bound(f"certify_y at alpha {alpha:g}", "upper", upper, max(proved))


def duals_of_balance(K: Exact, alpha: float) -> Iterator[Decimal | None]:
    """Yield exact lower bounds of (7): for each weight of the imbalance, from multipliers of a rough solution."""
    matrix, n = K.astype(float), len(K)
    for weight in WEIGHTS:
        C, F = matrix + weight / n**2, np.random.default_rng(0).standard_normal((n, n))
        F /= np.linalg.norm(F, axis=1, keepdims=True)
        for _ in range(MIXINGS):
            for i in range(n):
                row = C[i, i] * F[i] - C[i] @ F
                size = np.linalg.norm(row)
                F[i] = row / size if size > 0.0 else F[i]
        mu = np.einsum("ij,ij->i", C @ F, F)
        lowest = float(np.linalg.eigvalsh(C - np.diag(mu))[0])
        yield dual_value(K, mu, weight, 1e-14 * (1.0 + np.abs(C).max()) - min(lowest, 0.0), alpha)


def is_quick(result: dc.Result) -> bool:
    """Return whether some V can be evaluated in 60-digit arithmetic without taking minutes."""
    return result.G is not None and (result.G.shape[0] < MANY_COLUMNS or result.G.shape[1] <= MOST_COLUMNS)


def stated_bound(result: dc.Result) -> Stated:
    """Return the lower bound certified for a result, even if it was withdrawn."""
    lower = result.lower if result.invalid_bound is None else result.invalid_bound.lower
    return Stated(lower, excluded_of(result))


def stated_again(X: npt.ArrayLike, found: Any) -> Stated:
    """Return the lower bound that the checker states from a certificate; one above all objectives if it differs.

    The certificate of a result has to state the bound of the result, to the last bit.
    """
    try:
        lower = dc.check_certificate(X, found).lower
    except dc.DataError:
        lower = np.nan
    return Stated(lower if lower == found.lower else 2.0, excluded_of(found))


def certified_bound(said: int, certify: Callable[..., Any], *given: Any, **named: Any) -> Stated:
    """Return the lower bound of a certificate, or the one found to be invalid; `said` comes from earlier results."""
    try:
        found = certify(*given, **named)
    except dc.InvalidBoundError as contradiction:
        return Stated(contradiction.lower, excluded_of(contradiction, said))
    return Stated(found.lower, excluded_of(found))


def factor_of(result: dc.Result) -> Array:
    """Return G with V = GG'."""
    assert result.G is not None  # solvers of (15) return a V
    return dense(result.G)


def value_on_all_columns(instance: Instance) -> Decimal:
    """Return the value of the leading part of a V computed on all columns at once, without a working set."""
    X, nu, a, c, w, *_ = instance
    found = dc.low_rank(X, nu, instance.penalty, max_iter=200, time_limit=SECONDS, sample_weight=w, working_set=False)
    left, sizes, _ = np.linalg.svd(factor_of(found), full_matrices=False)
    return direction_value(X, nu, a, c, left[:, :MAIN] * sizes[:MAIN], w)


def most_labeled(instance: Instance) -> int:
    """Return the largest number of points for which all labellings are tried."""
    return LABELED_WITH_L1 if instance.has_l1 else LABELED


def least_cost_of_labels(instance: Instance, X: Array | None) -> Decimal | None:
    """Return the smallest objective over all labels with the given data; None without data or with too many points."""
    if X is None or len(X) > most_labeled(instance):
        return None
    return min(costs_of_labels(instance._replace(X=X), all_labels(len(X))))


def costs_of_labels(instance: Instance, labelings: Iterable[Array]) -> list[Decimal]:
    """Return the objectives of labels: with an l1 penalty or known signs, nearly the minimum, at an exact direction."""
    X, nu, a, c, w, _, groups, nonnegative = instance[:8]
    if not instance.has_l1:
        return labels_values(X, nu, a, w, labelings)
    signed = np.zeros(len(a), dtype=bool) if nonnegative is None else nonnegative
    with_pair_penalty = (c > 0.0) | signed
    others, X, c = ~with_pair_penalty, X[:, with_pair_penalty], c[with_pair_penalty]
    ridge, signed = a[with_pair_penalty], signed[with_pair_penalty]
    # The best direction in the other columns is exact; in these columns it is searched for in the residual.
    with localcontext() as context:
        context.prec = DIGITS
        Q = residual_matrix(instance.X[:, others], a[others], w)
        columns, point_weights = centered(X, w), point_weights_of(X, w)
    values, vectors = np.linalg.eigh(Q.astype(float))
    root = np.sqrt(len(X) * np.maximum(values, 0.0))[:, None] * vectors.T
    points = array_table(root @ columns.astype(float))
    groups = None if groups is None else groups[with_pair_penalty]
    weights = PairPenalty(c, a=ridge) if groups is None else GroupNorms(c, groups, a=ridge)
    if nonnegative is not None:
        weights = SignConstraints(c, nonnegative=signed, a=ridge)
    costs = []
    for y in labelings:
        found = []
        for labels in (y,) if nonnegative is None else (y, -y):
            v = best_direction(points, root @ (labels - point_weights.astype(float) @ labels), weights)
            v = np.where(signed, np.maximum(v, 0.0), v)
            found.append(labels_value(X, nu, ridge, c, labels, v, w, groups, Q))
        costs.append(min(found))
    return costs


def solved(instance: Instance, penalty: dc.Penalty) -> Iterator[tuple[str, dc.Result]]:
    """Yield the results of the fast solvers, at a small and a large tolerance; fista supports no sample weights."""
    X, nu, w = instance.given, instance.nu, instance.w
    yield "low_rank", dc.low_rank(X, nu, penalty, tol=1e-9, max_iter=500, time_limit=SECONDS, sample_weight=w)
    yield "low_rank, loose", dc.low_rank(X, nu, penalty, tol=1e-2, max_iter=50, time_limit=SECONDS, sample_weight=w)
    if w is None and not instance.has_many_columns:
        yield "fista", dc.fista(X, nu, penalty, tol=1e-3, max_iter=300, time_limit=SECONDS)
