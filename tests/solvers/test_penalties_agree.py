"""Feature groups and sign constraints: solvers and certificates against an independent reference solver."""

import numpy as np
import pytest
import scipy.sparse
from instances import (
    NO_COLUMNS,
    Instance,
    draw_instance,
    draw_wide_columns,
    draw_wide_instance,
    link,
    planted,
    some_matrix,
    weigh_pairs,
)
from oracles import labelings_values
from penalties import PenaltyOfPairs, draw_sides
from rationals import fractions

import diffrac_cvx as dc
from diffrac_cvx.certificates import direction_bounds
from diffrac_cvx.certificates import working_set_bounds as working_set_certificate
from diffrac_cvx.solvers import race
from diffrac_cvx.solvers.factored import solver, working_set

pytestmark = pytest.mark.filterwarnings(
    "ignore::diffrac_cvx.DegenerateDataWarning", "ignore:Solution may be inaccurate"
)
JUDGED = 1e-6  # largest gap of the bounds of the judge, which hold however exact its solver is; most are below 1e-8
ROUNDED = 1e-9  # of these bounds in double precision


def solved(instance, *, by_cvxpy):
    """Results of the solvers, by name."""
    X, nu, penalty, given = instance.X, instance.nu, instance.penalty, {"constraints": instance.constraints}
    yield "low_rank", dc.low_rank(X, nu, penalty, tol=1e-5, time_limit=3.0, sample_weight=instance.w, **given)
    yield "fista", dc.fista(X, nu, penalty, tol=1e-2, max_iter=300, sample_weight=instance.w, **given)
    if by_cvxpy:
        yield "v_space", dc.solve(dc.v_space(X, nu, penalty, sample_weight=instance.w, **given))
    if by_cvxpy and instance.w is None:
        yield "lifted", dc.solve(dc.lifted(X, nu, penalty, **given))
    if by_cvxpy and instance.w is None and not (instance.weights.any() or len(instance.known)):
        yield "penalized_nu", dc.solve(dc.penalized_nu(X, nu, penalty, **given))


def check(instance, seed, *, by_cvxpy=True):
    """Check every bound on an instance against those of the judge; return the gap of low_rank.

    Lower bounds with excluded directions refer to other data and are not compared with it.
    """
    judged = instance.solve()
    least, gaps = min(judged.value, 1.0), {}
    assert least - JUDGED <= judged.lower <= least + ROUNDED
    given_y = {"constraints": instance.constraints}
    given = {"sample_weight": instance.w, **given_y}
    for name, result in solved(instance, by_cvxpy=by_cvxpy):
        assert result.invalid_bound is None, name
        bounds = [result.bracket]
        if name in ("low_rank", "v_space"):
            given_back = result.V if by_cvxpy else result
            bounds.append(dc.certify_v(instance.X, given_back, instance.nu, instance.penalty, **given))
        for bracket in bounds:
            if result.n_excluded == 0:
                assert bracket.lower <= least + ROUNDED, name
                assert bracket.upper >= judged.lower - ROUNDED, name
        if instance.membership is not None:
            alike, sign = instance.membership[:, None] == instance.membership, instance.sign
            np.testing.assert_allclose((result.F @ result.F.T)[alike], np.outer(sign, sign)[alike], atol=1e-12)
        gaps[name] = result.upper - result.lower
        if result.G is None:
            bracket = dc.certify_y(instance.X, result.F, instance.nu, penalty=instance.penalty, **given_y)
            assert bracket.lower <= least + ROUNDED
            assert bracket.upper >= judged.lower - ROUNDED
            continue
        G = result.G.toarray() if scipy.sparse.issparse(result.G) else result.G
        assert instance.value(G @ G.T) <= result.upper + 1e-12, name
        rows = fractions(G[instance.known])
        assert np.all(rows @ rows.T >= 0), name
    if result.n_excluded == 0:
        V = some_matrix(instance, np.random.default_rng(seed))
        bracket = dc.certify_v(instance.X, V, instance.nu, instance.penalty, **given)
        assert bracket.lower <= least + ROUNDED
        assert bracket.upper >= judged.lower - ROUNDED
        if (len(instance.groups) > 1 and instance.weights.any()) or len(
            instance.known
        ) > 1:  # otherwise V excludes features that explain nothing
            assert bracket.upper >= min(instance.best_value(V), 1.0) - ROUNDED
    return gaps["low_rank"]


