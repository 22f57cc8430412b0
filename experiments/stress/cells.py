"""The cells: a number of instances of a family, every bound of every solver held against sixty digits."""

import warnings
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal, localcontext
from typing import Any, NamedTuple

import numpy as np

import diffrac_cvx as dc
from diffrac_cvx.certificates.label_bounds import with_imbalance
from diffrac_cvx.points.dense import array_points
from diffrac_cvx.points.factors import dense
from diffrac_cvx.problem.penalties.structure import Structure, Weights
from diffrac_cvx.rounding.directions import oriented_direction
from diffrac_cvx.typing import Array
from experiments.harness.sweep import Cell, Row, cross
from experiments.stress.exact import (
    DIGITS,
    Exact,
    all_labels,
    best_labels_value,
    direction_value,
    dual_value,
    imbalance_and_value,
    is_allowed,
    labels_matrix,
    labels_value,
)
from experiments.stress.instances import FAMILIES, MANY, WHOLE, Instance, make_instance

BATCH = 25
BATCHES = {"full": 24, "smoke": 1}  # of each family
BATCHES_OF_MANY = {"full": 6, "smoke": 1}  # of those with many columns, which take seconds each
SECONDS = 1.0  # of one solve
LABELLED = 8  # points up to which all labellings are tried
LABELLED_WITH_L1 = 5  # the same with an l1 part
ALPHAS = (0.0, 1e-13, 1e-9, 1e-4, 0.1)  # imbalances of (7); its slope is -infinity at 0
WEIGHTS = (0.1, 1.0, 10.0, 1e3, 1e5, 1e7)  # of the imbalance, in the dual of (7)
DIRECTIONS = 6  # in which a factor's rows are moved, to find what is cheapest near balance
MIXINGS = 300  # rounds of coordinate descent on the rows of a factor
ROUNDED = 1e-40  # what sixty digits leave
MOST_COLUMNS = 40  # of a factor with many rows, up to which its value is computed
MAIN = 4  # columns of a factor whose value is computed
SETTINGS = {"batch": BATCH, "seconds": SECONDS}


class Bound(NamedTuple):
    """A bound, who proved it, and the exact number that it must not pass."""

    who: str
    kind: str
    value: float
    exact: Decimal

    @property
    def excess(self) -> float:
        """By how much it passes, in sixty digits; not positive where it holds."""
        with localcontext() as context:
            context.prec = DIGITS
            apart = Decimal(self.value) - self.exact
            return float(apart if self.kind == "lower" else -apart)


def cells_of(grid: str) -> list[Cell]:
    """Return the cells of a grid."""
    many = [family for family in WHOLE if family.endswith("outwards")]
    few = sorted({*FAMILIES, *WHOLE} - {*many})
    return cross(family=few, batch=range(BATCHES[grid])) + cross(family=many, batch=range(BATCHES_OF_MANY[grid]))


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
        values = {
            kind: [b.value for b in bounds if b.who == "low_rank" and b.kind == kind] for kind in ("lower", "upper")
        }
        if values["lower"] and values["upper"]:
            widths.append(values["upper"][0] - values["lower"][0])
    width = float(np.median(widths)) if widths else float("nan")
    return {**row, "worst": float(worst), "median_width": width, "which": which}


def check_instance(instance: Instance) -> tuple[list[Bound], int]:
    """Return all bounds on an instance with what they must not pass, and how many directions were left out."""
    X, nu, a, _, w, form, *_ = instance
    penalty, coupled = instance.penalty, instance.is_coupled
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = dict(solved(instance, penalty))
        left_out = max(result.n_excluded for result in results.values())
        if w is None and not instance.has_many_columns:  # there the space of labels is not asked
            left_out = max(left_out, dc.certify_y(X, np.ones((len(X), 1)), nu, penalty=dc.Penalty(a)).n_excluded)
        values = {name: value_of(instance, factor_of(r)) for name, r in results.items() if is_quick(r)}
        bounds = [Bound(name, "upper", results[name].upper, value) for name, value in values.items()]
        lowers = {name: claimed(result) for name, result in results.items()}
        for name, result in results.items():
            if instance.has_many_columns:  # minutes without the solver's multiplier
                continue
            lowers[f"certify_v of {name}"] = certified(
                dc.certify_v, instance.given, result.V, nu, penalty, sample_weight=w
            )
            if not coupled and w is None and form == "array":
                lowers[f"certify_y of {name}"] = certified(dc.certify_y, X, result.F, nu, penalty=penalty)
        # Any exact value of any V, and of any labels, is at least the optimum.
        least = min([*values.values(), Decimal(nu), Decimal(1)])
        labels = dc.rounding.kmeans_centered(results["low_rank"].F)
        proof = dc.certify_labels(instance.given, labels, -1.0, nu=nu, penalty=penalty, sample_weight=w)
        cost = cost_of(instance, labels, proof.v)
        bounds.append(Bound("certify_labels", "upper", proof.objective, cost))
        if w is None and form == "array" and not coupled and left_out == 0:
            bounds += bounds_of_balance(instance, results["low_rank"].F)
        best = value_on_all_columns(instance) if instance.has_many_columns else least_cost_of_labels(instance)
        if left_out == 0:
            bounds += [bound for links in (None, some_links(len(X))) for bound in bounds_with_links(instance, links)]
    if left_out == 0:  # else the bracket is that of data without these directions
        least = min([least, cost, *([best] if best is not None else [])])
        bounds += [Bound(name, "lower", lower, least) for name, lower in lowers.items()]
    return bounds, left_out


