"""The law of wide tables: its theorems on random instances, its formulas, and every answer of its rules."""

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from oracles import best_pair_penalty_fit
from rules import AGREES, NOT_TESTED, PARTLY

import diffrac_cvx as dc
from diffrac_cvx.problem.penalty import suggested_lam
from experiments.wide_law import cells, findings, law


def small_table(seed, n=40, d=12, k=4, shift=1.5):
    rho = 0.5 * (seed % 2)
    return cells.make_wide(n, d, k, shift, rho, np.random.default_rng(seed))


def sparse_pca(S, lam, ridge):
    """Return kappa by an interior point, from its definition."""
    V = cp.Variable(S.shape, PSD=True)
    penalty = ridge * cp.trace(V) + lam * cp.sum(cp.abs(V))
    return cp.Problem(cp.Minimize(penalty), [cp.trace(S @ V) == 1]).solve(solver="CLARABEL")


# The theorems


@pytest.mark.parametrize(("seed", "lam"), [(0, 0.02), (1, 0.2)])
def test_no_value_is_below_kappa_and_the_share_along_the_labels_is_bounded(seed, lam):
    X, y = small_table(seed)
    m = X.T @ y / len(y)
    S = X.T @ X / len(y)
    result = dc.low_rank(X, lam=lam, ridge=0.3, tol=1e-4)
    C = law.odds(result.upper)
    exact = sparse_pca(S, lam, 0.3)
    assert exact <= C + 1e-6
    assert law.odds(result.lower) <= law.label_cost(X, y, lam) + 1e-6
    kappa = sparse_pca(S - np.outer(m, m), lam, 0.3)
    assert law.share_along(X, y, result.V) >= 1 - C / kappa - 1e-6
    assert 0.5 * exact < law.lower_cost(S, lam) <= exact + 1e-6, "clipping proves less than kappa, and not nothing"


def test_few_points_are_on_the_wrong_side_of_the_first_singular_vector():
    X, y = small_table(0, d=30, k=10, shift=2.0)
    m = X.T @ y / len(y)
    result = dc.low_rank(X, lam=0.1, ridge=1.0, tol=1e-3)
    delta = law.odds(result.upper) / sparse_pca(X.T @ X / len(y) - np.outer(m, m), 0.1, 1.0)
    assert delta < 0.5
    _, vectors = np.linalg.eigh(X @ result.V @ X.T)
    wrong = np.mean(np.sign(vectors[:, -1]) != y)
    assert 1 - delta <= (vectors[:, -1] @ y) ** 2 / len(y) <= 1 - min(wrong, 1 - wrong)


@pytest.mark.parametrize("seed", range(2))
def test_kappa_is_that_of_a_column_exactly_where_all_correlations_are_small(seed):
    X, _ = small_table(seed, shift=0.5)
    S = X.T @ X / len(X)
    largest = np.abs(S - np.eye(len(S))).max()
    at = 0.3 * largest / (1 - largest)  # the largest correlation is lam / (ridge + lam) here
    assert sparse_pca(S, 1.02 * at, 0.3) == pytest.approx(0.3 + 1.02 * at, abs=1e-6)
    assert sparse_pca(S, 0.9 * at, 0.3) < 0.3 + 0.9 * at - 1e-4
    assert law.lower_cost(S, 1.02 * at) == 0.3 + 1.02 * at


# The numbers


@pytest.mark.parametrize("seed", range(2))
def test_the_cost_of_labels_is_that_of_eq_9_at_its_best_direction(seed):
    X, y = small_table(seed, d=6)
    cost = best_pair_penalty_fit(X, y, ridge=np.full(6, 0.3), groups=[[j] for j in range(6)], weights=np.full(6, 0.1))[
        0
    ]
    assert law.odds(cost) == pytest.approx(law.label_cost(X, y, 0.1), rel=1e-5)


def test_the_formula_of_noise_is_near_what_clipping_proves_and_rises_to_the_cost_of_a_column():
    for n, d, lam in ((60, 400, 0.2), (100, 400, 0.05)):
        X, _ = cells.make_wide(n, d, 0, 0.0, 0.0, np.random.default_rng(0))
        assert law.noise_cost(n, d, lam) == pytest.approx(law.lower_cost(X.T @ X / n, lam), rel=0.1)
    costs = [law.noise_cost(n, 1000, 0.1) for n in (20, 100, 500, 5000)]
    assert costs == sorted(costs)
    assert costs[-1] == pytest.approx(0.4)


@pytest.mark.parametrize(("n", "d", "k", "shift"), [(100, 1000, 20, 0.8), (60, 5000, 20, 0.8), (200, 2000, 10, 1.0)])
def test_the_suggested_weight_is_near_the_best_ratio_of_the_law(n, d, k, shift):
    m = law.group_share(shift) ** 0.5

    def ratio(lam):
        return law.flat_cost(k, m, lam) / law.noise_cost(n, d, lam)

    best = min(ratio(lam) for lam in np.geomspace(0.005, 0.4, 60))
    assert ratio(suggested_lam(n, d, law.RIDGE)) <= 1.05 * best
    assert ratio(10 * suggested_lam(n, d, law.RIDGE)) > 1.2 * best


# The findings on constructed tables


def made(index, cost, right=40, m2=0.1, found=0.5, along=0.9):
    """Forty tables, with an index in the first of them and the opposite one in the others."""
    indices = np.where(np.arange(40) < right, index, 1.0 - index)
    return pd.DataFrame({"index": indices, "cost": cost, "kappa": 1.0}).assign(
        rho=0.0, m2=m2, lam=0.2, found=found, along=along
    )


def test_tables_are_found_and_lost_by_the_ratio_of_the_two_costs():
    below, above = made(1.0, 0.5, right=35), made(0.0, 3.0, right=24)
    found = findings.found_and_lost(pd.concat([below, above, made(1.0, 1.5, m2=0.9)]))
    assert [found.loc[name, "share"].value for name in (findings.BELOW, findings.ABOVE)] == [35 / 40, 24 / 40]
    assert found.loc["between, rho = 0: found", "share"].value == 1.0
    assert found.loc[findings.HIDDEN, "instances"] == 80
    assert findings.FOUND_BELOW(found) is PARTLY


def test_a_v_with_less_along_the_labels_than_the_theorem_allows_is_counted():
    assert findings.INEQUALITY(findings.inequality(made(1.0, 0.5))) is AGREES
    assert findings.inequality(made(1.0, 0.5, along=0.4))["less"][0] == 40
    assert findings.INEQUALITY(findings.inequality(made(1.0, 0.5, found=2.0))) is NOT_TESTED
