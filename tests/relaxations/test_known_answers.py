"""Instances whose answer is known in closed form, in every form of the problem and by every solver."""

from itertools import product

import numpy as np
import oracles
import pytest

import diffrac_cvx as dc

pytestmark = pytest.mark.filterwarnings("ignore::diffrac_cvx.DegenerateDataWarning")

NO_PENALTY = dc.Penalty()
TOL = 1e-4  # the proved gap asked of every solver; the known value must lie in the bracket, up to rounding
ROUNDING = 1e-9


def reference(build):
    return lambda X, nu, penalty: dc.solve(build(X, nu, penalty), "CLARABEL", tol=TOL)


SPARSE_FORMS = {
    "lifted": reference(dc.lifted),
    "v_space": reference(dc.v_space),
    "low_rank": lambda X, nu, penalty: dc.low_rank(X, nu, penalty, tol=TOL),
    "fista": lambda X, nu, penalty: dc.fista(X, nu, penalty, tol=TOL),
    "published": lambda X, nu, penalty: dc.fista(X, nu, penalty, tol=1e-2, variant="published"),
}
FORMS = {"penalized_nu": reference(dc.penalized_nu)} | SPARSE_FORMS

each_form = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
each_sparse_form = pytest.mark.parametrize("form", SPARSE_FORMS.values(), ids=SPARSE_FORMS)


def assert_brackets(result, expected, slack=ROUNDING):
    assert result.gap <= (1e-2 if "published" in result.solver else TOL)
    assert result.lower - slack <= expected <= result.upper + slack


def labels(n, positive, seed=0):
    return np.random.default_rng(seed).permutation(np.repeat([1.0, -1.0], [positive, n - positive]))


def with_noise_columns(columns, d, seed=1):
    """Centred columns beside noise, mixed by an invertible matrix: the relaxations without l1 part do not see it."""
    rng = np.random.default_rng(seed)
    columns = np.column_stack([columns, rng.standard_normal((len(columns), d - columns.shape[1]))])
    return (columns - columns.mean(axis=0)) @ rng.standard_normal((d, d))


def gaussian(n, d, seed=3):
    X = np.random.default_rng(seed).standard_normal((n, d))
    return X - X.mean(axis=0)


def is_same_split(y, y_hat):
    return abs(np.mean(y * y_hat)) == 1.0


# Noiseless data


@each_form
def test_balanced_labels_among_the_columns_are_found_with_value_0(form):
    y = labels(30, 15)
    result = form(with_noise_columns(y[:, None], 4), 1.0, NO_PENALTY)
    assert_brackets(result, 0.0)
    assert is_same_split(y, dc.rounding.sign_leading(result.F))


def test_balanced_labels_among_the_columns_are_found_with_value_0_when_balance_is_imposed():
    y = labels(30, 15)
    result = dc.solve(dc.constrained_alpha(with_noise_columns(y[:, None], 4), 0.0), "CLARABEL")
    assert_brackets(result, 0.0)
    assert is_same_split(y, dc.rounding.sign_leading(result.F))


def test_balanced_labels_and_their_direction_certify_themselves():
    y = labels(30, 15)
    X = with_noise_columns(y[:, None], 4)
    v = np.linalg.lstsq(X, y)[0]
    assert dc.certify_y(X, y[:, None]).upper <= ROUNDING
    assert dc.certify_y(X, np.outer(y, y), alpha=0.0).upper <= ROUNDING
    assert dc.certify_v(X, np.outer(v, v)).upper <= ROUNDING
    assert dc.certify_labels(X, y, 0.0).gap <= ROUNDING


@pytest.mark.parametrize("share", [0.0, 0.4, 0.9])
def test_unbalanced_labels_give_the_rank_two_solution_of_the_lemma(share):
    y = labels(40, 28)
    X = with_noise_columns(y[:, None], 3)
    smallest = y.mean() ** 2
    alpha = smallest + share * (1 - smallest)
    weight = (1 - alpha) / (1 - smallest)
    Y = weight * np.outer(y, y) + (1 - weight)
    assert oracles.y_objective(Y, X, nu=0.0) == pytest.approx(0.0, abs=ROUNDING)
    assert dc.certify_y(X, Y, alpha=alpha).upper <= ROUNDING
    result = dc.solve(dc.constrained_alpha(X, alpha), "CLARABEL")
    assert_brackets(result, 0.0)
    assert is_same_split(y, dc.rounding.sign_centered(result.F))


