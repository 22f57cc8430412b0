"""The cells: a number of instances of a family, every bound of every solver held against sixty digits."""

import warnings
from collections.abc import Iterator
from decimal import Decimal, localcontext
from typing import NamedTuple

import numpy as np

import diffrac_cvx as dc
from diffrac_cvx.certificates.direction_problem import direction_problem
from diffrac_cvx.certificates.label_bounds import projection_of
from diffrac_cvx.factors import dense
from diffrac_cvx.inputs import as_data
from experiments.harness.sweep import Cell, Row, cross
from experiments.stress.exact import DIGITS, best_labels_value, direction_value, labels_value
from experiments.stress.instances import FAMILIES, Instance, make_instance

BATCH = 25
BATCHES = {"full": 40, "smoke": 1}  # of each family
SECONDS = 1.0  # of one solve
LABELLED = 8  # points up to which all labellings are tried
ROUNDED = 1e-40  # what sixty digits leave
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
    return cross(family=sorted(FAMILIES), batch=range(BATCHES[grid]))


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
    X, nu, a, c = instance
    penalty = dc.Penalty(a, c)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = dict(solved(instance, penalty))
        left_out = max(
            direction_problem(as_data(X), nu, penalty).left_out,
            projection_of(as_data(X), a).left_out,
            *(result.left_out for result in results.values()),
        )
        values = {name: direction_value(X, nu, a, c, dense(r.G)) for name, r in results.items() if r.G is not None}
        bounds = [Bound(name, "upper", results[name].upper, value) for name, value in values.items()]
        lowers = {name: result.lower for name, result in results.items()}
        for name, result in results.items():
            found = dc.certify_v(X, result.V, nu, penalty)
            lowers[f"certify_v of {name}"] = found.lower
            if not c.any():
                lowers[f"certify_y of {name}"] = dc.certify_y(X, result.F, nu, penalty=penalty).lower
        # Any exact value of any V, and of any labels, is at least the optimum.
        least = min([*values.values(), Decimal(nu), Decimal(1)])
        best = best_labels_value(X, nu, a) if not c.any() and len(X) <= LABELLED else None
        labels = dc.rounding.kmeans_centered(results["low_rank"].F)
        proof = dc.certify_labels(X, labels, results["low_rank"], nu=nu, penalty=penalty)
        bounds.append(Bound("certify_labels", "upper", proof.objective, labels_value(X, nu, a, c, labels, proof.v)))
    if left_out == 0:  # else the bracket is that of data without these directions
        least = min([least, *([best] if best is not None else [])])
        bounds += [Bound(name, "lower", lower, least) for name, lower in lowers.items()]
        if best is not None:
            bounds.append(Bound("certify_labels", "lower", proof.lower, best))
    return bounds, left_out


def solved(instance: Instance, penalty: dc.Penalty) -> Iterator[tuple[str, dc.Result]]:
    """Yield the results of the fast solvers, at a small and at a large tolerance."""
    X, nu, *_ = instance
    yield "low_rank", dc.low_rank(X, nu, penalty, tol=1e-9, max_iter=500, time_limit=SECONDS)
    yield "low_rank, loose", dc.low_rank(X, nu, penalty, tol=1e-2, max_iter=50, time_limit=SECONDS)
    yield "fista", dc.fista(X, nu, penalty, tol=1e-3, max_iter=300, time_limit=SECONDS)
