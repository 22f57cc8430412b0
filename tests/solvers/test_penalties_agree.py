"""Feature groups and sign constraints: solvers and certificates against an independent reference solver."""

from itertools import combinations

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse
from coupled_instances import draw_instance, draw_wide_instance, some_matrix
from posed import direction_problem
from rationals import fractions

import diffrac_cvx as dc
from diffrac_cvx.certificates import direction_bounds
from diffrac_cvx.certificates import working_set as working_set_certificate
from diffrac_cvx.certificates.block_problem import block_problem
from diffrac_cvx.certificates.working_set import check_kkt
from diffrac_cvx.solvers.factored import solver, working_set

pytestmark = [
    pytest.mark.filterwarnings("ignore::diffrac_cvx.DegenerateDataWarning"),
    pytest.mark.filterwarnings("ignore:Solution may be inaccurate"),
]
JUDGED = 1e-6  # accuracy of the reference optimum; its solver has tolerance 1e-8
ROUNDED = 1e-9  # of the value of V in double precision; a feasible V is never below the optimum


def solved(instance, *, by_cvxpy):
    """Results of the solvers, by name."""
    X, nu, penalty, given = instance.X, instance.nu, instance.penalty, {"constraints": instance.constraints}
    yield "low_rank", dc.low_rank(X, nu, penalty, tol=1e-5, time_limit=3.0, sample_weight=instance.w, **given)
    yield "fista", dc.fista(X, nu, penalty, tol=1e-2, max_iter=300, sample_weight=instance.w, **given)
    if by_cvxpy:
        yield "v_space", dc.solve(dc.v_space(X, nu, penalty, sample_weight=instance.w, **given))
    if by_cvxpy and instance.w is None:
        yield "lifted", dc.solve(dc.lifted(X, nu, penalty, **given))


def check(instance, seed, *, by_cvxpy=True):
    """Check every bound on an instance against the reference optimum; return the gap of low_rank.

    Lower bounds with excluded directions refer to other data and are not compared with it.
    """
    optimum, value = instance.solve()
    least, gaps = min(value, 1.0), {}
    given = {"sample_weight": instance.w, "constraints": instance.constraints}
    for name, result in solved(instance, by_cvxpy=by_cvxpy):
        assert result.invalid_bound is None, name
        bounds = [result.bracket]
        if name in ("low_rank", "v_space"):
            given_back = result.V if by_cvxpy else result
            bounds.append(dc.certify_v(instance.X, given_back, instance.nu, instance.penalty, **given))
        for bracket in bounds:
            if result.n_excluded == 0:
                assert bracket.lower <= least + ROUNDED, name
                assert bracket.upper >= min(optimum, value) - JUDGED, name
        G = result.G.toarray() if scipy.sparse.issparse(result.G) else result.G
        assert instance.value(G @ G.T) <= result.upper + 1e-12, name
        rows = fractions(G[instance.known])
        assert np.all(rows @ rows.T >= 0), name
        gaps[name] = result.upper - result.lower
    if result.n_excluded == 0:
        V = some_matrix(instance, np.random.default_rng(seed))
        bracket = dc.certify_v(instance.X, V, instance.nu, instance.penalty, **given)
        assert bracket.lower <= least + ROUNDED
        assert bracket.upper >= min(optimum, value) - JUDGED
        if (len(instance.groups) > 1 and instance.weights.any()) or len(
            instance.known
        ) > 1:  # otherwise V excludes features that explain nothing
            assert bracket.upper >= min(instance.best_value(V), 1.0) - ROUNDED
    return gaps["low_rank"]


@pytest.mark.parametrize("seed", sorted(set(range(18)) - {0, 3, 6}))  # these take a second each
def test_fast_solvers_agree_with_the_judge(seed):
    assert check(draw_instance(seed), seed, by_cvxpy=seed % 10 == 2) <= 1e-4


@pytest.mark.slow
def test_all_solvers_agree_with_the_judge_and_low_rank_nearly_always_solves_to_a_small_gap():
    gaps = np.array([check(draw_instance(seed), seed) for seed in range(250)])
    assert np.sum(gaps > 1e-4) <= 5