def value_of(instance: Instance, G: Array) -> Decimal:
    """Return the objective of (15) at V = GG'; infinity where a sign that is known does not hold."""
    X, nu, a, c, w, _, groups, nonnegative = instance
    return direction_value(X, nu, a, c, G, w, groups) if is_allowed(G, nonnegative) else Decimal("Infinity")


def cost_of(instance: Instance, labels: Array, v: Array) -> Decimal:
    """Return the objective of (9) at labels and a direction; where signs are known, at the labels or their opposite."""
    X, nu, a, c, w, _, groups, nonnegative = instance
    if nonnegative is None:
        return labels_value(X, nu, a, c, labels, v, w, groups)
    if np.any(v[nonnegative] < 0.0):
        return Decimal("Infinity")
    return min(labels_value(X, nu, a, c, y, v, w, groups) for y in (labels, -labels))


def some_links(n: int) -> dc.Links:
    """Return links that some labels obey: two pairs, and two known labels where there are more than four points."""
    rng = np.random.default_rng(n)
    y, (i, j, k, m) = rng.choice([-1, 1], n), rng.integers(0, n, 4)
    pairs = [(p, q) for p, q in ((i, j), (k, m)) if p != q]
    return dc.Links(
        same=[(p, q) for p, q in pairs if y[p] == y[q]],
        different=[(p, q) for p, q in pairs if y[p] != y[q]],
        labels=np.where(np.arange(n) < 2, y, 0) if n > 4 else None,
    )


def bounds_with_links(instance: Instance, links: dc.Links | None) -> Iterator[Bound]:
    """Yield the bounds of the search for the best labels; with links, those of relaxations too."""
    X, nu, _, _, w, form, *_ = instance
    n, penalty, coupled = len(X), instance.penalty, instance.is_coupled
    if form != "array" or n > (LABELLED_WITH_L1 if coupled else LABELLED) or instance.has_many_columns:
        return
    labellings = [y for y in all_labels(n) if links is None or obeys(y, links)]
    best = least_cost_of_labels(instance, labellings)
    if best is None:
        return
    what = "optimal labels" if links is None else "optimal labels with links"
    given: dict[str, Any] = {"sample_weight": w, "links": links}
    try:
        found = dc.optimal_labels(X, nu, penalty, tol=1e-9, time_limit=SECONDS, **given)
        yield Bound(what, "lower", found.lower, best)
        if not coupled:
            yield Bound(what, "upper", found.upper, best)
    except dc.ContradictionError as contradiction:
        yield Bound(what, "lower", contradiction.lower, best)
    if links is not None:
        result = dc.low_rank(X, nu, penalty, tol=1e-9, max_iter=500, time_limit=SECONDS, **given)
        yield Bound("low_rank with links", "lower", claimed(result), best)
        again = certified(dc.certify_v, X, result.V, nu, penalty, **given)
        yield Bound("certify_v with links", "lower", again, best)
        if not coupled and w is None:
            again = certified(dc.certify_y, X, result.F, nu, penalty=penalty, links=links)
            yield Bound("certify_y with links", "lower", again, best)


def obeys(y: Array, links: dc.Links) -> bool:
    """Whether labels, or all of them reversed, obey links."""
    known = np.flatnonzero(links.known) if links.known is not None else np.zeros(0, dtype=int)
    return (
        all(y[i] == y[j] for i, j in links.same)
        and all(y[i] != y[j] for i, j in links.different)
        and (links.known is None or len(set(y[known] * links.known[known])) <= 1)
    )


