import numpy as np
import pytest
from instances import normal
from posed import direction_problem

from diffrac_cvx.certificates.direction_bounds import DualPoint, certify
from diffrac_cvx.certificates.search import improved_multipliers
from diffrac_cvx.points.checks import as_data
from diffrac_cvx.points.linear_algebra import weighted_gram
from diffrac_cvx.problem.penalty import Penalty
from diffrac_cvx.problem.result import Bracket, Status
from diffrac_cvx.solvers.factored import augmented_lagrangian, low_rank
from diffrac_cvx.solvers.factored.augmented_lagrangian import (
    GROWTH_ROUNDS,
    Lagrangian,
    StallDetector,
    one_block,
    rank_reducing_rotation,
    refine_point,
)
from diffrac_cvx.solvers.factored.parametrization import FactorParametrization, choose_parametrization
from diffrac_cvx.solvers.factored.quasi_newton import Memory
from diffrac_cvx.solvers.stopping import Iterate

PENALTIES = {"none": Penalty(), "ridge": Penalty(a=0.3), "l1": Penalty(c=0.2), "both": Penalty(0.1, 0.3)}


@pytest.mark.parametrize("nu", [0.25, 1.0])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("rank", [1, 3])
def test_the_gradient_is_that_of_finite_differences(penalty, nu, rank):
    problem = direction_problem(as_data(normal()), nu, PENALTIES[penalty])
    rng = np.random.default_rng(1)
    size = problem.X.shape[1]
    C0 = rng.uniform(-1.5, 1.5, (size, size)) * problem.pair_penalty.half_width
    lagrangian = one_block(FactorParametrization(problem), (C0 + C0.T) / 2)
    # Entries of C0 + sigma UU' inside the dual box and at both bounds.
    U, direction = 0.1 * rng.standard_normal((2, size, rank))
    slope = np.sum(lagrangian.point(U).gradient * direction)
    h = 1e-6
    values = [lagrangian.point(U + sign * h * direction).value for sign in (1, -1)]
    assert slope == pytest.approx((values[0] - values[1]) / (2 * h), rel=1e-6, abs=1e-8)


def test_the_lagrangian_is_the_maximum_over_the_multiplier():
    problem = direction_problem(as_data(normal()), 0.5, PENALTIES["both"])
    lagrangian = one_block(FactorParametrization(problem))
    U = 0.1 * normal(5, 2)
    V, (best,) = U @ U.T, lagrangian.multiplier(U)
    assert np.any(np.abs(best) == problem.pair_penalty.half_width)
    assert np.any(np.abs(best) < problem.pair_penalty.half_width)

    def inner(C):
        weights = np.where(
            problem.pair_penalty.half_width > 0,
            lagrangian.multipliers[0].stiffness * problem.pair_penalty.half_width,
            1.0,
        )
        smooth = 1 - 2 * problem.mean_sqrt(U) + np.sum((problem.A + np.diag(problem.c**2)) * V)
        return smooth + np.sum(C * V) - np.sum(C**2 / weights) / 2

    assert lagrangian.point(U).value == pytest.approx(inner(best), rel=1e-12)
    for other in np.random.default_rng(2).uniform(-1, 1, (50, 5, 5)) * problem.pair_penalty.half_width:
        assert inner(other) < inner(best)


def test_a_row_of_score_zero_makes_no_nan():
    X = np.vstack([normal(), np.zeros((5, 4))])  # centred or not
    problem = direction_problem(X, 1.0, PENALTIES["l1"])
    for U in (normal(4, 2), np.eye(4)[:, :1], np.zeros((4, 1))):
        at = one_block(FactorParametrization(problem)).point(U)
        assert np.isfinite(at.value)
        assert np.all(np.isfinite(at.gradient))


@pytest.mark.parametrize("penalty", ["none", "l1"])
def test_a_rank_that_is_too_small_grows_until_the_gap_is_closed(penalty):
    """The optimum has rank 3; from rank one, eigenvectors of the certificate must supply the other directions."""
    problem = direction_problem(as_data(normal()), 1.0, PENALTIES[penalty])
    start = normal(4, 1, seed=3)
    points = list(filter(None, augmented_lagrangian.one_block_iterates(problem, 3000, start)))
    ranks = [point.U.shape[1] for point in points]
    assert ranks[0] == 1
    assert max(ranks) > 2
    assert min(certify(problem, point.point, point.dual).gap for point in points) < 1e-5