def test_less_imbalance_than_that_of_the_labels_costs_something():
    y = labels(40, 28)
    result = dc.solve(dc.constrained_alpha(with_noise_columns(y[:, None], 3), 0.5 * y.mean() ** 2), "CLARABEL")
    assert result.lower > 1e-3


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_mixtures_of_labels_and_one_cluster_are_optimal_at_nu_zero(share):
    y = labels(20, 13)
    Y = share * np.outer(y, y) + (1 - share)
    assert dc.certify_y(with_noise_columns(y[:, None], 3), Y, nu=0.0).upper <= ROUNDING


@each_form
def test_two_labels_among_the_columns_leave_all_their_mixtures_optimal(form):
    y1, y2 = np.repeat([1.0, -1.0], 12), np.tile(np.repeat([1.0, -1.0], 6), 2)
    X = with_noise_columns(np.column_stack([y1, y2]), 4)
    assert_brackets(form(X, 1.0, NO_PENALTY), 0.0)
    for share in (0.0, 0.2, 0.5, 1.0):
        assert dc.certify_y(X, share * np.outer(y1, y1) + (1 - share) * np.outer(y2, y2)).upper <= ROUNDING


@pytest.mark.parametrize("k", [2, 3, 4])
@each_form
def test_all_sign_patterns_as_rows_leave_every_diagonal_of_the_simplex_optimal(form, k):
    X = np.array(list(product([1.0, -1.0], repeat=k)))
    assert_brackets(form(X, 1.0, NO_PENALTY), 0.0)
    for p in np.random.default_rng(k).dirichlet(np.ones(k), size=3):
        assert oracles.v_objective(np.diag(p), X) == pytest.approx(0.0, abs=ROUNDING)
        assert dc.certify_v(X, np.diag(p)).upper <= ROUNDING


# The ends of the ranges


@each_form
def test_at_nu_zero_one_cluster_is_optimal_with_value_0(form):
    result = form(gaussian(12, 3), 0.0, NO_PENALTY)
    assert result.lower == result.upper == 0.0
    np.testing.assert_array_equal(result.F @ result.F.T, np.ones((12, 12)))


@pytest.mark.parametrize("penalty", [NO_PENALTY, dc.Penalty(a=0.1, c=0.2)], ids=["none", "both"])
@pytest.mark.parametrize("nu", [0.3, 1.0])
@each_sparse_form
def test_without_features_the_value_is_nu(form, nu, penalty):
    result = form(np.full((8, 2), 7.0), nu, penalty)
    assert_brackets(result, nu)
    assert np.isfinite(result.F).all()


@pytest.mark.parametrize("nu", [0.3, 1.0])
def test_without_features_the_value_in_labels_alone_is_nu(nu):
    assert_brackets(dc.solve(dc.penalized_nu(np.full((8, 2), 7.0), nu), "CLARABEL"), nu)


def test_a_single_cluster_is_the_answer_at_imbalance_1():
    result = dc.solve(dc.constrained_alpha(gaussian(12, 3), 1.0))
    assert result.lower == result.upper == 0.0
    np.testing.assert_array_equal(result.F @ result.F.T, np.ones((12, 12)))


@pytest.mark.parametrize("solver", ["CLARABEL", "SCS"])
def test_balance_is_imposed_exactly_though_the_problem_has_no_interior(solver):
    result = dc.solve(dc.constrained_alpha(gaussian(14, 3), 0.0), solver, tol=1e-6)
    assert result.status is dc.Status.OPTIMAL
    assert result.n_iter < 1000  # as posed in the paper, SCS takes tens of thousands
    np.testing.assert_allclose(result.F.sum(axis=0), 0.0, atol=1e-6)


# Closed forms


