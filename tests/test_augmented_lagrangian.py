import numpy as np
import pytest

from diffrac_cvx.certificates.direction_bounds import bracket
from diffrac_cvx.certificates.direction_problem import direction_problem
from diffrac_cvx.inputs import as_data
from diffrac_cvx.penalty import Penalty
from diffrac_cvx.solvers.factored import augmented_lagrangian
from diffrac_cvx.solvers.factored.augmented_lagrangian import Lagrangian

PENALTIES = {"none": Penalty(), "ridge": Penalty(a=0.3), "l1": Penalty(c=0.2), "both": Penalty(0.1, 0.3)}


def gaussian(n=20, d=4, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


@pytest.mark.parametrize("nu", [0.25, 1.0])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("rank", [1, 3])
def test_the_gradient_is_that_of_finite_differences(penalty, nu, rank):
    problem = direction_problem(as_data(gaussian()), nu, PENALTIES[penalty])
    rng = np.random.default_rng(1)
    size = problem.X.shape[1]
    C0 = rng.uniform(-1.5, 1.5, (size, size)) * problem.box
    lagrangian = Lagrangian(problem, (C0 + C0.T) / 2)
    # Entries of C0 + sigma UU' inside the box and at both its ends.
    U, direction = 0.1 * rng.standard_normal((2, size, rank))
    slope = np.sum(lagrangian.value_and_gradient(U)[1] * direction)
    h = 1e-6
    values = [lagrangian.value_and_gradient(U + sign * h * direction)[0] for sign in (1, -1)]
    assert slope == pytest.approx((values[0] - values[1]) / (2 * h), rel=1e-6, abs=1e-8)


def test_the_lagrangian_is_the_maximum_over_the_multiplier():
    problem = direction_problem(as_data(gaussian()), 0.5, PENALTIES["both"])
    lagrangian = Lagrangian(problem)
    U = 0.1 * gaussian(5, 2)
    V, best = U @ U.T, lagrangian.multiplier(U)
    assert np.any(np.abs(best) == problem.box)
    assert np.any(np.abs(best) < problem.box)

    def inner(C):
        weights = np.where(problem.box > 0, lagrangian.sigma, 1.0)
        smooth = 1 - 2 * problem.gain(U) + np.sum((problem.A + np.diag(problem.c**2)) * V)
        return smooth + np.sum(C * V) - np.sum(C**2 / weights) / 2

    assert lagrangian.value_and_gradient(U)[0] == pytest.approx(inner(best), rel=1e-12)
    for other in np.random.default_rng(2).uniform(-1, 1, (50, 5, 5)) * problem.box:
        assert inner(other) < inner(best)


def test_a_row_of_score_zero_makes_no_nan():
    X = np.vstack([gaussian(), np.zeros((5, 4))])  # centred or not
    problem = direction_problem(X, 1.0, PENALTIES["l1"])
    for U in (gaussian(4, 2), np.eye(4)[:, :1], np.zeros((4, 1))):
        value, gradient = Lagrangian(problem).value_and_gradient(U)
        assert np.isfinite(value)
        assert np.all(np.isfinite(gradient))


@pytest.mark.parametrize("penalty", ["none", "l1"])
def test_a_rank_that_is_too_small_grows_until_the_gap_is_closed(penalty):
    """The optimum has rank 3 here; from rank one the leading eigenvectors of the certificate must supply the rest."""
    problem = direction_problem(as_data(gaussian()), 1.0, PENALTIES[penalty])
    start = gaussian(4, 1, seed=3)
    points = list(augmented_lagrangian.iterates(problem, 3000, start))
    ranks = [point.U.shape[1] for point in points]
    assert ranks[0] == 1
    assert max(ranks) > 2
    assert min(bracket(problem, point.scaled, point.dual).gap for point in points) < 1e-5