@pytest.mark.parametrize("seed", sorted(set(range(18)) - {0, 3, 6}))  # these take a second each
def test_fast_solvers_agree_with_the_judge(seed):
    assert check(draw_instance(seed), seed, by_cvxpy=seed % 10 == 2) <= 1e-4


@pytest.mark.parametrize("seed", range(30, 42))
def test_all_solvers_agree_where_points_are_linked(seed):
    instance = draw_instance(seed)
    if seed % 3 == 0:  # then the problem in labels has the same value
        instance = instance._replace(weights=0.0 * instance.weights, known=NO_COLUMNS, w=None)
    assert check(link(instance, seed), seed, by_cvxpy=seed % 3 == 0) <= 1e-4


@pytest.mark.parametrize("seed", range(50, 62))
def test_all_solvers_agree_with_the_judge_where_pairs_have_weights(seed):
    instance = weigh_pairs(draw_instance(seed), seed)
    instance = link(instance, seed) if seed % 4 == 3 else instance
    assert check(instance, seed, by_cvxpy=seed % 3 == 0) <= 1e-4


@pytest.mark.parametrize("strategy", solver.STRATEGIES, ids=lambda strategy: strategy.iterates.__name__)
def test_each_strategy_alone_agrees_with_the_judge_where_pairs_have_weights(small_cores, monkeypatch, strategy):
    monkeypatch.setattr(solver, "STRATEGIES", (strategy,))
    instance = weighted_pairs()
    assert_agrees(instance, dc.low_rank(instance.X, penalty=instance.penalty, tol=1e-3), 1e-3)


@pytest.mark.parametrize("variant", ["accelerated", "published"])
def test_each_variant_of_fista_agrees_with_the_judge_where_pairs_have_weights(variant):
    instance = weighted_pairs()
    found = dc.fista(instance.X, penalty=instance.penalty, tol=2e-2, max_iter=600, variant=variant)
    assert_agrees(instance, found, 2e-2)


def weighted_pairs():
    """A sparse table of twelve standardised columns whose pairs have weights."""
    X, one = planted(40, 12, sparsity=3), np.ones(12)
    plain = Instance(
        X / X.std(axis=0), 1.0, 0.1 * one, [[j] for j in range(12)], 0.15 * one, *(False, NO_COLUMNS), *3 * [None]
    )
    return weigh_pairs(plain, 0)


def assert_agrees(instance, result, tol):
    """Check that a result is optimal to a tolerance, and its bounds and those of its V hold by the judge."""
    judged = instance.solve()
    assert judged.value - judged.lower <= JUDGED
    assert result.gap <= tol
    for bracket in (result.bracket, dc.certify_v(instance.X, result.V, 1.0, instance.penalty)):
        assert bracket.lower <= judged.value + ROUNDED
        assert bracket.upper >= judged.lower - ROUNDED


@pytest.mark.usefixtures("cuts_first")
def test_optimal_labels_do_without_cutting_planes_where_pairs_have_weights():
    """They know the l1 norm alone; branches prove the bound, and no file describes the penalty."""
    for seed in range(4):
        X, d = planted(8, 3, seed=seed), 3
        r = draw_sides(np.random.default_rng(seed), d)
        penalty, best = PenaltyOfPairs(r, lam=0.2, ridge=0.1), labelings_values(X, 1.0, 0.1, 0.2, sides=r)[1].min()
        found = dc.optimal_labels(X, penalty=penalty, tol=1e-3)
        assert found.lower <= best + ROUNDED
        assert found.upper >= best - ROUNDED
        assert all(proof.rows is None for proof in found.certificate.proofs)
        assert dc.check_certificate(X, found).lower == found.lower
    with pytest.raises(dc.ParameterError, match="a penalty of your own"):
        found.certificate.save("nowhere.npz")


