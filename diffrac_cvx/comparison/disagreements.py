"""What the findings of several methods say about each other: contradictions, and what is worth a note."""

from collections.abc import Collection, Iterator, Mapping
from itertools import combinations, permutations
from typing import NamedTuple

import numpy as np

from diffrac_cvx.comparison.methods import MethodResult
from diffrac_cvx.metrics import clustering_error, eigenvalue_ratio
from diffrac_cvx.problem.formatting import format_ends, format_lower, width_of
from diffrac_cvx.problem.result import Bracket, Result

SLACK = 1e-9  # of rounding, beyond the proved brackets
RANK_ONE_RATIO = 1e-2  # eigenvalue ratio of Y below which a solution counts as labels


class MethodBounds(NamedTuple):
    """What a method claims of an optimum: its name, the value it reached (of width 0 on its own scale), its bounds."""

    name: str
    value: Bracket
    bounds: Bracket

    # Signed amounts: a contradiction where positive, beyond rounding.

    def bracket_above(self, other: "MethodBounds") -> float:
        """Return by how much its bracket lies above another."""
        return self.bounds.lower - other.bounds.upper

    def value_below(self, reference: "MethodBounds") -> float:
        """Return by how much its value lies below the bracket of another method."""
        return reference.bounds.lower - self.value.upper

    def value_above(self, reference: "MethodBounds") -> float:
        """Return by how much its value lies above the bracket of another method, minus its own gap."""
        return self.value.lower - self.bounds.gap - reference.bounds.upper


def own_bounds(name: str, result: Result | None) -> MethodBounds | None:
    """Return what a method claims of its own problem."""
    if result is None:
        return None
    return MethodBounds(name, Bracket(result.value, result.value), Bracket(result.lower, result.upper))


def common_bounds(name: str, found: MethodResult) -> MethodBounds | None:
    """Return what that implies for (15)."""
    return None if found.value is None or found.bounds is None else MethodBounds(name, found.value, found.bounds)


def worst_disagreement(
    found: Mapping[str, Result | MethodResult], references: Collection[str] | None = None
) -> tuple[float, str]:
    """Return by how much two methods for one optimum contradict each other most, and which: negative if all agree.

    Two brackets should overlap ("a | b"), and a value should lie inside the bracket of another method, or above it by
    at most its own gap ("b outside a").

    Parameters
    ----------
    found : mapping of str to Result or Found
        Results for one problem, or for problems of one value, or what `attempt` returns, which is read on the scale
        of (15).
    references : collection of str, optional
        The methods with whose brackets the values of the others are compared; by default all with all.
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
        (max(claim.value_below(reference), claim.value_above(reference)), f"{claim.name} outside {reference.name}")
        for reference, claim in permutations(methods, 2)
        if references is None or (reference.name in references and claim.name not in references)
    ]
    amount, pair = max(amounts, key=lambda pair: pair[0], default=(-np.inf, ""))
    return float(amount), pair


def find_disagreements(found: Mapping[str, MethodResult]) -> Iterator[str]:
    """Name every contradiction beyond the proved gaps; there can be none if all brackets are right."""
    for name, one in found.items():
        if one.result is not None:
            yield from contradictions_within(name, one.result)
    for first, second in combinations(found, 2):
        yield from contradictions_between(first, found[first], second, found[second])
    for name, other in permutations(found, 2):
        yield from contradictions_of_labels(name, found[name], other, found[other])


def contradictions_within(name: str, result: Result) -> Iterator[str]:
    """Say where a method contradicts itself."""
    value, lower, upper = result.value, result.lower, result.upper
    slack = rounding_slack(value, lower, upper)
    if np.any(np.isnan((value, lower, upper))):
        yield f"{name} returns a value or a bound that is not a number"
    elif lower > upper + slack:
        least, most = format_ends(lower, upper)
        yield f"{name} returns a lower bound of {least} above its own upper bound {most}"
    elif value < lower - slack:
        least, reached = format_ends(lower, value)
        yield f"{name} returns a value of {reached} below its own lower bound {least}"
    elif value > upper + slack:
        # The value is rounded down beside an upper bound that is rounded up: so it is above it as printed, too.
        reached, most = format_ends(value, upper)
        yield f"{name} returns a value of {reached} above its own upper bound {most}"


def contradictions_between(first: str, one: MethodResult, second: str, other: MethodResult) -> Iterator[str]:
    """Say where two methods contradict each other: on their own scale if they solve one problem, else on (15)'s."""
    if one.problem == other.problem:
        a, b, scale = own_bounds(first, one.result), own_bounds(second, other.result), f" of {one.problem}"
    else:
        a, b, scale = common_bounds(first, one), common_bounds(second, other), " of (15)"
    if a is None or b is None:
        return
    brackets = [*describe_disjoint(a, b, scale), *describe_disjoint(b, a, scale)]
    yield from brackets or [*describe_outside(b, a, scale), *describe_outside(a, b, scale)]