@pytest.mark.parametrize(
    ("form", "a", "c"),
    [(form, a, 0.0) for form in FORMS for a in (0.0, 0.7)]
    + [(form, a, 0.5) for form in SPARSE_FORMS for a in (0, 0.3)],
)
def test_one_feature_is_split_at_its_mean(form, a, c):
    x = gaussian(15, 1)
    expected = 1 - np.mean(np.abs(x)) ** 2 / (np.mean(x**2) + a**2 + c**2)
    result = FORMS[form](x, 1.0, dc.Penalty(a, c))
    assert_brackets(result, expected)
    assert is_same_split(np.sign(x[:, 0]), dc.rounding.sign_leading(result.F))


@pytest.mark.parametrize("lam", [0.01, 0.3, 2.0])
@each_sparse_form
def test_one_sparse_labels_cost_lambda_over_one_plus_lambda(form, lam):
    y = labels(40, 20)
    X = np.column_stack([y, gaussian(40, 4)])
    X /= np.sqrt(np.mean(X**2, axis=0))
    V = np.zeros((5, 5))
    V[0, 0] = 1 / (1 + lam) ** 2
    penalty, expected = dc.Penalty.l1(lam), lam / (1 + lam)
    assert oracles.v_objective(V, X, 0.0, penalty.c) == pytest.approx(expected, abs=ROUNDING)
    assert dc.certify_v(X, V, penalty=penalty) == pytest.approx((expected, expected), abs=ROUNDING)
    result = form(X, 1.0, penalty)
    assert_brackets(result, expected)
    assert is_same_split(y, dc.rounding.sign_leading(result.F))


@each_form
def test_a_zero_row_changes_the_value_v_to_n_v_plus_1_over_n_plus_1(form):
    X = gaussian(10, 3)
    v, _ = oracles.solve_v(X)
    assert_brackets(form(np.vstack([X, np.zeros(3)]), 1.0, NO_PENALTY), (10 * v + 1) / 11, slack=oracles.TOL)


# Bounds and invariances


@pytest.mark.parametrize("penalty", [NO_PENALTY, dc.Penalty(a=0.2), dc.Penalty(a=0.1, c=[0.1, 0.3, 0.0])])
@pytest.mark.parametrize("nu", [0.4, 1.0])
@pytest.mark.parametrize("n", [6, 9, 12])
def test_the_best_labelling_bounds_every_relaxation_from_above(n, nu, penalty):
    X = gaussian(n, 3)
    best, _ = oracles.best_labelling(X, nu, penalty.a, penalty.c)
    for name, form in FORMS.items():
        if name != "penalized_nu" or not penalty.is_coupled:
            assert form(X, nu, penalty).lower <= best + ROUNDING
    assert oracles.solve_v(X, nu, penalty.a, penalty.c)[0] <= best + oracles.TOL


@pytest.mark.parametrize("nu", [0.4, 1.0])
@each_sparse_form
def test_the_value_does_not_depend_on_the_order_of_rows_or_on_doubling_them(form, nu):
    X, penalty = gaussian(12, 3), dc.Penalty(a=0.1, c=0.2)
    expected, _ = oracles.solve_v(X, nu, penalty.a, penalty.c)
    order = np.random.default_rng(0).permutation(12)
    for same in (X[order], np.vstack([X, X])):
        assert_brackets(form(same, nu, penalty), expected, slack=oracles.TOL)


@pytest.mark.parametrize("nu", [0.4, 1.0])
@each_sparse_form
def test_the_value_does_not_depend_on_the_order_or_signs_of_columns_of_equal_weight(form, nu):
    X, penalty = gaussian(12, 3), dc.Penalty(c=0.3)
    expected, _ = oracles.solve_v(X, nu, 0.0, 0.3)
    assert_brackets(form(X[:, [2, 0, 1]] * [1.0, -1.0, -1.0], nu, penalty), expected, slack=oracles.TOL)


@pytest.mark.parametrize("spread", [1.0, 1e4])
@pytest.mark.parametrize("nu", [0.4, 1.0])
@each_form
def test_without_penalty_only_the_span_of_the_columns_matters(form, nu, spread):
    X = gaussian(12, 3)
    expected, _ = oracles.solve_v(X, nu)
    T = np.random.default_rng(1).standard_normal((3, 3)) @ np.diag([1.0, spread, 1 / spread])
    assert_brackets(form(X @ T + 5.0, nu, NO_PENALTY), expected, slack=oracles.TOL)  # nor does the origin matter