def bounds_of_balance(instance: Instance, F: Array) -> Iterator[Bound]:
    """Yield the bounds of (7) at balanced and nearly balanced clusters, each with an exact one from the other side."""
    X, a = instance.X, instance.a
    K = labels_matrix(X, a)
    if K is None:
        return
    for alpha in ALPHAS:
        try:
            found = dc.certify_y(X, F, alpha=alpha, penalty=dc.Penalty(a))
        except dc.ContradictionError as contradiction:
            found = dc.Bracket(contradiction.lower, contradiction.cost)
        wide, rng = np.column_stack([F, np.zeros(len(F))]), np.random.default_rng(0)
        moved = [wide + alpha**0.5 * rng.standard_normal(wide.shape[1]) for _ in range(DIRECTIONS)]
        points = [with_imbalance(point, share * alpha) for point in moved for share in (0.5, 0.999)]
        if len(X) <= LABELLED:
            points += [y[:, None] for y in all_labels(len(X))]
        exactly = [imbalance_and_value(K, point) for point in points]
        feasible = [value for imbalance, value in exactly if imbalance <= Decimal(alpha)]
        if feasible:
            yield Bound(f"certify_y at alpha {alpha:g}", "lower", found.lower, min(feasible))
        proved = [value for value in duals_of_balance(K, alpha) if value is not None]
        if proved:
            yield Bound(f"certify_y at alpha {alpha:g}", "upper", found.upper, max(proved))


def duals_of_balance(K: Exact, alpha: float) -> Iterator[Decimal | None]:
    """Yield exact lower bounds of (7): at each weight of the imbalance, multipliers of a solution found roughly."""
    misfit, n = K.astype(float), len(K)
    for weight in WEIGHTS:
        C, F = misfit + weight / n**2, np.random.default_rng(0).standard_normal((n, n))
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
    """Whether there is a V whose value takes no minutes in sixty digits."""
    return result.G is not None and (result.G.shape[0] < MANY or result.G.shape[1] <= MOST_COLUMNS)


def claimed(result: dc.Result) -> float:
    """Return the lower bound that a result has proved, though it may be withdrawn."""
    return result.lower if result.contradiction is None else result.contradiction.lower


def certified(certify: Callable[..., dc.Bracket], *given: Any, **named: Any) -> float:
    """Return the lower bound of a certificate, or the one that was found to be false."""
    try:
        return certify(*given, **named).lower
    except dc.ContradictionError as contradiction:
        return contradiction.lower


def factor_of(result: dc.Result) -> Array:
    """Return G with V = GG'."""
    assert result.G is not None  # solvers of (15) have a V
    return dense(result.G)


def value_on_all_columns(instance: Instance) -> Decimal:
    """Return the value of the main part of a V that was sought on all columns at once, not from a few outwards."""
    X, nu, a, c, w, *_ = instance
    found = dc.low_rank(X, nu, instance.penalty, max_iter=200, time_limit=SECONDS, sample_weight=w, working_set=False)
    left, sizes, _ = np.linalg.svd(factor_of(found), full_matrices=False)
    return direction_value(X, nu, a, c, left[:, :MAIN] * sizes[:MAIN], w)


def least_cost_of_labels(instance: Instance, labellings: Iterable[Array] | None = None) -> Decimal | None:
    """Return the least cost of labels, by default of all, with an l1 part that with nearly the best directions.

    None if there are many.
    """
    X, nu, a, c, w, _, groups, nonnegative = instance
    if len(X) > LABELLED:
        return None
    if not instance.is_coupled:
        return best_labels_value(X, nu, a, w, labellings)
    if len(X) > LABELLED_WITH_L1:
        return None
    shares = None if w is None else w / w.sum()
    data = array_points(X - (X.mean(axis=0) if shares is None else shares @ X), shares)
    costs, weights = [], Weights(a, c, Structure(groups, nonnegative))
    for y in all_labels(len(X)) if labellings is None else labellings:
        labels, v = oriented_direction(data, y, weights)
        costs.append(cost_of(instance, labels, v))
    return min(costs)


def solved(instance: Instance, penalty: dc.Penalty) -> Iterator[tuple[str, dc.Result]]:
    """Yield the results of the fast solvers, at a small and at a large tolerance; fista takes no weights of points."""
    X, nu, w = instance.given, instance.nu, instance.w
    yield "low_rank", dc.low_rank(X, nu, penalty, tol=1e-9, max_iter=500, time_limit=SECONDS, sample_weight=w)
    yield "low_rank, loose", dc.low_rank(X, nu, penalty, tol=1e-2, max_iter=50, time_limit=SECONDS, sample_weight=w)
    if w is None and not instance.has_many_columns:
        yield "fista", dc.fista(X, nu, penalty, tol=1e-3, max_iter=300, time_limit=SECONDS)
