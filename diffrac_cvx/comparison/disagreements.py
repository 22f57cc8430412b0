"""What the findings of several methods say about each other: contradictions, and what is worth a note."""

from collections.abc import Collection, Iterator, Mapping
from itertools import combinations, permutations
from typing import NamedTuple

import numpy as np

from diffrac_cvx.comparison.methods import Found
from diffrac_cvx.metrics import clustering_error, eigenvalue_ratio
from diffrac_cvx.problem.proved_numbers import format_ends, format_lower, width_of
from diffrac_cvx.problem.result import Bracket, Result

SLACK = 1e-9  # of rounding, beyond the proved brackets
RANK_ONE = 1e-2  # eigenvalue ratio of Y below which a solution counts as labels


class Claim(NamedTuple):
    """What a method claims of an optimum: its name, the value it reached (of width 0 on its own scale), its bounds."""

    name: str
    value: Bracket
    bounds: Bracket

    # Signed amounts: a contradiction where positive, beyond rounding.

    def bracket_above(self, other: "Claim") -> float:
        """Return by how much its bracket lies above another."""
        return self.bounds.lower - other.bounds.upper

    def value_below(self, judge: "Claim") -> float:
        """Return by how much its value lies below the bracket of another method."""
        return judge.bounds.lower - self.value.upper

    def value_above(self, judge: "Claim") -> float:
        """Return by how much its value lies above the bracket of another method, minus its own gap."""
        return self.value.lower - self.bounds.gap - judge.bounds.upper


def own_claim(name: str, result: Result | None) -> Claim | None:
    """Return what a method claims of its own problem."""
    if result is None:
        return None
    return Claim(name, Bracket(result.value, result.value), Bracket(result.lower, result.upper))


def common_claim(name: str, found: Found) -> Claim | None:
    """Return what that implies for (15)."""
    return None if found.value is None or found.bounds is None else Claim(name, found.value, found.bounds)


def worst_disagreement(found: Mapping[str, Result | Found], judges: Collection[str] | None = None) -> tuple[float, str]:
    """Return by how much two methods for one optimum contradict each other most, and which: negative if all agree.

    Two brackets should overlap ("a | b"), and a value should lie inside the bracket of another method, or above it by
    at most its own gap ("b outside a").

    Parameters
    ----------
    found : mapping of str to Result or Found
        Results for one problem, or for problems of one value, or what `attempt` returns, which is read on the scale
        of (15).
    judges : collection of str, optional
        The methods with whose brackets the values of the others are compared; by default all with all.
    """
    made = [common_claim(name, one) if isinstance(one, Found) else own_claim(name, one) for name, one in found.items()]
    claims = [claim for claim in made if claim is not None]
    amounts = [
        (max(one.bracket_above(other), other.bracket_above(one)), f"{one.name} | {other.name}")
        for one, other in combinations(claims, 2)
    ]
    amounts += [
        (max(claim.value_below(judge), claim.value_above(judge)), f"{claim.name} outside {judge.name}")
        for judge, claim in permutations(claims, 2)
        if judges is None or (judge.name in judges and claim.name not in judges)
    ]
    amount, pair = max(amounts, key=lambda pair: pair[0], default=(-np.inf, ""))
    return float(amount), pair


def find_disagreements(found: Mapping[str, Found]) -> Iterator[str]:
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
    slack = rounding_of(value, lower, upper)
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


def contradictions_between(first: str, one: Found, second: str, other: Found) -> Iterator[str]:
    """Say where two methods contradict each other: on their own scale if they solve one problem, else on (15)'s."""
    if one.problem == other.problem:
        a, b, scale = own_claim(first, one.result), own_claim(second, other.result), f" of {one.problem}"
    else:
        a, b, scale = common_claim(first, one), common_claim(second, other), " of (15)"
    if a is None or b is None:
        return
    brackets = [*describe_apart(a, b, scale), *describe_apart(b, a, scale)]
    yield from brackets or [*describe_outside(b, a, scale), *describe_outside(a, b, scale)]


