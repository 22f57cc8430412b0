"""Contradictions between the results of several methods, and notes on their labels."""

from collections.abc import Collection, Iterator, Mapping
from itertools import combinations, permutations, product

import numpy as np

from diffrac_cvx.comparison.methods import MethodResult
from diffrac_cvx.problem.formatting import format_ends, format_lower, width_of
from diffrac_cvx.problem.result import Bracket, Result

SLACK = 1e-9  # relative rounding error allowed beyond the certified bounds


def worst_disagreement(found: Mapping[str, Result], references: Collection[str]) -> tuple[float, str]:
    """Return the largest contradiction between two results for one optimum, negative if all agree, and the pair.

    All bounds must overlap ("a | b"), and the value of a method that is not among the references must lie within the
    bounds of each reference, or above them by at most its own gap ("b outside a").
    """
    amounts = [
        (max(one.lower - other.upper, other.lower - one.upper), f"{first} | {second}")
        for (first, one), (second, other) in combinations(found.items(), 2)
    ]
    known, others = ([name for name in found if (name in references) == is_known] for is_known in (True, False))
    for reference, name in product(known, others):
        lower, upper = found[reference].bracket
        amount = max(lower - found[name].value, found[name].value - found[name].gap - upper)
        amounts.append((amount, f"{name} outside {reference}"))
    amount, pair = max(amounts, key=lambda pair: pair[0], default=(-np.inf, ""))
    return float(amount), pair


def find_disagreements(found: Mapping[str, MethodResult]) -> Iterator[str]:
    """Yield a message on every contradiction beyond the certified gaps; there is none if all bounds are valid."""
    for name, one in found.items():
        if one.result is not None:
            yield from contradictions_within(name, one.result)
    for first, second in combinations(found, 2):
        yield from contradictions_between(first, found[first], second, found[second])
    for (name, one), (other, reference) in permutations(found.items(), 2):
        lower = lower_bound_of(reference)
        if one.objective < lower - SLACK:
            least, reached = format_ends(lower, one.objective)
            yield f"the labels of {name} have the objective {reached} in (9), below the lower bound {least} of {other}"


def contradictions_within(name: str, result: Result) -> Iterator[str]:
    """Yield a message if the value and the bounds of one method contradict each other."""
    value, lower, upper = result.value, result.lower, result.upper
    slack = rounding_slack(value, lower, upper)
    if np.any(np.isnan((value, lower, upper))):
        yield f"{name} returns a value or a bound that is NaN"
    elif lower > upper + slack:
        least, most = format_ends(lower, upper)
        yield f"{name} returns a lower bound of {least} above its own upper bound {most}"
    elif value < lower - slack:
        least, reached = format_ends(lower, value)
        yield f"{name} returns a value of {reached} below its own lower bound {least}"
    elif value > upper + slack:
        # The value is rounded down and the upper bound up, so the printed value also exceeds the printed bound.
        reached, most = format_ends(value, upper)
        yield f"{name} returns a value of {reached} above its own upper bound {most}"


def contradictions_between(first: str, one: MethodResult, second: str, other: MethodResult) -> Iterator[str]:
    """Yield the contradictions of two methods: on their own scale if they solve one problem, else on that of (15)."""
    ends: list[tuple[str, Bracket, Bracket]] = []  # name, value (of width 0 on its own scale) and bounds
    for name, found in ((first, one), (second, other)):
        if one.problem == other.problem and found.result is not None:
            ends.append((name, Bracket(found.result.value, found.result.value), found.result.bracket))
        elif one.problem != other.problem and found.value is not None and found.bounds is not None:
            ends.append((name, found.value, found.bounds))
    if len(ends) < 2:
        return
    scale = f" of {one.problem}" if one.problem == other.problem else " of (15)"
    pairs, slack = (ends, ends[::-1]), rounding_slack(*ends[0][2], *ends[1][2])
    disjoint = [pair for pair in pairs if pair[0][2].lower - pair[1][2].upper > slack]
    for (method, _, bounds), (reference, _, known) in disjoint:
        lower, upper = format_ends(bounds.lower, known.upper)
        yield (
            f"{method} certifies that the optimum{scale} is at least {lower}, but {reference} that it is at "
            f"most {upper}: a difference of {format_lower(-width_of(bounds.lower, known.upper))}"
        )
    for (reference, _, known), (method, value, bounds) in () if disjoint else pairs:  # values outside other bounds
        slack, excess = rounding_slack(*known, *value), value.lower - bounds.gap - known.upper
        if known.lower - value.upper > slack:
            lower, reached = format_ends(known.lower, value.upper)
            yield f"{method} returns a value{scale} of {reached}, below the lower bound {lower} of {reference}"
        elif excess > slack:
            reached, upper = format_ends(value.lower, known.upper)
            yield (
                f"{method} returns a value{scale} of {reached}, above the upper bound {upper} of {reference} "
                f"by {format_lower(excess)} more than its own gap"
            )


def rounding_slack(*numbers: float) -> float:
    """Return a bound on the rounding error of numbers of these magnitudes."""
    return SLACK * max(1.0, *(abs(number) if np.isfinite(number) else 0.0 for number in numbers))


def describe_best_labels(found: Mapping[str, MethodResult]) -> Iterator[str]:
    """Yield a note on the labels with the lowest objective and the best lower bound for all labellings."""
    objectives = [(one.objective, name) for name, one in found.items() if not np.isnan(one.objective)]
    bounds = [(bound, name) for name, one in found.items() if (bound := lower_bound_of(one)) > -np.inf]
    if objectives and bounds:
        objective, best = min(objectives, key=lambda score: score[0])
        lower, tightest = max(bounds, key=lambda bound: bound[0])
        least, score = format_ends(lower, objective)
        yield f"best labels: {best}, objective {score} in (9); certified lower bound {least} ({tightest})"


def lower_bound_of(found: MethodResult) -> float:
    """Return the certified lower bound of a method on (15), and so on (9); -inf if there is none."""
    return -np.inf if found.bounds is None or np.isnan(found.bounds.lower) else found.bounds.lower
