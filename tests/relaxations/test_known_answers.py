"""Instances with closed-form solutions; `problem/test_metamorphic.py` has those that every method solves."""

import numpy as np
import oracles
import pytest
from instances import centered_normal

import diffrac_cvx as dc

pytestmark = pytest.mark.filterwarnings("ignore::diffrac_cvx.DegenerateDataWarning")

NO_PENALTY = dc.Penalty()
TOL = 1e-4  # certified gap of every solver; the known value must lie within the bounds, up to rounding
ROUNDING = 1e-9


def reference(build):
    return lambda X, nu, penalty: dc.solve(build(X, nu, penalty), "CLARABEL", tol=TOL)


FORMS = {
    "penalized_nu": reference(dc.penalized_nu),
    "lifted": reference(dc.lifted),
    "v_space": reference(dc.v_space),
    "low_rank": lambda X, nu, penalty: dc.low_rank(X, nu, penalty, tol=TOL),
    "fista": lambda X, nu, penalty: dc.fista(X, nu, penalty, tol=TOL),
    "published": lambda X, nu, penalty: dc.fista(X, nu, penalty, tol=1e-2, variant="published"),
}
IMBALANCE_FIXED = {"constrained_alpha": lambda X, nu, _: dc.solve(dc.constrained_alpha(X, 1.0 - nu))}


def labels(n, positive):
    return np.random.default_rng(0).permutation(np.repeat([1.0, -1.0], [positive, n - positive]))


def with_noise_columns(columns, d):
    """Centred columns and noise, mixed by an invertible matrix: relaxations without an l1 term are invariant."""
    rng = np.random.default_rng(1)
    columns = np.column_stack([columns, rng.standard_normal((len(columns), d - columns.shape[1]))])
    return (columns - columns.mean(axis=0)) @ rng.standard_normal((d, d))


@pytest.mark.parametrize(
    "fraction", [0.4, *(pytest.param(fraction, marks=pytest.mark.slow) for fraction in (0.0, 0.9))]
)
def test_unbalanced_labels_give_the_rank_two_solution_of_the_lemma(fraction):
    y = labels(40, 28)
    X = with_noise_columns(y[:, None], 3)
    smallest = y.mean() ** 2
    alpha = smallest + fraction * (1 - smallest)
    weight = (1 - alpha) / (1 - smallest)
    Y = weight * np.outer(y, y) + (1 - weight)
    assert oracles.y_objective(Y, X, nu=0.0) == pytest.approx(0.0, abs=ROUNDING)
    assert dc.certify_y(X, Y, alpha=alpha).upper <= ROUNDING
    result = dc.solve(dc.constrained_alpha(X, alpha), "CLARABEL")
    assert result.gap <= TOL
    assert result.lower - ROUNDING <= 0.0 <= result.upper + ROUNDING
    assert abs(np.mean(y * dc.rounding.sign_centered(result.F))) == 1.0
    assert dc.solve(dc.constrained_alpha(X, 0.5 * smallest), "CLARABEL").lower > 1e-3  # less than that of the labels


@pytest.mark.parametrize("fraction", [0.0, 0.3, 1.0])
def test_mixtures_of_labels_and_one_cluster_are_optimal_at_nu_zero(fraction):
    y = labels(20, 13)
    Y = fraction * np.outer(y, y) + (1 - fraction)
    assert dc.certify_y(with_noise_columns(y[:, None], 3), Y, nu=0.0).upper <= ROUNDING


@pytest.mark.parametrize("form", [*FORMS, *IMBALANCE_FIXED])
def test_at_nu_zero_one_cluster_is_optimal_with_value_0(form):
    """The same at imbalance 1."""
    result = (FORMS | IMBALANCE_FIXED)[form](centered_normal(12, 3, 3), 0.0, NO_PENALTY)
    assert result.lower == result.upper == 0.0
    np.testing.assert_array_equal(result.F @ result.F.T, np.ones((12, 12)))


@pytest.mark.parametrize("solver", ["CLARABEL", "SCS"])
def test_balance_is_imposed_exactly_though_the_problem_has_no_interior(solver):
    result = dc.solve(dc.constrained_alpha(centered_normal(14, 3, 3), 0.0), solver, tol=1e-6)
    assert result.status is dc.Status.OPTIMAL
    assert result.n_iter < 1000  # as posed in the paper, SCS takes tens of thousands
    np.testing.assert_allclose(result.F.sum(axis=0), 0.0, atol=1e-6)
