"""What the findings of several methods say about each other: contradictions, and what is worth a note."""

from collections.abc import Iterator, Mapping
from itertools import combinations, permutations
from typing import NamedTuple

import numpy as np

from diffrac_cvx.comparison.methods import Found
from diffrac_cvx.metrics import clustering_error, eigenvalue_ratio
from diffrac_cvx.result import Bracket

SLACK = 1e-9  # of rounding, beyond the proved brackets
RANK_ONE = 1e-2  # eigenvalue ratio of Y below which a solution counts as labels


class Claim(NamedTuple):
    """What a method says of an optimum: who, the value it reached (of no width on its own scale), its bounds."""

    name: str
    value: Bracket
    bounds: Bracket


def disagreements(found: Mapping[str, Found]) -> Iterator[str]:
    """Name every contradiction beyond the proved gaps; there can be none if all brackets are right."""
    for name, one in found.items():
        yield from within(own_claim(name, one))
    for first, second in combinations(found, 2):
        yield from between(first, found[first], second, found[second])
    for name, other in permutations(found, 2):
        yield from labels_against(name, found[name], other, found[other])


def own_claim(name: str, found: Found) -> Claim | None:
    """Return what a method says of its own problem."""
    result = found.result
    if result is None:
        return None
    return Claim(name, Bracket(result.value, result.value), Bracket(result.lower, result.upper))


def common_claim(name: str, found: Found) -> Claim | None:
    """Return what that says of (15)."""
    return None if found.value is None or found.bounds is None else Claim(name, found.value, found.bounds)


def within(claim: Claim | None) -> Iterator[str]:
    """Say where a method contradicts itself."""
    if claim is None:
        return
    name, (value, _), (lower, upper) = claim
    slack = rounding_of(value, lower, upper)
    if np.any(np.isnan((value, lower, upper))):
        yield f"{name} returns a value or a bound that is not a number"
    elif lower > upper + slack:
        yield f"{name} returns a lower bound of {lower:.6g} above its own upper bound {upper:.6g}"
    elif value < lower - slack:
        yield f"{name} returns a value of {value:.6g} below its own lower bound {lower:.6g}"
    elif value > upper + slack:
        yield f"{name} returns a value of {value:.6g} above its own upper bound {upper:.6g}"


def between(first: str, one: Found, second: str, other: Found) -> Iterator[str]:
    """Say where two methods contradict each other: on their own scale if they solve one problem, else on (15)'s."""
    same = one.problem == other.problem
    read = own_claim if same else common_claim
    a, b = read(first, one), read(second, other)
    if a is None or b is None:
        return
    scale = f" of {one.problem}" if same else " of (15)"
    brackets = [*apart(a, b, scale), *apart(b, a, scale)]
    yield from brackets or [*outside(a, b, scale), *outside(b, a, scale)]


def apart(low: Claim, high: Claim, scale: str) -> Iterator[str]:
    """Say that one bracket lies below another."""
    distance = low.bounds.lower - high.bounds.upper
    if distance > rounding_of(*low.bounds, *high.bounds):
        yield (
            f"{low.name} proves that the optimum{scale} is at least {low.bounds.lower:.6g}, {high.name} that it is at "
            f"most {high.bounds.upper:.6g}: apart by {distance:.2g}"
        )


def outside(judge: Claim, claim: Claim, scale: str) -> Iterator[str]:
    """Say that a value lies outside the bracket of another method; above it, by more than its own gap."""
    slack = rounding_of(*judge.bounds, *claim.value)
    above = claim.value.lower - claim.bounds.gap - judge.bounds.upper
    if judge.bounds.lower - claim.value.upper > slack:
        yield (
            f"{claim.name} returns a value{scale} of {claim.value.upper:.6g}, {judge.name} proves that there is none "
            f"below {judge.bounds.lower:.6g}"
        )
    elif above > slack:
        yield (
            f"{claim.name} returns a value{scale} of {claim.value.lower:.6g}, by {above:.2g} more than its own gap "
            f"above the upper bound {judge.bounds.upper:.6g} of {judge.name}"
        )


def labels_against(name: str, found: Found, other: str, against: Found) -> Iterator[str]:
    """Say that labels do better in Eq. (9) than another method claims is possible."""
    if against.bounds is None or np.isnan(found.objective):
        return
    if found.objective < against.bounds.lower - SLACK:
        yield (
            f"the labels of {name} score {found.objective:.6g} in (9), {other} claims that none score less than "
            f"{against.bounds.lower:.6g}"
        )


def rounding_of(*numbers: float) -> float:
    """Return what rounding may do to numbers of these sizes."""
    return SLACK * max(1.0, *(abs(number) if np.isfinite(number) else 0.0 for number in numbers))


# What is worth a note


def label_differences(found: Mapping[str, Found], tol: float) -> Iterator[str]:
    """Say that solutions of (15), in whatever form, are of rank one at small proved gaps and not the same labels."""
    groups: list[list[str]] = []
    for name, one in found.items():
        if not is_sharp(one, tol):
            continue
        same = next((group for group in groups if same_labels(found[group[0]], one)), None)
        if same is None:
            groups.append([name])
        else:
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
        yield (
            f"the best labels, those of {best}, score {objective:.6g} in (9), and {sharpest} proves that none score "
            f"less than {lower:.6g}"
        )


def lower_of(found: Found) -> float:
    """Return what a method proves of (15), and so of (9), from below; -inf for nothing."""
    return -np.inf if found.bounds is None or np.isnan(found.bounds.lower) else found.bounds.lower