def correlated(n, d, rho, seed=1):
    """Columns with correlation rho between neighbours, and clusters along a dense direction."""
    rng = np.random.default_rng(seed)
    X, noise = rng.standard_normal((2, n, d))
    for j in range(1, d):
        X[:, j] = rho * X[:, j - 1] + (1 - rho**2) ** 0.5 * noise[:, j]
    return X + np.outer(np.sign(rng.standard_normal(n)), rng.standard_normal(d)) / d**0.5


@pytest.mark.parametrize(
    ("n", "d", "rho", "nu", "lam", "limit"),
    [
        (400, 40, 0.0, 1.0, 0.001, 120),
        (150, 50, 0.9, 1.0, 0.1, 400),
        (47, 50, 0.5, 1.0, 0.005, 900),
        (90, 40, 0.5, 0.5, 0.02, 1000),
        (2000, 30, 0.5, 1.0, 0.0, 60),
        (500, 40, 0.5, 0.5, 0.0, 300),
    ],
)
def test_the_gap_closes_in_few_function_values(n, d, rho, nu, lam, limit, monkeypatch):
    """Without the metric, the persistent memory and the refined bounds it took 3 to 20 times as many steps."""
    problem = direction_problem(as_data(correlated(n, d, rho)), nu, Penalty.l1(lam))
    values, lower, upper, evaluate = [], 0.0, 1.0, Lagrangian.point
    monkeypatch.setattr(Lagrangian, "point", lambda *given: values.append(1) or evaluate(*given))
    for iterate in filter(None, augmented_lagrangian.one_block_iterates(problem, 5000)):
        bounds = iterate.bounds or certify(problem, iterate.point, iterate.dual)
        lower, upper = max(lower, bounds.lower), min(upper, bounds.upper)
        if upper - lower <= 1e-5:
            break
    assert len(values) <= limit
    assert upper - lower <= 1e-5


def test_the_rank_grows_only_after_certificates_without_progress(monkeypatch):
    problem = direction_problem(as_data(correlated(60, 20, 0.5)), 1.0, Penalty.l1(0.01))
    gaps, grown, grow = [], [], augmented_lagrangian.append_violated_direction

    def noted(*given):
        grown.append(len(gaps))
        return grow(*given)

    monkeypatch.setattr(augmented_lagrangian, "append_violated_direction", noted)
    for point in filter(None, augmented_lagrangian.one_block_iterates(problem, 700, normal(20, 3))):
        gaps.append(point.bounds.gap)
    assert grown
    for end in grown:
        start = end - GROWTH_ROUNDS
        assert min(gaps[start:end]) >= 0.99 * min(gaps[:start], default=np.inf)


def test_columns_are_dropped_only_where_they_are_negligible():
    U = normal(6, 4)
    assert rank_reducing_rotation(U) is None
    wide = np.column_stack([U, U @ normal(4, 3, seed=1), 1e-9 * normal(6, 1, seed=2)])
    fewer = wide @ rank_reducing_rotation(wide)
    assert fewer.shape == (6, 4)
    np.testing.assert_allclose(fewer @ fewer.T, wide @ wide.T, atol=1e-9)


@pytest.mark.parametrize("nu", [0.5, 1.0])
@pytest.mark.parametrize("penalty", ["l1", "both"])
def test_polishing_narrows_the_bracket_and_stays_inside_the_box(penalty, nu):
    problem = direction_problem(as_data(correlated(60, 12, 0.5)), nu, PENALTIES[penalty])
    exact = [it.bounds for it in filter(None, augmented_lagrangian.one_block_iterates(problem, 2000))]
    lower, upper = max(b.lower for b in exact), min(b.upper for b in exact)
    assert upper - lower <= 1e-6
    lagrangian = one_block(FactorParametrization(problem))
    at, _ = lagrangian.minimize(lagrangian.point(np.eye(len(problem.c)) / len(problem.c)), 15, Memory())
    point, (C,) = problem.rescale(at.U), lagrangian.multiplier(at.U)
    refined, bounds = refine_point(problem, point, C)
    plain = certify(problem, point, DualPoint(C=C))
    assert bounds.lower <= upper + 1e-12
    assert bounds.upper >= lower - 1e-12
    assert bounds.upper <= plain.upper
    assert refined.value == bounds.upper == pytest.approx(problem.rescale(refined.U).value, abs=1e-12)
    M = weighted_gram(problem.X.array(), 1 / np.sqrt(point.q))
    _, moved = improved_multipliers(problem, M, point.U, C)
    assert np.all(np.abs(moved) <= problem.pair_penalty.half_width)


