"""Invariances of every relaxation and solver of the registry under transformations of the data.

A change of the data comes with what it does to the weights of the penalty and to the optimum.  Brackets of the changed
and of the original data must meet, and the labels must be the same.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise, product
from typing import NamedTuple

import numpy as np
import pytest
from instances import assert_overlap, with_noise_columns

import diffrac_cvx as dc
from diffrac_cvx import registry

pytestmark = pytest.mark.filterwarnings("ignore::diffrac_cvx.DegenerateDataWarning")

N, D = 10, 3
X, Y, _ = dc.datasets.make_planted(N, D, sparsity=2, noise=0.25, rng=3)
X = X - X.mean(axis=0)
BASIS = np.random.default_rng(1).standard_normal((D, D))
TURN = np.linalg.qr(BASIS)[0]
ORDER, COLUMNS = np.random.default_rng(2).permutation(N), np.array([2, 0, 1])
ROUNDING = 1e-9  # changed data are rounded, and so are the numbers expected


# The methods: every relaxation by CLARABEL, and the solvers that do not need CVXPY


@dataclass(frozen=True)
class Case:
    """A method: from data, nu, penalty and the imbalance of (7) to a result; the gap asked of it, and its record."""

    run: Callable[..., dc.Result]
    tol: float
    record: registry.RelaxationRecord | None = None

    def takes(self, penalty):
        parts = registry.ALL_PARTS if self.record is None else self.record.penalty
        return not registry.explain_unsupported(parts, penalty)

    def expected(self, v, nu, penalty):
        """The optimum where that of (15) is v; None where nothing is known."""
        if self.record is None or self.record.bounds_15 is registry.same_value:
            return v
        if self.record.builder is dc.multiclass:
            return nu / 3 + 2 / 3 * v
        if self.record.builder is dc.v_space_normalized:
            return None if penalty.has_l1 else -((1 - v) ** 0.5)
        return None


def reference(name):
    record, tol = registry.RELAXATIONS[name], 1e-5 if name in ("v_space_normalized", "constrained_alpha") else 1e-6

    def run(X, nu, penalty, alpha=0.3):
        task = registry.ComparisonTask(X=X, nu=nu, penalty=penalty, alpha=alpha)
        return dc.solve(record.build(task), "CLARABEL", tol=tol)

    return Case(run, tol, record)


def fast(name, tol):
    record = registry.SOLVERS[name]
    return Case(lambda X, nu, penalty, alpha=0.3: record.function(X, nu, penalty, tol=tol), tol)


TOLERANCES = {"low_rank": 1e-7, "fista": 1e-3, "fista published": 5e-2}
METHODS = {name: fast(name, TOLERANCES.get(name, 1e-3)) for name in registry.SOLVERS}
METHODS |= {name: reference(name) for name in registry.RELAXATIONS if name != "correlation"}  # the same for all data
PENALTIES = {
    "none": (0.0, 0.0),
    "ridge": (0.4, 0.0),
    "ridges": ([0.2, 0.5, 0.0], 0.0),
    "l1": (0.0, 0.3),
    "l1s": (0.0, [0.1, 0.3, 0.5]),
    "both": (0.2, [0.1, 0.3, 0.2]),
}
IMBALANCES = (0.4, 1.0)


QUICK = [("none", 1.0), ("ridges", 0.4), ("both", 0.4)]  # the settings that are not left to the slow tests


def settings(method):
    """Every penalty that a method takes, with every nu."""
    case = METHODS[method]
    taken = [name for name, (a, c) in PENALTIES.items() if case.takes(dc.Penalty(a, c))]
    return list(product(taken, IMBALANCES))


@cache
def original(method, penalty, nu):
    a, c = PENALTIES[penalty]
    return METHODS[method].run(X, nu, dc.Penalty(a, c))


# The changes: data, a and c, where the original points are in the changed data, and when the optimum stays


class Change(NamedTuple):
    data: Callable
    weights: Callable = lambda a, c: (a, c)
    points: Callable = np.arange
    holds: Callable = lambda a, c: True
    looser: float = 1.0  # times the tolerance: optima that are no single point are approached more slowly


def one_more(a, c):
    """Weights of one more column, no parts that there were not."""
    return np.append(a, a.max()), np.append(c, c.max())


def scaled(factors):
    return lambda a, c: (a * factors, c * factors)


def no_penalty(a, c):
    return not a.any() and not c.any()


ORIGIN = np.array([1e6, -1e3, 0.1])
UNITS = np.array([1e-3, 3.7, 1e4])
CHANGES = {
    "rows in another order": Change(lambda X: X[ORDER], points=lambda n: np.argsort(ORDER)),
    "every row twice": Change(lambda X: np.repeat(X, 2, axis=0), points=lambda n: 2 * np.arange(n)),
    "columns in another order": Change(lambda X: X[:, COLUMNS], lambda a, c: (a[COLUMNS], c[COLUMNS])),
    "columns in other units without a penalty": Change(lambda X: X * [1e-8, 1.0, 1e8], holds=no_penalty),
    "signs of columns": Change(lambda X: X * [1.0, -1.0, -1.0]),
    "another origin": Change(lambda X: X + ORIGIN),
    "other units with the weights": Change(lambda X: X * UNITS, scaled(UNITS)),
    "another basis without a penalty": Change(lambda X: X @ BASIS + 5.0, holds=no_penalty),
    "a rotation with an equal ridge": Change(lambda X: X @ TURN, holds=lambda a, c: not c.any() and len(set(a)) == 1),
    "a column constant up to rounding": Change(
        lambda X: np.column_stack([X, np.where(np.arange(len(X)) % 2, 0.1, 0.3 - 0.2)]), one_more
    ),
    "a column of zeros": Change(lambda X: np.column_stack([X, np.zeros(len(X))]), one_more),
    "a column twice without a ridge": Change(
        lambda X: X[:, [0, 1, 2, 0]],
        lambda a, c: (np.append(a, 0.0), c[[0, 1, 2, 0]]),
        holds=lambda a, c: not a.any(),
        looser=10.0,
    ),
    "a column in two halves without an l1 part": Change(
        lambda X: np.column_stack([X[:, :2], X[:, 2:] * 0.5**0.5, X[:, 2:] * 0.5**0.5]),
        lambda a, c: (a[[0, 1, 2, 2]], np.append(c, 0.0)),
        holds=lambda a, c: not c.any(),
    ),
    "two columns merged without a penalty": Change(
        lambda X: np.column_stack([X, X[:, 0] - 2 * X[:, 1]]),
        lambda a, c: (np.append(a, 0.0), np.append(c, 0.0)),
        holds=no_penalty,
    ),
}


def weights_of(penalty):
    return tuple(np.broadcast_to(np.asarray(part, dtype=float), (D,)).copy() for part in PENALTIES[penalty])


def assert_same_split(y, z):
    assert abs(np.mean(y * z)) == 1.0


def same_problems():
    """Every method, setting and change that go together; the quick ones of CVXPY are one for each change."""
    for method, (name, change) in product(METHODS, CHANGES.items()):
        chosen = [one for one in settings(method) if change.holds(*weights_of(one[0]))]
        quick = [one for one in QUICK if one in chosen]
        quick = quick if METHODS[method].record is None else quick[-1:]
        for one in chosen:
            yield pytest.param(method, *one, name, marks=[] if one in quick else [pytest.mark.slow])


@pytest.mark.parametrize(("method", "penalty", "nu", "change"), list(same_problems()))
def test_what_does_not_change_the_problem_changes_neither_bracket_nor_labels(method, penalty, nu, change):
    case, change = METHODS[method], CHANGES[change]
    a, c = weights_of(penalty)
    before = original(method, penalty, nu)
    after = case.run(change.data(X), nu, dc.Penalty(*change.weights(a, c)))
    assert_overlap(after, before, ROUNDING)
    assert before.gap <= case.tol
    assert after.gap <= change.looser * case.tol
    labels = dc.rounding.kmeans_centered(after.F)[change.points(N)]
    assert_same_split(labels, dc.rounding.kmeans_centered(before.F))


# The order of optima


SAME = [name for name, case in METHODS.items() if case.expected(0.5, 1.0, dc.Penalty()) == 0.5]  # value of (15)


@pytest.mark.parametrize("method", SAME)
def test_the_optimum_grows_with_the_penalty_and_with_nu_in_which_it_is_concave(method):
    case, free = METHODS[method], dc.Penalty()
    low, middle, high = nus = [case.run(X, nu, free) for nu in (0.2, 0.6, 1.0)]
    penalties = [[dc.Penalty(**{part: t}) for t in (0.1, 0.5, 2.0)] for part in "ac"]
    rows = [[high, *(case.run(X, 1.0, one) for one in row)] for row in penalties if case.takes(row[0])]
    for row in (nus, *rows):
        assert all(small.lower <= large.upper + ROUNDING for small, large in pairwise(row))
    assert middle.upper >= (low.lower + high.lower) / 2 - ROUNDING


# Known instances, by every method


BALANCED = np.random.default_rng(0).permutation(np.repeat([1.0, -1.0], 8))
LINE = np.random.default_rng(5).standard_normal((15, 1))
LINE -= LINE.mean()
SPARSE = np.column_stack([BALANCED, np.random.default_rng(9).standard_normal((16, 3))])
SPARSE = (SPARSE - SPARSE.mean(axis=0)) / SPARSE.std(axis=0)
PATTERNS = np.array(list(product([1.0, -1.0], repeat=3)))


def on_a_line(a, c):
    return 1 - np.mean(np.abs(LINE)) ** 2 / (np.mean(LINE**2) + a**2 + c**2)


KNOWN = {  # data, nu, penalty, the optimum of (15), labels where they are unique
    "balanced labels": (with_noise_columns(BALANCED[:, None], 3, 7), 1.0, dc.Penalty(), 0.0, BALANCED),
    "two labels": (with_noise_columns(PATTERNS[:, :2], 3, 7), 1.0, dc.Penalty(), 0.0, None),
    "sign patterns": (PATTERNS, 1.0, dc.Penalty(), 0.0, None),
    "nu = 0": (X, 0.0, dc.Penalty(), 0.0, None),
    "no features": (np.full((8, 2), 0.1), 0.6, dc.Penalty(), 0.6, None),
    "no features, with both weights": (np.full((8, 2), 7.0), 0.3, dc.Penalty(a=0.1, c=0.2), 0.3, None),
    "a line": (LINE, 1.0, dc.Penalty(), on_a_line(0.0, 0.0), np.sign(LINE[:, 0])),
    "a line with a ridge": (LINE, 1.0, dc.Penalty(a=0.7), on_a_line(0.7, 0.0), np.sign(LINE[:, 0])),
    "a line with an l1 part": (LINE, 1.0, dc.Penalty(c=0.5), on_a_line(0.0, 0.5), np.sign(LINE[:, 0])),
    "a line with both": (LINE, 1.0, dc.Penalty(0.3, 0.5), on_a_line(0.3, 0.5), np.sign(LINE[:, 0])),
    "one-sparse labels": (SPARSE, 1.0, dc.Penalty.l1(0.3), 0.3 / 1.3, BALANCED),
    "as many columns as rows": (X[:4] @ np.eye(3, 4), 1.0, dc.Penalty(), 0.0, None),
    "more columns than rows": (X.T, 1.0, dc.Penalty(), 0.0, None),
    "a row at the mean": (np.vstack([LINE, [[0.0]]]), 1.0, dc.Penalty(), (15 * on_a_line(0, 0) + 1) / 16, None),
}


def known():
    """Every method with the instances whose optimum it has."""
    for (method, case), (instance, (_, nu, penalty, v, _)) in product(METHODS.items(), KNOWN.items()):
        if case.takes(penalty) and case.expected(v, nu, penalty) is not None:
            yield method, instance


@pytest.mark.parametrize(("method", "instance"), list(known()))
def test_a_known_optimum_is_in_the_bracket(method, instance):
    case, (data, nu, penalty, v, labels) = METHODS[method], KNOWN[instance]
    found = case.run(data, nu, penalty)
    assert found.lower - ROUNDING <= case.expected(v, nu, penalty) <= found.upper + ROUNDING
    assert found.gap <= case.tol
    if nu == 0.0:
        assert found.lower == found.upper == case.expected(v, nu, penalty) or method == "multiclass"
        np.testing.assert_array_equal(found.F @ found.F.T, np.ones((N, N)))
    if labels is not None:
        assert_same_split(dc.rounding.sign_leading(found.F), labels)


# Labels under another name


@pytest.mark.parametrize("penalty", PENALTIES)
def test_flipped_labels_are_the_same_labels(penalty):
    weights = dc.Penalty(*PENALTIES[penalty])
    plus, minus = (dc.certify_labels(X, y, 0.0, nu=0.4, penalty=weights).objective for y in (Y, -Y))
    assert plus == minus
    np.testing.assert_array_equal(dc.rounding.refine(X, -Y), -dc.rounding.refine(X, Y))
    assert dc.metrics.squared_correlation(X, -Y) == pytest.approx(dc.metrics.squared_correlation(X, Y), rel=1e-12)
    assert dc.metrics.clustering_error(Y, -Y) == 0.0
    assert dc.certify_y(X, -Y[:, None], 0.4) == dc.certify_y(X, Y[:, None], 0.4)
