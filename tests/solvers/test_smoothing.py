import numpy as np
import pytest
from instances import normal
from posed import direction_problem

from diffrac_cvx.points.checks import as_data
from diffrac_cvx.problem.penalty import Penalty
from diffrac_cvx.solvers.fista_dual import SmoothedDual, published_dual, softmax_root, softmax_value

PENALTIES = {"none": Penalty(), "l1": Penalty(c=0.2), "both": Penalty(a=0.1, c=[0.1, 0.3, 0.2, 0.0])}

each_penalty = pytest.mark.parametrize("penalty", PENALTIES.values(), ids=PENALTIES)
each_dual = pytest.mark.parametrize("accelerated", [True, False], ids=["accelerated", "published"])


def dual_of(penalty, nu=0.5, accelerated=True):
    problem = direction_problem(as_data(normal()), nu, penalty)
    return SmoothedDual(problem.X, problem.W, problem.pair_penalty) if accelerated else published_dual(problem)


def dual_point(dual, seed=1):
    """Return u > 0 and a symmetric C."""
    rng = np.random.default_rng(seed)
    C = rng.standard_normal(dual.pair_penalty.half_width.shape)
    return rng.uniform(0.2, 3.0, len(dual.X)), (C + C.T) / 2


def smooth_value(dual, u, C, eps):
    return softmax_value(dual.matrix(u, C), eps)


@each_penalty
@each_dual
@pytest.mark.parametrize("eps", [1.0, 0.05])
def test_the_gradients_are_those_of_finite_differences(penalty, accelerated, eps):
    dual = dual_of(penalty, accelerated=accelerated)
    u, C = dual_point(dual)
    _, grad_u, grad_C = dual.gradients(softmax_root(dual.matrix(u, C), eps)[1])
    du, dC = dual_point(dual, seed=2)
    h = 1e-5  # the error of a central difference is then about 1e-10 / eps^2 + 1e-11
    slope_u = (smooth_value(dual, u + h * du, C, eps) - smooth_value(dual, u - h * du, C, eps)) / (2 * h)
    slope_C = (smooth_value(dual, u, C + h * dC, eps) - smooth_value(dual, u, C - h * dC, eps)) / (2 * h)
    assert grad_u @ du == pytest.approx(slope_u, rel=1e-6)
    assert np.sum(grad_C * dC) == pytest.approx(slope_C, rel=1e-6)


@each_penalty
def test_the_smoothing_error_is_within_eps_log_d(penalty):
    dual = dual_of(penalty)
    D = dual.matrix(*dual_point(dual))
    top = np.linalg.eigvalsh(D)[-1]
    for eps in (1.0, 1e-2, 1e-6):
        assert top <= softmax_value(D, eps) <= top + eps * np.log(len(D)) + 1e-14


@each_penalty
@each_dual
def test_the_curvature_bounds_hold_in_every_direction_and_are_sharp(penalty, accelerated):
    """The smooth part is 1/eps-smooth in D, which is linear in (u, C): the bound is on the square of that map."""
    dual = dual_of(penalty, accelerated=accelerated)
    n = len(dual.X)
    zero_u, zero_C = np.zeros(n), np.zeros_like(dual.pair_penalty.half_width)
    units = np.random.default_rng(4).uniform(0.1, 10.0, n)
    squares = (dual.Z.array() @ dual.Z.array().T / (2 * n)) ** 2
    for scale in (np.ones(n), units):
        top = np.linalg.eigvalsh(squares * np.outer(scale, scale))[-1]
        assert top * (1 - 1e-12) <= dual.curvature_u(30, scale) <= 1.01 * top
    assert dual.curvature_u() <= 1.05 * np.linalg.eigvalsh(squares)[-1]
    for seed in range(50):
        du, dC = np.random.default_rng(seed).standard_normal(n), dual_point(dual, seed)[1]
        assert np.sum(dual.matrix(du, zero_C) ** 2) <= dual.curvature_u() * np.sum(du**2)
        assert np.sum(dual.matrix(units * du, zero_C) ** 2) <= dual.curvature_u(5, units) * np.sum(du**2)
        assert np.sum(dual.matrix(zero_u, dC) ** 2) <= dual.curvature_C() * np.sum(dC**2)
    W = np.linalg.svd(dual.W)[0][:, 0]
    assert np.sum(dual.matrix(zero_u, np.outer(W, W)) ** 2) == pytest.approx(dual.curvature_C())
