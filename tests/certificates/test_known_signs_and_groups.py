"""Labels and bounds with groups of columns and known signs, against all labellings and against exact numbers."""

import numpy as np
import pytest
from instances import draw_instance
from oracles import best_pair_penalty_fit, labelings, solve_pair_penalty
from posed import direction_problem

import diffrac_cvx as dc
from diffrac_cvx.certificates.bound_search import least_multipliers
from diffrac_cvx.certificates.consistency import RoundingBound
from diffrac_cvx.certificates.direction_bounds import bracket_normalized
from diffrac_cvx.certificates.proof import bound_at
from diffrac_cvx.certificates.values import certified_labels_value, certified_value
from diffrac_cvx.points.checks import as_data
from diffrac_cvx.points.table import array_table
from diffrac_cvx.problem.penalty import weights_of
from experiments.stress.exact import direction_value, is_allowed, labels_value

pytestmark = pytest.mark.filterwarnings("ignore::diffrac_cvx.DegenerateDataWarning")
JUDGED = 1e-6  # accuracy of the judge


def as_exact(instance):
    """What the judges in sixty digits take: roots of the weights, column by column, and the group of each column."""
    d = instance.X.shape[1]
    labels, c = np.zeros(d, dtype=int), np.zeros(d)
    for g, (group, weight) in enumerate(zip(instance.groups, instance.weights, strict=True)):
        labels[group], c[group] = g, weight**0.5
    return np.sqrt(instance.ridge), c, labels, np.isin(np.arange(d), instance.known)


@pytest.mark.parametrize("seed", range(6))
def test_the_best_labels_are_those_of_all_labelings(seed):
    """Of at most four points, each with the best direction; where signs are known, of both signs."""
    drawn = draw_instance(10_000 + seed)
    w = None if drawn.w is None else drawn.w[:4]
    instance = drawn._replace(X=drawn.X[:4], w=w, membership=None, sign=None)
    (X, nu, ridge, groups, weights), penalty, known = instance.posed, instance.penalty, instance.known
    every = [sign * y for y in labelings(len(X)) for sign in ((1.0, -1.0) if len(known) else (1.0,))]
    p = instance.given["point_weights"]
    best = min(best_pair_penalty_fit(X, y, nu, ridge, groups, weights, known, p)[0] for y in every)
    found = dc.optimal_labels(X, nu, penalty, tol=1e-4, time_limit=10.0, sample_weight=w)
    assert found.lower <= best + JUDGED
    assert best - JUDGED <= found.upper <= best + 1e-4 + JUDGED
    result = dc.low_rank(X, nu, penalty, tol=1e-4, time_limit=3.0, sample_weight=w)
    assert result.n_excluded > 0 or result.lower <= best + JUDGED
    certificate = dc.certify_labels(X, found.labels, result.lower, nu=nu, penalty=penalty, sample_weight=w)
    assert abs(certificate.objective - found.upper) <= 1e-9
    points = array_table(X - (X.mean(axis=0) if w is None else p @ X), p)
    assert RoundingBound(points, nu, penalty).upper_bound(None, result.G) >= best - JUDGED


@pytest.mark.parametrize("seed", range(40))
def test_proved_values_are_not_below_those_in_sixty_digits(seed):
    instance = draw_instance(20_000 + seed)._replace(membership=None, sign=None)
    X, nu, w, penalty, rng = instance.X, instance.nu, instance.w, instance.penalty, np.random.default_rng(seed)
    a, c, labels, known = as_exact(instance)
    point_weights = None if w is None else w / w.sum()
    centered = array_table(X - (X.mean(axis=0) if w is None else point_weights @ X), point_weights)
    size = 1.0 / np.maximum(np.sqrt(np.var(X, axis=0) + instance.ridge + c**2), 1e-3)
    G = rng.standard_normal((X.shape[1], int(rng.integers(1, 5)))) * size[:, None]
    G = np.vstack([G, rng.standard_normal((1, G.shape[1]))]) if nu < 1.0 else G
    G[: len(c)][known] = np.abs(G[: len(c)][known])
    assert is_allowed(G, known)
    judged = direction_value(X, nu, a, c, G, w, labels)
    proved = certified_value(centered, nu, penalty, G)
    assert judged <= proved <= float(judged) + 1e-9 * (1.0 + abs(float(judged)))
    y, v = rng.choice([-1.0, 1.0], len(X)), np.where(known, np.abs(G[: len(c), 0]), G[: len(c), 0])
    weights = weights_of(penalty, len(c))
    judged = labels_value(X, nu, a, c, y, v, w, labels)
    assert judged <= certified_labels_value(centered, y, v, nu, weights) <= float(judged) * (1.0 + 1e-9) + 1e-9
    if known.any():
        assert certified_labels_value(centered, y, np.where(known, -v - 1e-300, v), nu, weights) == np.inf


def test_a_value_of_a_forbidden_matrix_is_infinite():
    X = np.random.default_rng(0).standard_normal((6, 3))
    X -= X.mean(axis=0)
    G = np.array([[1.0], [-1e-12], [1.0]])
    for lam in (0.1, 0.0):
        assert certified_value(array_table(X), 1.0, dc.Penalty(lam=lam, nonnegative=[0, 1]), G) == np.inf
    assert certified_value(array_table(X), 1.0, dc.Penalty(lam=0.1, nonnegative=[0, 2]), G) < np.inf


@pytest.mark.parametrize("size", [3.0, 10.0, 1e3])
def test_known_signs_of_collinear_columns_without_a_penalty_prove_no_more_than_the_optimum(size):
    x = np.random.default_rng(0).standard_normal(8)
    X = np.column_stack([x, -x])
    problem = direction_problem(as_data(X), 1.0, dc.Penalty(nonnegative=True))
    optimum = solve_pair_penalty(X, known=[0, 1]).optimum  # 0.3131, as of x alone
    C = np.array([[0.0, -size], [-size, 0.0]])
    u = np.full(8, np.sqrt(np.mean(x**2)))
    t = least_multipliers(problem, u, problem.X.weighted_gram(u), C).t
    assert bound_at(t, float(np.mean(x**2) ** -0.5)) <= optimum + JUDGED


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("steps", [5, 20, 50])
def test_the_upper_bound_of_the_normalized_problem_is_that_of_a_matrix_whose_known_signs_hold(steps):
    rng, y = np.random.default_rng(0), np.where(np.arange(12) % 2, 1.0, -1.0)
    shared = 3.0 * rng.standard_normal(12)  # the best direction is (1, -1), were it allowed
    X = np.column_stack([y + shared, -y + shared]) + 0.1 * rng.standard_normal((12, 2))
    relaxation = dc.v_space_normalized(X, 1.0, dc.Penalty(lam=0.001, ridge=0.001, nonnegative=True))
    lower = dc.solve(relaxation).lower
    assert dc.solve(relaxation, solver="SCS", max_iters=steps).upper >= lower


def test_a_factor_whose_known_signs_fail_gives_no_upper_bound_of_the_normalized_problem():
    X = np.random.default_rng(0).standard_normal((12, 2))
    problem = direction_problem(as_data(X), 1.0, dc.Penalty(lam=0.1, nonnegative=True))
    assert bracket_normalized(problem, np.array([[1.0], [-1.0]])).upper == np.inf
    assert bracket_normalized(problem, np.array([[1.0], [1.0]])).upper < 1.0