def describe_disjoint(method: MethodBounds, other: MethodBounds, scale: str) -> Iterator[str]:
    """Say that a bracket lies above another."""
    if method.bracket_above(other) > rounding_slack(*method.bounds, *other.bounds):
        ends = method.bounds.lower, other.bounds.upper
        lower, upper = format_ends(*ends)
        yield (
            f"{method.name} proves that the optimum{scale} is at least {lower}, {other.name} that it is at most "
            f"{upper}: apart by {format_lower(-width_of(*ends))}"
        )


def describe_outside(method: MethodBounds, reference: MethodBounds, scale: str) -> Iterator[str]:
    """Say that a value lies outside the bracket of another method; above it, by more than its own gap."""
    slack, excess = rounding_slack(*reference.bounds, *method.value), method.value_above(reference)
    if method.value_below(reference) > slack:
        lower, value = format_ends(reference.bounds.lower, method.value.upper)
        yield f"{method.name} returns a value{scale} of {value}, {reference.name} proves that there is none below {lower}"
    elif excess > slack:
        value, upper = format_ends(method.value.lower, reference.bounds.upper)
        yield (
            f"{method.name} returns a value{scale} of {value}, by {format_lower(excess)} more than its own gap above "
            f"the upper bound {upper} of {reference.name}"
        )


def contradictions_of_labels(name: str, found: MethodResult, other: str, reference: MethodResult) -> Iterator[str]:
    """Say that labels do better in Eq. (9) than another method claims is possible."""
    if reference.bounds is None or np.isnan(found.objective):
        return
    if found.objective < reference.bounds.lower - SLACK:
        lower, objective = format_ends(reference.bounds.lower, found.objective)
        yield f"the labels of {name} score {objective} in (9), {other} claims that none score less than {lower}"


def rounding_slack(*numbers: float) -> float:
    """Return a bound on the rounding error of numbers of these sizes."""
    return SLACK * max(1.0, *(abs(number) if np.isfinite(number) else 0.0 for number in numbers))


def label_differences(found: Mapping[str, MethodResult], tol: float) -> Iterator[str]:
    """Say that solutions of (15), in whatever form, are of rank one at small proved gaps and not the same labels."""
    groups: list[list[str]] = []
    for name, one in found.items():
        if is_tight(one, tol):
            agreeing = next((group for group in groups if same_labels(found[group[0]], one)), [])
            if not agreeing:
                groups.append(agreeing)
            agreeing.append(name)
    if len(groups) > 1:
        yield f"of rank one at small gaps, but their labels differ: {' | '.join(', '.join(group) for group in groups)}"


def is_tight(found: MethodResult, tol: float) -> bool:
    """Whether a solution of (15), in whatever form, is of rank one and near the optimum: it is labels."""
    if found.result is None or found.bounds is None or not found.bounds.gap <= 2 * tol:
        return False
    return eigenvalue_ratio(found.result.F) < RANK_ONE_RATIO


def same_labels(first: MethodResult, second: MethodResult) -> bool:
    """Whether two methods found the same clusters."""
    return first.labels is not None and second.labels is not None and clustering_error(first.labels, second.labels) == 0


def describe_best_labels(found: Mapping[str, MethodResult]) -> Iterator[str]:
    """Say which labels are the best, and what is proved about all labellings."""
    objectives = [(one.objective, name) for name, one in found.items() if not np.isnan(one.objective)]
    bounds = [(bound, name) for name, one in found.items() if (bound := lower_bound_of(one)) > -np.inf]
    if objectives and bounds:
        objective, best = min(objectives, key=lambda score: score[0])
        lower, tightest = max(bounds, key=lambda bound: bound[0])
        least, score = format_ends(lower, objective)
        yield (
            f"the best labels, those of {best}, score {score} in (9), and {tightest} proves that none score less than "
            f"{least}"
        )


def lower_bound_of(found: MethodResult) -> float:
    """Return what a method proves of (15), and so of (9), from below; -inf for nothing."""
    return -np.inf if found.bounds is None or np.isnan(found.bounds.lower) else found.bounds.lower
