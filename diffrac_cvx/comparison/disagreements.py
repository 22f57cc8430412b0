"""Contradictions between the results of several methods, and notes on their labels."""

from collections.abc import Collection, Iterator, Mapping
from itertools import combinations, permutations
from typing import NamedTuple

import numpy as np

from diffrac_cvx.comparison.methods import MethodResult
from diffrac_cvx.problem.formatting import format_ends, format_lower, width_of
from diffrac_cvx.problem.result import Bracket, Result

SLACK = 1e-9  # relative rounding error allowed beyond the certified bounds


class MethodBounds(NamedTuple):
    """Name of a method, its value (of width 0 on its own scale), and its bounds on the optimum."""

    name: str
    value: Bracket
    bounds: Bracket

    # Signed amounts: a contradiction if positive beyond rounding.

    def bracket_above(self, other: "MethodBounds") -> float:
        """Return the amount by which its lower bound exceeds the other upper bound."""
        return self.bounds.lower - other.bounds.upper

    def value_below(self, reference: "MethodBounds") -> float:
        """Return the amount by which its value lies below the reference's lower bound."""
        return reference.bounds.lower - self.value.upper

    def value_above(self, reference: "MethodBounds") -> float:
        """Return the amount by which its value exceeds the reference's upper bound, minus its own gap."""
        return self.value.lower - self.bounds.gap - reference.bounds.upper


def own_bounds(name: str, result: Result | None) -> MethodBounds | None:
    """Return the value and bounds of a result for its own problem."""
    if result is None:
        return None
    return MethodBounds(name, Bracket(result.value, result.value), Bracket(result.lower, result.upper))


def common_bounds(name: str, found: MethodResult) -> MethodBounds | None:
    """Return the implied value and bounds for (15)."""
    return None if found.value is None or found.bounds is None else MethodBounds(name, found.value, found.bounds)


def worst_disagreement(
    found: Mapping[str, Result | MethodResult], references: Collection[str] | None = None
) -> tuple[float, str]:
    """Return the largest contradiction between two methods for one optimum, negative if all agree, and the pair.

    The bounds of two methods must overlap ("a | b"), and a value must lie within the bounds of another method, or above
    them by at most its own gap ("b outside a").

    Parameters
    ----------
    found : mapping of str to Result or MethodResult
        Results for one problem, or for problems with the same value; a `MethodResult` is read on the scale of (15).
    references : collection of str, optional
        Methods with whose bounds the values of the other methods are compared; by default all pairs are compared.
    """
    candidates = [
        common_bounds(name, one) if isinstance(one, MethodResult) else own_bounds(name, one)
        for name, one in found.items()
    ]
    methods = [method for method in candidates if method is not None]
    amounts = [
        (max(one.bracket_above(other), other.bracket_above(one)), f"{one.name} | {other.name}")
        for one, other in combinations(methods, 2)
    ]
    amounts += [
        (max(other.value_below(reference), other.value_above(reference)), f"{other.name} outside {reference.name}")
        for reference, other in permutations(methods, 2)
        if references is None or (reference.name in references and other.name not in references)
    ]
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
    if one.problem == other.problem:
        a, b, scale = own_bounds(first, one.result), own_bounds(second, other.result), f" of {one.problem}"
    else:
        a, b, scale = common_bounds(first, one), common_bounds(second, other), " of (15)"
    if a is None or b is None:
        return
    pairs = (a, b), (b, a)
    disjoint = [pair for pair in pairs if pair[0].bracket_above(pair[1]) > rounding_slack(*a.bounds, *b.bounds)]
    for method, reference in disjoint:
        ends = method.bounds.lower, reference.bounds.upper
        lower, upper = format_ends(*ends)
        yield (
            f"{method.name} certifies that the optimum{scale} is at least {lower}, but {reference.name} that it is at "
            f"most {upper}: a difference of {format_lower(-width_of(*ends))}"
        )
    for reference, method in () if disjoint else pairs:  # values outside the bounds of the other method
        slack, excess = rounding_slack(*reference.bounds, *method.value), method.value_above(reference)
        if method.value_below(reference) > slack:
            lower, value = format_ends(reference.bounds.lower, method.value.upper)
            yield f"{method.name} returns a value{scale} of {value}, below the lower bound {lower} of {reference.name}"
        elif excess > slack:
            value, upper = format_ends(method.value.lower, reference.bounds.upper)
            yield (
                f"{method.name} returns a value{scale} of {value}, above the upper bound {upper} of {reference.name} "
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