@pytest.mark.slow
@pytest.mark.parametrize("change", [lambda one, seed: one, link, weigh_pairs], ids=["drawn", "linked", "pairs"])
def test_all_solvers_agree_with_the_judge_on_hundreds_of_instances_to_a_small_gap_but_for_a_few(change):
    gaps = np.array([check(change(draw_instance(seed), seed), seed) for seed in range(250)])
    assert np.sum(gaps > 1e-4) <= 5


@pytest.fixture
def small_cores(monkeypatch):
    """Enable the working-set solver also for few columns, and count the bounds certified from a working set."""
    monkeypatch.setattr(working_set, "INITIAL_SIZE", 5)
    monkeypatch.setattr(direction_bounds, "MIN_WIDE_SIZE", 10)
    monkeypatch.setattr(solver, "STRATEGIES", (solver.WORKING_SET, solver.ONE_BLOCK))  # the working set first
    monkeypatch.setattr(race, "FIRST_SLICE", 1e12)
    sizes, whole = [], working_set.check_kkt

    def watched(split, *given):
        look = whole(split, *given)
        if look.bound is not None:
            sizes.append(len(split.free) / len(split.problem.c))
        return look

    monkeypatch.setattr(working_set, "check_kkt", watched)
    return sizes


@pytest.mark.parametrize(
    ("change", "seeds", "most_columns"),
    [
        (lambda one, seed: one, range(3), 24),
        (weigh_pairs, range(3), 24),
        pytest.param(lambda one, seed: one, range(200), 40, marks=pytest.mark.slow),
        pytest.param(weigh_pairs, range(60), 40, marks=pytest.mark.slow),
    ],
    ids=["few", "few with pairs", "all", "all with pairs"],
)
def test_wide_tables_are_solved_on_working_sets_and_agree_with_the_judge(small_cores, change, seeds, most_columns):
    gaps = [check(change(draw_wide_columns(seed, most_columns), seed), seed, by_cvxpy=False) for seed in seeds]
    assert np.median(gaps) <= 1e-4
    assert len(small_cores) > len(seeds) / 4
    assert np.min(small_cores) < 0.8


@pytest.mark.parametrize("seeds", [(1, 19), pytest.param(range(60), marks=pytest.mark.slow)], ids=["few", "all"])
def test_groups_are_solved_on_a_working_set_and_what_is_proved_outside_them_agrees_with_the_judge(monkeypatch, seeds):
    looks, whole = [], working_set_certificate.prove

    def watched(*given, **how):
        looks.append(whole(*given, **how))
        return looks[-1]

    monkeypatch.setattr(direction_bounds, "MIN_WIDE_SIZE", 10)
    monkeypatch.setattr(working_set, "INITIAL_SIZE", 4)
    monkeypatch.setattr(solver, "STRATEGIES", (solver.WORKING_SET,))
    monkeypatch.setattr(working_set_certificate, "prove", watched)
    for seed in seeds:
        check(draw_wide_instance(seed), seed, by_cvxpy=False)
    assert sum(not look for look in looks) > len(seeds) / 2  # otherwise no certificate is returned
    assert any(looks)


OFFSET = np.diag(np.arange(211) == 210).astype(float)


@pytest.mark.parametrize(
    ("start", "groups"),
    [
        pytest.param(None, np.arange(210) // 70, id="cold"),
        pytest.param(OFFSET, np.arange(210) // 70, id="start"),
        pytest.param(OFFSET, None, id="start without groups", marks=pytest.mark.slow),
    ],
)
def test_a_working_set_of_the_offset_alone_takes_in_columns_or_a_group_of_any_size(start, groups):
    X = np.random.default_rng(0).standard_normal((12, 210))
    found = dc.low_rank(X, 0.6, dc.Penalty(lam=0.1, ridge=0.3, groups=groups), start=start, tol=0.2, time_limit=20.0)
    assert found.gap <= 0.2
    assert found.upper < 0.6 - 0.05