def describe_apart(claim: Claim, other: Claim, scale: str) -> Iterator[str]:
    """Say that a bracket lies above another."""
    if claim.bracket_above(other) > rounding_of(*claim.bounds, *other.bounds):
        apart = claim.bounds.lower, other.bounds.upper
        lower, upper = format_ends(*apart)
        yield (
            f"{claim.name} proves that the optimum{scale} is at least {lower}, {other.name} that it is at most "
            f"{upper}: apart by {format_lower(-width_of(*apart))}"
        )


def describe_outside(claim: Claim, judge: Claim, scale: str) -> Iterator[str]:
    """Say that a value lies outside the bracket of another method; above it, by more than its own gap."""
    slack, above = rounding_of(*judge.bounds, *claim.value), claim.value_above(judge)
    if claim.value_below(judge) > slack:
        lower, value = format_ends(judge.bounds.lower, claim.value.upper)
        yield f"{claim.name} returns a value{scale} of {value}, {judge.name} proves that there is none below {lower}"
    elif above > slack:
        value, upper = format_ends(claim.value.lower, judge.bounds.upper)
        yield (
            f"{claim.name} returns a value{scale} of {value}, by {format_lower(above)} more than its own gap above "
            f"the upper bound {upper} of {judge.name}"
        )


def contradictions_of_labels(name: str, found: Found, other: str, against: Found) -> Iterator[str]:
    """Say that labels do better in Eq. (9) than another method claims is possible."""
    if against.bounds is None or np.isnan(found.objective):
        return
    if found.objective < against.bounds.lower - SLACK:
        lower, score = format_ends(against.bounds.lower, found.objective)
        yield f"the labels of {name} score {score} in (9), {other} claims that none score less than {lower}"


def rounding_of(*numbers: float) -> float:
    """Return a bound on the rounding error of numbers of these sizes."""
    return SLACK * max(1.0, *(abs(number) if np.isfinite(number) else 0.0 for number in numbers))


def label_differences(found: Mapping[str, Found], tol: float) -> Iterator[str]:
    """Say that solutions of (15), in whatever form, are of rank one at small proved gaps and not the same labels."""
    groups: list[list[str]] = []
    for name, one in found.items():
        if is_sharp(one, tol):
            same = next((group for group in groups if same_labels(found[group[0]], one)), [])
            if not same:
                groups.append(same)
            same.append(name)
    if len(groups) > 1:
        yield f"of rank one at small gaps, but their labels differ: {' | '.join(', '.join(group) for group in groups)}"


def is_sharp(found: Found, tol: float) -> bool:
    """Whether a solution of (15), in whatever form, is of rank one and near the optimum: it is labels."""
    if found.result is None or found.bounds is None or not found.bounds.gap <= 2 * tol:
        return False
    return eigenvalue_ratio(found.result.F) < RANK_ONE


def same_labels(first: Found, second: Found) -> bool:
    """Whether two methods found the same clusters."""
    return first.labels is not None and second.labels is not None and clustering_error(first.labels, second.labels) == 0


def best_labels(found: Mapping[str, Found]) -> Iterator[str]:
    """Say which labels are the best, and what is proved about all labellings."""
    scores = [(one.objective, name) for name, one in found.items() if not np.isnan(one.objective)]
    bounds = [(bound, name) for name, one in found.items() if (bound := lower_of(one)) > -np.inf]
    if scores and bounds:
        objective, best = min(scores, key=lambda score: score[0])
        lower, sharpest = max(bounds, key=lambda bound: bound[0])
        least, score = format_ends(lower, objective)
        yield (
            f"the best labels, those of {best}, score {score} in (9), and {sharpest} proves that none score less than "
            f"{least}"
        )


def lower_of(found: Found) -> float:
    """Return what a method proves of (15), and so of (9), from below; -inf for nothing."""
    return -np.inf if found.bounds is None or np.isnan(found.bounds.lower) else found.bounds.lower