def test_the_deadline_is_checked_at_each_function_value_and_may_make_it_leave(monkeypatch):
    problem = direction_problem(as_data(normal()), 1.0, PENALTIES["l1"])
    calls = []

    def poll():
        calls.append(1)
        if len(calls) == 7:
            raise KeyboardInterrupt

    monkeypatch.setattr(augmented_lagrangian.deadlines, "check_deadline", poll)
    with pytest.raises(KeyboardInterrupt):
        list(augmented_lagrangian.one_block_iterates(problem, 1000))
    assert len(calls) == 7


# Data of unequal size


def outlying(n=40, d=6, rows=2, seed=0):
    """Normal rows, and a few that are a million times as large."""
    X = normal(n, d, seed)
    X[:rows] *= 1e6
    return X


def test_with_units_the_lagrangian_is_the_same_function_and_its_metric_that_of_its_curvature():
    problem = direction_problem(as_data(normal()), 0.5, PENALTIES["both"])
    rng, size = np.random.default_rng(3), len(problem.c)
    C0 = rng.uniform(-1.0, 1.0, (size, size)) * problem.pair_penalty.half_width
    C0, units = (C0 + C0.T) / 2, rng.uniform(1.0, 40.0, size)
    unknowns, plain = FactorParametrization(problem, units), FactorParametrization(problem)
    products = [C0 @ (U := 0.1 * normal(size, 3))]
    value, gradient = unknowns.value_and_gradient(U, products)
    expected = plain.value_and_gradient(U, products)
    assert value == pytest.approx(expected[0], rel=1e-12)
    np.testing.assert_allclose(gradient, expected[1], atol=1e-12)
    S, Z = plain.B + np.diag(units**-2), normal(size, 3, seed=5)
    G = U.T @ S @ U
    expected = np.linalg.solve(S, Z) @ np.linalg.inv(G / np.linalg.eigvalsh(G)[-1] + 1e-2 * np.eye(3))
    np.testing.assert_allclose(unknowns.metric(U)(Z), expected, rtol=1e-4)


def test_units_are_chosen_for_outlying_rows_and_for_no_usual_data():
    for X in (normal(), correlated(60, 12, 0.9), normal(5, 12)):
        assert choose_parametrization(direction_problem(as_data(X), 1.0, PENALTIES["l1"])).root is None
    X = as_data(outlying())
    assert choose_parametrization(direction_problem(X, 1.0, Penalty.l1(0.01))).units.max() > 30.0
    assert choose_parametrization(direction_problem(X, 1.0, Penalty())).root is None


@pytest.mark.parametrize(("n", "d", "rows"), [(12, 5, 1), (60, 20, 3), (40, 6, 2)])
def test_outlying_rows_do_not_keep_the_gap_open_and_the_end_is_where_the_bracket_no_longer_narrows(n, d, rows):
    """Without preconditioning, the gap stayed above 0.3."""
    assert low_rank(outlying(n, d, rows), penalty=Penalty.l1(0.01), tol=1e-5, max_iter=3000).status is Status.OPTIMAL
    if n == 12:
        end = low_rank(outlying(n, d, rows), penalty=Penalty.l1(0.01), tol=1e-13, max_iter=10**6, time_limit=30.0)
        assert end.status is Status.STALLED
        assert end.gap < 1e-5


def test_the_end_is_noticed_after_long_without_a_narrower_bracket_or_a_step():
    def after(taken, gaps):
        narrowing = StallDetector()
        iterates = (Iterate(np.zeros((1, 1)), 0, bounds=Bracket(0.5, 0.5 + gap)) for gap in gaps)
        return next((k for k, iterate in enumerate(iterates, 1) if narrowing.is_stalled(iterate, taken)), None)

    assert after(10, np.geomspace(0.1, 1e-9, 500)) is None
    end = 60
    assert after(10, [0.1] * 200) == end + 1
    assert after(10, [0.1] * 40 + [0.01] * 200) == 40 + end + 1
    assert after(0, np.geomspace(0.1, 1e-9, 500)) == 3 * GROWTH_ROUNDS