@pytest.mark.parametrize("seeds", [(1, 8, 18, 19), pytest.param(range(60), marks=pytest.mark.slow)], ids=["few", "all"])
def test_groups_are_solved_on_a_working_set_and_what_is_proved_outside_them_agrees_with_the_judge(monkeypatch, seeds):
    looks, whole = [], working_set_certificate.prove

    def watched(*given, **how):
        looks.append(whole(*given, **how))
        return looks[-1]

    monkeypatch.setattr(direction_bounds, "MIN_WIDE_SIZE", 10)
    monkeypatch.setattr(working_set, "INITIAL_SIZE", 4)
    monkeypatch.setattr(solver, "STRATEGIES", solver.STRATEGIES[-1:])
    monkeypatch.setattr(working_set_certificate, "prove", watched)
    for seed in seeds:
        check(draw_wide_instance(seed), seed, by_cvxpy=False)
    assert sum(not look for look in looks) > len(seeds) / 2  # otherwise no certificate is returned
    assert any(looks)


def least_t(problem, u, groups):
    """Return the least t with M <= t (A + C + Diag(c)^2) for a feasible C, by a semidefinite program, and C."""
    X, a, c = problem.X.array(), problem.a, problem.c
    D = len(c)
    t, Z = cp.Variable(nonneg=True), cp.Variable((D, D), symmetric=True)
    constraints = [t * (X.T @ X / len(X) + np.diag(a**2 + c**2)) + Z - X.T @ (u[:, None] * X) / len(X) >> 0]
    for g, h in combinations(groups, 2):
        constraints += [cp.sigma_max(Z[np.ix_(g, h)]) <= t * c[g[0]] * c[h[0]]]
    constraints += [Z[np.ix_(g, g)] == 0.0 for g in groups]
    cp.Problem(cp.Minimize(t), constraints).solve(solver="CLARABEL")
    return float(t.value), Z.value / float(t.value)


def proofs_of_groups(seed):
    """Return how many t above the least one some working sets certify; none below it is certified."""
    rng = np.random.default_rng([2026, 28, seed])
    n, d, proved = int(rng.integers(5, 10)), int(rng.integers(6, 10)), 0
    X, labels = rng.standard_normal((n, d)), rng.integers(0, d // 2, d)
    lam, nu = rng.choice([0.02, 0.2]) * rng.uniform(0.5, 1.5, len(np.unique(labels))), (1.0, 0.5)[seed % 2]
    problem = direction_problem(X, nu, dc.Penalty(lam=lam, ridge=rng.choice([0.02, 0.5]), groups=labels))
    groups = [np.flatnonzero(problem.pair_penalty.labels == name) for name in np.unique(problem.pair_penalty.labels)]
    u = rng.uniform(0.2, 2.0, n)
    least, C = least_t(problem, u, groups)
    free = np.flatnonzero(problem.c == 0.0)
    for size in range(len(groups)):
        chosen = np.union1d(free, np.concatenate([free, *groups[:size]])).astype(np.intp)
        core, inside = block_problem(problem, chosen), C[np.ix_(chosen, chosen)]
        for t in least * (1.0 - np.array([0.5, 0.2, 0.05, 1e-2, 1e-3, 1e-4, 1e-5])):
            assert check_kkt(core, u, inside, t).lower is None, (seed, size, t / least)
        for t in least * (1.0 + np.array([1e-4, 1e-2, 0.1, 0.5])):
            proved += check_kkt(core, u, inside, t).lower is not None
    return proved


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("seeds", [range(16), pytest.param(range(200), marks=pytest.mark.slow)], ids=["few", "all"])
def test_no_working_set_of_groups_proves_more_than_the_semidefinite_program(seeds):
    assert sum(map(proofs_of_groups, seeds)) > 2 * len(seeds)


OFFSET = np.diag(np.arange(241) == 240).astype(float)


@pytest.mark.parametrize(
    ("start", "groups"),
    [
        pytest.param(None, np.arange(240) // 60, id="cold"),
        pytest.param(OFFSET, np.arange(240) // 60, id="start"),
        pytest.param(OFFSET, None, id="start without groups", marks=pytest.mark.slow),
    ],
)
def test_a_working_set_of_the_offset_alone_takes_in_columns_or_a_group_of_any_size(start, groups):
    X = np.random.default_rng(0).standard_normal((12, 240))
    found = dc.low_rank(X, 0.6, dc.Penalty(lam=0.1, ridge=0.3, groups=groups), start=start, tol=0.2, time_limit=20.0)
    assert found.gap <= 0.2
    assert found.upper < 0.6 - 0.05
