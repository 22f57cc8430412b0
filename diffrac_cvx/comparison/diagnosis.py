"""Diagnosis of a wrong solver of problem (15): what its failures have in common, and which problem it solves."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import scipy.stats

from diffrac_cvx.comparison.answers import AGREEMENT, Answer
from diffrac_cvx.comparison.instances import Instance
from diffrac_cvx.comparison.posed import MISTAKES, PosedProblem, pose
from diffrac_cvx.machine.deadlines import Timer
from diffrac_cvx.points.checks import Array
from diffrac_cvx.problem.formatting import format_upper
from diffrac_cvx.problem.result import Result

MOST_EXAMINED = 12  # failing instances on which each mistake is tried; the smallest ones
SIGNIFICANCE = 0.01  # of the association of a trait with failing, by Fisher's exact test
RANK_TOL = 1e-3  # eigenvalue relative to the largest one that counts towards the rank
SMALL_EXCESS = 0.25  # of an early stop: median gap divided by the distance of the optimum from the trivial value nu


class Judged(NamedTuple):
    """Instance with the solver's answer (None after an error), the reference's result and the violations."""

    instance: Instance
    answer: Answer | None
    reference: Result
    violations: tuple[str, ...]

    @property
    def is_feasible(self) -> bool:
        """Whether the answer is a feasible point."""
        return self.answer is not None and not self.answer.problems

    @property
    def excess(self) -> float:
        """Amount by which the recomputed objective at V or F exceeds the optimum at least; NaN if infeasible."""
        return self.answer.objective - self.reference.upper if self.answer is not None else np.nan


def has_equal_columns(X: Array) -> bool:
    """Return whether two columns are proportional after centring."""
    X = X - X.mean(axis=0)
    correlations = np.abs(np.corrcoef(X.T)) if X.shape[1] > 1 else np.eye(1)
    return bool(np.any(np.triu(correlations, 1) > 1.0 - 1e-9))


def has_shifted_columns(X: Array) -> bool:
    """Return whether the mean of a column is not 0."""
    return bool(np.any(np.abs(X.mean(axis=0)) > 1e-9 * X.std(axis=0)))


def spread_of_units(X: Array) -> float:
    """Return the largest standard deviation of a column divided by the smallest."""
    deviations = X.std(axis=0)
    return float(deviations.max() / deviations.min())


# Properties of an instance, as the end of "the instances ...".
PROPERTIES: dict[str, Callable[[Instance], bool]] = {
    "with an l1 penalty": lambda it: it.penalty.has_l1,
    "without an l1 penalty": lambda it: not it.penalty.has_l1,
    "with a ridge penalty": lambda it: bool(np.any(it.penalty.weights(it.X.shape[1])[0])),
    "without a penalty": lambda it: not np.any(it.penalty.weights(it.X.shape[1])),
    "with nu < 1": lambda it: it.nu < 1.0,
    "with 0 < nu < 1": lambda it: 0.0 < it.nu < 1.0,
    "with nu = 1": lambda it: it.nu == 1.0,
    "with nu = 0": lambda it: it.nu == 0.0,
    "with column means other than 0": lambda it: has_shifted_columns(it.X),
    "with more features than points": lambda it: it.X.shape[1] > it.X.shape[0],
    "with more than 20 points": lambda it: it.X.shape[0] > 20,
    "with columns of different units": lambda it: spread_of_units(it.X) > 1.5,
    "with badly scaled columns": lambda it: spread_of_units(it.X) > 100.0,
    "with two proportional columns": lambda it: has_equal_columns(it.X),
}


class Cause(NamedTuple):
    """Cause of failures, as the end of a sentence, and the number of failing instances explained and examined."""

    text: str
    explained: int
    examined: int

    @property
    def is_frequent(self) -> bool:
        """Whether it explains a third of the instances and, because one may be an accident, two if there are two.

        A solver that is wrong in one place is often inaccurate in others, which hides the mistake on some instances.
        """
        return self.explained >= max(min(2, self.examined), self.examined / 3, 1)


def diagnose(judged: Sequence[Judged], tol: float, timer: Timer) -> str:
    """Return at most one sentence on a wrong solver; empty without a failure or a known cause.

    It names the property of an instance that is most associated with failing, and the most frequent cause among those
    that are tried: another problem whose solution is returned, a wrong scale of V or of the value, a rank of one, or
    an early stop.
    """
    failing = [one for one in judged if one.violations]
    feasible = [one for one in failing if one.is_feasible]
    causes = [*causes_of_values(feasible), *causes_of_points(feasible, tol, timer)]
    causes = [cause for cause in causes if cause.is_frequent] or list(early_stop(feasible, tol))
    clauses = list(shared_property(judged))
    if causes:
        cause = max(causes, key=lambda one: one.explained / one.examined)
        is_always = cause.explained == cause.examined
        number = f"all {cause.examined}" if is_always else f"{cause.explained} of the {cause.examined}"
        clauses.append(f"in {number} failures examined, {cause.text}")
    sentence = ", and ".join(clauses)
    return f"{sentence[:1].upper()}{sentence[1:]}." if sentence else ""


def shared_property(judged: Sequence[Judged]) -> Iterator[str]:
    """Yield a clause on the property that is most associated with failing, if one is significantly."""
    has_failed = np.array([bool(one.violations) for one in judged], dtype=bool)
    best, clause = SIGNIFICANCE, ""
    for name, holds in PROPERTIES.items():
        has_it = np.array([holds(one.instance) for one in judged], dtype=bool)
        failed, others_failed = int(np.sum(has_failed & has_it)), int(np.sum(has_failed & ~has_it))
        with_it, others = int(np.sum(has_it)), int(np.sum(~has_it))
        counts = np.array([[failed, with_it - failed], [others_failed, others - others_failed]])
        pvalue = float(scipy.stats.fisher_exact(counts, alternative="greater").pvalue)
        if pvalue < best:
            best = pvalue
            number = f"all {failed}" if failed == with_it else f"{failed} of the {with_it}"
            clause = f"{number} instances {name} fail, {others_failed or 'none'} of the {others} others"
    if clause:
        yield clause


def wrong_values(f: float, n: int) -> dict[str, float]:
    """Return wrong values of a result with the objective f and n points, as the end of "the value is ..."."""
    return {
        "n times the objective": n * f,
        "the objective divided by n": f / n,
        "twice the objective": 2.0 * f,
        "half the objective": f / 2.0,
        "minus the objective": -f,
        "1 minus the objective": 1.0 - f,
    }


def causes_of_values(failing: Sequence[Judged]) -> Iterator[Cause]:
    """Yield causes of values that are not the objective at the point: a wrong factor, or a constant difference."""
    pairs = [
        (one.answer.result.value, one.answer.objective, len(one.instance.X))
        for one in failing
        if one.answer is not None and one.answer.result is not None
    ]
    pairs = [(value, f, n) for value, f, n in pairs if abs(value - f) > AGREEMENT]
    matching: Counter[str] = Counter()
    for value, f, n in pairs:
        size = max(abs(value), abs(f))
        matching.update(text for text, wrong in wrong_values(f, n).items() if abs(value - wrong) <= 1e-4 * size)
    yield from (Cause(f"the value is {text}", explained, len(pairs)) for text, explained in matching.items())
    if pairs:
        differences = np.array([value - f for value, f, _ in pairs])
        typical = float(np.median(differences))
        explained = int(np.sum(np.abs(differences - typical) <= 0.05 * abs(typical)))
        side = "above" if typical > 0.0 else "below"
        yield Cause(f"the value is about {abs(typical):.2g} {side} the objective", explained, len(pairs))


def causes_of_points(failing: Sequence[Judged], tol: float, timer: Timer) -> Iterator[Cause]:
    """Yield causes of points that are not optimal: the scale of V, another problem, or a rank of one."""
    wrong = [one for one in failing if one.excess > tol + AGREEMENT]
    wrong = sorted(wrong, key=lambda one: one.instance.X.shape[1])[:MOST_EXAMINED]
    yield from cause_of_scale(wrong, tol)
    yield from causes_of_problems(wrong, tol, timer)
    yield from causes_of_rank(wrong)


def limit_of(one: Judged, tol: float) -> float:
    """Return the excess over the optimum of another problem up to which this problem explains a wrong V."""
    return max(tol, one.excess / 20.0)


def cause_of_scale(wrong: Sequence[Judged], tol: float) -> Iterator[Cause]:
    """Yield the cause that V is a multiple of an optimal one."""
    factors = []
    for one in wrong:
        if one.answer is None or one.answer.V is None:
            continue
        factor, least = pose(one.instance).best_multiple(one.answer.V)
        if factor > 0.0 and least - one.reference.upper <= limit_of(one, tol) < one.excess:
            factors.append(1.0 / factor)
    if factors:
        low, high = min(factors), max(factors)
        amount = f"{np.median(factors):.3g}" if high < 1.05 * low else f"{low:.3g} to {high:.3g}"
        yield Cause(f"V is {amount} times an optimal V, as with a wrong scale of u", len(factors), len(wrong))


def causes_of_problems(wrong: Sequence[Judged], tol: float, timer: Timer) -> Iterator[Cause]:
    """Yield the mistakes for which some V, or F without V, are optimal."""
    kind = "V" if any(one.answer is not None and one.answer.V is not None for one in wrong) else "F"
    for text, mistake in MISTAKES.items():
        explained = 0
        for one in wrong:
            right, other = pose(one.instance), mistake(one.instance)
            is_same = all(np.array_equal(mine, its) for mine, its in zip(right, other, strict=True))
            if is_same or not np.all(np.isfinite(other.ridge)) or timer.is_over:
                continue
            objective = objective_of(other, one.answer)
            explained += not np.isnan(objective) and objective - other.minimum() <= limit_of(one, tol)
        if explained:
            yield Cause(f"{kind} is optimal {text}", explained, len(wrong))


def objective_of(problem: PosedProblem, answer: Answer | None) -> float:
    """Return the objective of a problem at V, or at F without V; NaN without a point, or at F with an l1 penalty."""
    if answer is None:
        return np.nan
    if answer.V is not None:
        return problem.objective(answer.V)
    return np.nan if answer.F is None else problem.labels_objective(answer.F)


def causes_of_rank(wrong: Sequence[Judged]) -> Iterator[Cause]:
    """Yield the cause that V, or F without V, has rank one, and that of the reference a higher rank."""
    by_kind: dict[str, list[bool]] = {"V": [], "F": []}
    for one in wrong:
        if one.answer is not None and one.answer.V is not None and one.reference.V is not None:
            units = np.append(one.instance.X.std(axis=0), 1.0)
            mine, best = (
                rank_of(V * np.outer(units[: len(V)], units[: len(V)])) for V in (one.answer.V, one.reference.V)
            )
            by_kind["V"].append(mine == 1 < best)
        elif one.answer is not None and one.answer.F is not None:
            by_kind["F"].append(rank_of(one.answer.F) == 1 < rank_of(one.reference.F))
    for kind, explained in by_kind.items():
        if any(explained):
            yield Cause(f"{kind} has rank one and that of the reference a higher rank", sum(explained), len(explained))


def rank_of(matrix: Array) -> int:
    """Return the numerical rank of a matrix."""
    values = np.linalg.svd(matrix, compute_uv=False)
    return int(np.sum(values > RANK_TOL * values[0]))


def early_stop(failing: Sequence[Judged], tol: float) -> Iterator[Cause]:
    """Yield the cause that the solver stops before the optimum, if its points or valid bounds are close to it."""
    gaps, distances = [], []
    for one in failing:
        answer = one.answer
        if answer is None or np.isnan(gap := remaining_gap(one, answer)) or gap <= tol:
            continue
        gaps.append(gap)
        distances.append(gap / max(one.instance.nu - one.reference.upper, 1e-3))
    if gaps and np.median(distances) <= SMALL_EXCESS:
        amount = format_upper(float(np.median(gaps)))
        text = f"the answer is right up to {amount} in the median, as after an early stop"
        yield Cause(text, len(gaps), len(failing))


def remaining_gap(one: Judged, answer: Answer) -> float:
    """Return the gap of valid bounds of a result, or the excess of its point over the optimum; NaN if neither holds."""
    result, reference = answer.result, one.reference
    if result is None:
        return one.excess
    is_valid = result.lower <= reference.upper + AGREEMENT and result.upper >= reference.lower - AGREEMENT
    return result.gap if is_valid and abs(result.value - answer.objective) <= AGREEMENT else np.nan
