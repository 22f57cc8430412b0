"""Relaxations with constraints: label space, direction space and low_rank agree, and all bounds are valid."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from posed import linked_points
from rationals import centered, fractions

import diffrac_cvx as dc
from diffrac_cvx.certificates.block_problem import block_problem
from diffrac_cvx.certificates.label_bounds import projection_of
from diffrac_cvx.points.constraints import Chunklets
from diffrac_cvx.points.floating_point import sum_error
from diffrac_cvx.points.table import array_table
from diffrac_cvx.problem.direction_problem import direction_problem

pytestmark = pytest.mark.filterwarnings(
    "ignore::diffrac_cvx.DegenerateDataWarning", "ignore:Solution may be inaccurate"
)


def test_sums_of_points_that_are_nothing_but_rounding_prove_nothing_false():
    """Equal points with cannot-link constraints: their rows are zero up to the rounding of the centring."""
    rng = np.random.default_rng(3)
    X = np.repeat(rng.standard_normal((6, 3)) * 1e3 + 1e6, 2, axis=0)
    constraints = dc.Constraints(cannot_link=[(i, i + 1) for i in range(0, 12, 2)])
    for settings in ({"ridge": 1.0}, {"ridge": 1.0, "nu": 0.5}, {"lam": 10.0, "ridge": 1.0}):
        result = dc.low_rank(X, constraints=constraints, tol=1e-8, **settings)
        assert result.upper == 1.0
        assert result.lower <= 1.0  # every labelling splits each pair: nothing is explained, and the objective is 1


def test_points_of_weight_zero_follow_what_they_are_linked_with():
    X = np.random.default_rng(0).standard_normal((10, 2))
    w = np.append(np.ones(8), [0.0, 0.0])
    result = dc.low_rank(
        X, ridge=0.1, sample_weight=w, constraints=dc.Constraints(cannot_link=[(0, 8)], must_link=[(1, 2)])
    )
    np.testing.assert_allclose(result.F[8], -result.F[0], atol=1e-14)
    alone = dc.low_rank(X[:8], ridge=0.1, constraints=dc.Constraints(must_link=[(1, 2)]))
    assert result.upper == pytest.approx(alone.upper, abs=1e-9)


def exact_optimum(x, ridge, chunklets):
    """1 - (sum_g |sum_i s_i x_i| / n)^2 / (x'x / n + ridge) for one centred column, as a fraction."""
    x, n, sums = centered(x), len(x), np.zeros(chunklets.n_chunklets, dtype=object)
    np.add.at(sums, chunklets.membership, x * chunklets.sign.astype(int))
    return 1 - (np.abs(sums).sum() / n) ** 2 / ((x**2).sum() / n + Fraction(ridge))


def test_the_rounding_of_sums_that_cancel_is_counted():
    """One column, points in groups that nearly cancel: both bounds are compared with the exact optimum."""
    for seed in range(40):
        rng = np.random.default_rng([2017, 26, seed])
        k, pairs = int(rng.integers(1, 20)), int(rng.integers(1, 6))
        x = rng.standard_normal((pairs, k)) * 10.0 ** rng.uniform(0, 6)
        close = x * (1.0 + 10.0 ** -rng.uniform(6, 16) * rng.standard_normal((pairs, k)))
        X = np.concatenate([x, close], axis=1).ravel()[:, None] + rng.choice([0.0, 1e3])
        numbers = np.repeat(np.arange(pairs), 2 * k)
        sign = np.tile(np.repeat([1, -1], k), pairs)
        same = [
            (i, j)
            for g in range(pairs)
            for s in (1, -1)
            for i, j in pairwise(np.flatnonzero((numbers == g) & (sign == s)))
        ]
        constraints = dc.Constraints(same, [(int(2 * k * g), int(2 * k * g + k)) for g in range(pairs)])
        ridge = float(rng.choice([0.0, 1e-12, 1.0])) * float(np.var(X))
        found = dc.low_rank(X, ridge=ridge, constraints=constraints, tol=1e-12, max_iter=50)
        exact = exact_optimum(X[:, 0], ridge, constraints.chunklets_of(len(X)))
        assert Fraction(found.lower) <= exact <= Fraction(found.upper)


def test_what_sums_of_points_may_be_off_is_in_what_the_data_are_off():
    """Points in groups of 40, every other one with the opposite sign."""
    X, points = np.random.default_rng(0).standard_normal((400, 2)), np.arange(400)
    X -= X.mean(axis=0)
    inside = [(i, i + 2) for i in points[:-2] if i // 40 == (i + 2) // 40]
    constraints = dc.Constraints(inside, [(i, i + 1) for i in range(0, 400, 40)])
    penalty = dc.Penalty(lam=0.1)
    linked, free = (direction_problem(linked_points(X, given), 1.0, penalty) for given in (constraints, None))
    exact, chunklets = fractions(linked.Y.array()), linked.sums.chunklets
    sums = np.zeros((chunklets.n_chunklets, 2), dtype=object)
    np.add.at(sums, chunklets.membership, exact * chunklets.sign[:, None].astype(int))
    off = (linked.X.array() - (sums * Fraction(chunklets.n_chunklets, 400)).astype(float)) / np.sqrt(
        linked.sums.counts
    )[:, None]
    size = float(np.sqrt(np.mean(np.sum((off @ linked.W) ** 2, axis=1))))
    added = linked.whitening_error.data_error - free.whitening_error.data_error
    assert 0.0 < size <= added <= 1e4 * size
    assert linked.sums.largest_weight(1.0 / linked.sums.counts) >= 1.0
    assert block_problem(linked).n_terms >= 400 + 40


def test_the_rounding_of_sums_of_a_projection_is_in_what_it_is_off():
    X = np.random.default_rng(0).standard_normal((40, 3))
    X = X - X.mean(axis=0)
    chunklets = Chunklets(np.repeat(np.arange(4), 10), np.ones(40), -1)
    alone, summed = projection_of(array_table(X)), projection_of(array_table(X, None, chunklets))
    assert 2.0 * sum_error(10) * np.sum(alone.Q**2) <= summed.error - alone.error <= 8.0 * sum_error(20) * 3.1


@pytest.mark.parametrize("nu", [0.0, 0.5])
@pytest.mark.parametrize("varied", [True, False])
def test_all_in_one_cluster_is_no_answer_where_points_differ(nu, varied):
    """Without constraints Y = 11' is optimal at nu = 0, or if all columns are constant; it is not feasible here."""
    X, constraints = (
        np.random.default_rng(0).standard_normal((40, 5)) * varied,
        dc.Constraints(cannot_link=[(0, 1), (2, 3)]),
    )
    best = dc.optimal_labels(X, nu, ridge=0.1, constraints=constraints, time_limit=3)
    for solver in (dc.low_rank, dc.fista):
        found = solver(X, nu, ridge=0.1, constraints=constraints)
        assert found.lower <= best.upper
        assert found.upper > 0.1
        assert found.F[0] @ found.F[1] == pytest.approx(-1.0)
