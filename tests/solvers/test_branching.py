"""Labels proved optimal: brute force agrees, every bound on the way holds, links are obeyed."""

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from itertools import product
from multiprocessing import get_context

import numpy as np
import pytest

import diffrac_cvx as dc
from diffrac_cvx.solvers.branching.tree import Tree


def cost_of(X, y, nu, ridge, w=None):
    """Eq. (9) at the best direction, by least squares with one row for each point, each column's ridge and nu."""
    p = np.full(len(y), 1.0 / len(y)) if w is None else w / w.sum()
    centred, mean = X - p @ X, p @ y
    root = np.sqrt(p)[:, None]
    system = np.vstack([root * centred, np.diag(np.sqrt(np.broadcast_to(ridge, X.shape[1])))])
    target = np.append(root[:, 0] * (y - mean), np.zeros(X.shape[1]))
    v = np.linalg.lstsq(system, target)[0]
    return float(np.sum((target - system @ v) ** 2) + nu * mean**2)


def obeys(y, links, n):
    if links is None:
        return True
    groups = links.groups_of(n)
    signs = groups.sign * y
    first = np.array([signs[np.argmax(groups.owner == g)] for g in range(groups.n_groups)])
    return bool(np.all(signs == first[groups.owner])) and (groups.known < 0 or first[groups.known] == 1.0)


def random_links(rng, n):
    y = rng.choice([-1, 1], n)
    pairs = rng.integers(0, n, (int(rng.integers(0, 4)), 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    alike = y[pairs[:, 0]] == y[pairs[:, 1]]
    labels = np.where(rng.random(n) < 0.3, y, 0) if rng.random() < 0.5 else None
    return dc.Links(pairs[alike], pairs[~alike], labels)


def instance(seed):
    rng = np.random.default_rng([2017, 24, seed])
    n, d = int(rng.integers(2, 11)), int(rng.integers(1, 5))
    X = rng.standard_normal((n, d)) if rng.integers(2) else rng.integers(-1, 2, (n, d)).astype(float)
    ridge = rng.choice([0.0, 0.1, 1.0], d) if rng.integers(2) else float(rng.choice([0.0, 0.3]))
    nu = float(rng.choice([1.0, 1.0, 0.6, 0.1]))
    w = rng.integers(1, 4, n).astype(float) if rng.integers(3) == 0 else None
    return X, nu, ridge, w, random_links(rng, n) if rng.integers(2) else None


def check(seed):
    X, nu, ridge, w, links = instance(seed)
    n = len(X)
    labellings = [np.array(y) for y in product((-1.0, 1.0), repeat=n)]
    best = min(cost_of(X, y, nu, ridge, w) for y in labellings if obeys(y, links, n))
    found = dc.optimal_labels(X, nu, ridge=ridge, links=links, tol=1e-6, sample_weight=w)
    assert obeys(found.labels, links, n)
    assert found.lower <= best + 1e-12
    assert found.upper >= best - 1e-12
    assert cost_of(X, found.labels, nu, ridge, w) == pytest.approx(found.upper, abs=1e-8)
    assert found.status is dc.Status.OPTIMAL
    assert found.gap <= 1e-6
    assert found.root <= best + 1e-12


@pytest.mark.parametrize("first", range(0, 30, 10))
def test_brute_force_agrees(first):
    for seed in range(first, first + 10):
        check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(30, 530, 50))
def test_brute_force_agrees_on_five_hundred_instances(first):
    for seed in range(first, first + 50):
        check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_brute_force_agrees_with_sixteen_points(seed):
    """Of y'Ky for all labellings at once, K from the formula for the least misfit."""
    rng = np.random.default_rng([2017, 27, seed])
    n, d, nu, ridge = int(rng.integers(13, 17)), 3, [1.0, 0.6, 0.2][seed], [0.1, 0.0, 0.3][seed]
    X, w = rng.standard_normal((n, d)), rng.integers(1, 4, n).astype(float)
    links, p = random_links(rng, n), w / w.sum()
    A, C = X - p @ X, np.eye(n) - np.outer(np.ones(n), p)
    H = np.diag(p) - (p[:, None] * A) @ np.linalg.inv(A.T @ (p[:, None] * A) + ridge * np.eye(d)) @ (p[:, None] * A).T
    K = C.T @ H @ C + nu * np.outer(p, p)
    Y = np.array(list(product((-1.0, 1.0), repeat=n)))
    obeying = Y[[obeys(y, links, n) for y in Y]]
    best = float(np.min(np.einsum("ki,ij,kj->k", obeying, K, obeying, optimize=True)))
    found = dc.optimal_labels(X, nu, ridge=ridge, links=links, tol=1e-7, sample_weight=w)
    assert found.status is dc.Status.OPTIMAL
    assert found.lower <= best + 1e-12
    assert found.upper == pytest.approx(best, abs=1e-7)
    assert obeys(found.labels, links, n)


def costs_with_l1(X, nu, ridge, lam, w):
    """All labellings, (2^n, n), and Eq. (9) at each: the best of the directions of all patterns of signs and zeros."""
    n, d = X.shape
    p = np.full(n, 1.0 / n) if w is None else w / w.sum()
    A, c = X - p @ X, np.sqrt(np.broadcast_to(lam, d))
    Y = np.array(list(product((-1.0, 1.0), repeat=n)))
    means = Y @ p
    T = Y - means[:, None]
    ridge = np.diag(np.broadcast_to(ridge, d))
    best = np.full(len(Y), np.inf)
    for pattern in product((-1.0, 0.0, 1.0), repeat=d):
        s = np.array(pattern)
        used = np.flatnonzero(s)
        V = np.zeros((len(Y), d))
        if len(used):
            M = (A.T @ (p[:, None] * A) + ridge + np.outer(c * s, c * s))[np.ix_(used, used)]
            V[:, used] = (T * p) @ A[:, used] @ np.linalg.pinv(M)
        misfit = ((T - V @ A.T) ** 2) @ p + np.sum(V @ ridge * V, axis=1) + (np.abs(V) @ c) ** 2
        best = np.minimum(best, misfit + nu * means**2)
    return Y, best


def sparse_instance(seed):
    rng = np.random.default_rng([2017, 26, seed])
    n, d = int(rng.integers(2, 9)), int(rng.integers(1, 4))
    X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-1, 1, d) + rng.standard_normal(d)
    lam = rng.choice([0.02, 0.1, 0.4]) * np.var(X, axis=0)
    ridge = float(rng.choice([0.0, 0.1])) * np.var(X, axis=0)
    w = rng.integers(1, 4, n).astype(float) if rng.integers(3) == 0 else None
    nu = float(rng.choice([1.0, 1.0, 0.6]))
    return X, nu, ridge, lam, w, random_links(rng, n) if rng.integers(2) else None


def check_sparse(seed):
    X, nu, ridge, lam, w, links = sparse_instance(seed)
    Y, costs = costs_with_l1(X, nu, ridge, lam, w)
    obeying = np.array([obeys(y, links, len(X)) for y in Y])
    best = float(costs[obeying].min())
    found = dc.optimal_labels(X, nu, lam=lam, ridge=ridge, links=links, tol=1e-5, sample_weight=w, certain_within=1e-3)
    assert obeys(found.labels, links, len(X))
    assert found.lower <= best + 1e-12
    assert found.upper >= best - 1e-12
    assert costs[np.all(found.labels == Y, axis=1)][0] == pytest.approx(found.upper, abs=1e-6)
    assert found.status is dc.Status.OPTIMAL
    assert found.root <= best + 1e-12
    near = Y[obeying & (costs <= found.upper + 9e-4)] * found.labels
    if links is None or links.groups_of(len(X)).known < 0:
        near = near * near[:, [int(np.argmax(found.certain))]]
    assert np.all(near[:, found.certain] == 1.0)


@pytest.mark.parametrize("first", range(0, 20, 10))
def test_brute_force_agrees_with_an_l1_part(first):
    for seed in range(first, first + 10):
        check_sparse(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(20, 220, 50))
def test_brute_force_agrees_with_an_l1_part_on_two_hundred_instances(first):
    for seed in range(first, first + 50):
        check_sparse(seed)


def test_labels_found_with_an_l1_part_are_those_of_the_columns_that_matter():
    X, y, _ = dc.datasets.make_planted(40, 6, noise=0.2, sparsity=1, rng=0)
    found = dc.optimal_labels(X, lam=0.05 * np.var(X, axis=0), tol=1e-3, time_limit=60)
    assert found.status is dc.Status.OPTIMAL
    assert abs(found.labels @ y) == 40.0


def test_labels_are_found_that_alternation_misses_and_every_bound_on_the_way_holds():
    X = dc.datasets.make_planted(60, 5, noise=0.5, rng=0).X
    found = dc.optimal_labels(X, tol=1e-5)
    assert found.status is dc.Status.OPTIMAL
    assert found.root < found.lower - 0.01
    lowers = [lower for _, lower, _ in found.history]
    assert all(lower <= found.upper for lower in lowers)
    assert lowers == sorted(lowers)
    relaxed = dc.low_rank(X, tol=1e-8)
    assert found.root == pytest.approx(relaxed.lower, abs=1e-4)
    assert dc.certify_labels(X, found.labels, found.lower).gap <= 1e-5


def test_links_never_make_labels_cheaper_and_what_is_linked_to_the_best_labels_costs_the_same():
    X = dc.datasets.make_planted(40, 4, noise=0.4, rng=1).X
    free = dc.optimal_labels(X, ridge=0.1, tol=1e-7)
    known = np.where(np.arange(40) % 3 == 0, free.labels, 0)
    held = dc.optimal_labels(X, ridge=0.1, tol=1e-7, links=dc.Links(labels=known))
    np.testing.assert_array_equal(held.labels[known != 0], known[known != 0])
    assert held.upper == pytest.approx(free.upper, abs=1e-7)
    assert held.nodes <= free.nodes
    turned = dc.optimal_labels(
        X, ridge=0.1, tol=1e-7, links=dc.Links(labels=np.where(np.arange(40) == 0, -known, known))
    )
    assert turned.lower >= free.lower


def test_a_limit_gives_a_bracket_at_once_and_a_callback_ends_the_search():
    X = np.random.default_rng(0).standard_normal((80, 8))
    stopped = dc.optimal_labels(X, time_limit=0.0)
    assert stopped.status is dc.Status.TIME_LIMIT
    assert 0.0 <= stopped.lower < stopped.upper <= 1.0
    calls = []
    asked = dc.optimal_labels(X, callback=lambda bracket, nodes: calls.append((bracket, nodes)) or len(calls) > 2)
    assert asked.status is dc.Status.STOPPED
    assert [bracket.lower for bracket, _ in calls] == sorted(bracket.lower for bracket, _ in calls)
    assert asked.nodes > stopped.nodes


def test_what_cannot_be_searched_is_refused():
    X = np.random.default_rng(0).standard_normal((6, 2))
    with pytest.raises(dc.ParameterError, match="tol"):
        dc.optimal_labels(X, tol=0.0)
    with pytest.raises(dc.DataError, match="contradict each other at points 0, 2, 1"):
        dc.optimal_labels(X, links=dc.Links(same=[(0, 1), (1, 2)], different=[(0, 2)]))


def test_where_no_column_varies_all_labels_cost_one():
    found = dc.optimal_labels(np.ones((5, 2)), links=dc.Links(different=[(0, 1)]))
    assert found.status is dc.Status.OPTIMAL
    assert found.labels[0] == -found.labels[1]
    assert found.lower == 1.0
    assert found.gap < 1e-12


@pytest.mark.parametrize("labels", [[1, -1, 1, -1], [1, 1, 1, 1]])
def test_where_all_labels_are_known_they_are_the_answer(labels):
    X = np.random.default_rng(0).standard_normal((4, 2))
    found = dc.optimal_labels(X, ridge=0.1, links=dc.Links(labels=labels))
    assert found.labels.tolist() == labels
    assert found.upper == pytest.approx(cost_of(X, np.array(labels, dtype=float), 1.0, 0.1), abs=1e-9)
    assert found.gap < 1e-9


def test_a_point_of_weight_zero_changes_nothing():
    X = np.random.default_rng(0).standard_normal((12, 2))
    w = np.append(np.ones(11), 0.0)
    found, alone = (dc.optimal_labels(*given, ridge=0.1) for given in ((X,), (X[:11],)))
    weighted = dc.optimal_labels(X, ridge=0.1, sample_weight=w)
    assert weighted.upper == pytest.approx(alone.upper, abs=1e-9)
    assert found.upper != pytest.approx(alone.upper, abs=1e-9)
    assert len(weighted.labels) == 12


@pytest.mark.parametrize("within", [0.0, 0.01, 0.1])
def test_points_that_are_certain_have_their_label_in_all_labels_that_cost_little_more(within):
    some = 0
    for seed in range(20):
        X, nu, ridge, w, links = instance(seed)
        n = len(X)
        found = dc.optimal_labels(X, nu, ridge=ridge, links=links, tol=1e-6, sample_weight=w, certain_within=within)
        cheap = [np.array(y) for y in product((-1.0, 1.0), repeat=n) if obeys(np.array(y), links, n)]
        cheap = [y for y in cheap if cost_of(X, y, nu, ridge, w) <= found.upper + within - 1e-9]
        same = np.array([y * found.labels for y in cheap]).reshape(-1, n)[:, found.certain]
        if links is None or links.groups_of(n).known < 0:
            np.testing.assert_array_equal(np.abs(same.sum(axis=1)), same.shape[1])
        else:
            np.testing.assert_array_equal(same, 1.0)
        some += int(found.certain.sum()) > 1
    assert some >= 2


def test_nothing_is_certain_where_all_labels_cost_the_same_and_all_is_where_two_groups_are_far_apart():
    noise = np.random.default_rng(0).standard_normal((12, 11))
    assert dc.optimal_labels(noise, certain_within=1e-3).certain.sum() == 1
    X = np.repeat([-1.0, 1.0], 10)[:, None] + 0.01 * np.random.default_rng(0).standard_normal((20, 1))
    assert dc.optimal_labels(X, certain_within=1e-2).certain.all()


@pytest.mark.parametrize("tol", [1e-16, 1e-6])
def test_the_search_ends_where_rounding_hides_what_is_left(tol):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((8, 2))
    for table in (rng.standard_normal((4, 2)), np.column_stack([X, X[:, 0] + 1e-7 * rng.standard_normal(8)])):
        found = dc.optimal_labels(table, tol=tol)
        assert found.nodes < 2**10
        best = min(cost_of(table, np.array(y), 1.0, 0.0) for y in product((-1.0, 1.0), repeat=len(table)))
        assert found.lower <= best + 1e-12
        assert found.upper >= best - 1e-12


@pytest.mark.parametrize("time_limit", [float("nan"), -1.0, "a"])
def test_a_limit_that_is_none_is_refused(time_limit):
    with pytest.raises(dc.ParameterError, match="time_limit"):
        dc.optimal_labels(np.eye(3), time_limit=time_limit)


@pytest.mark.parametrize("name", ["row_to_fix", "solve", "round", "keep"])
def test_an_interruption_leaves_a_valid_bracket_wherever_it_comes(monkeypatch, name):
    X = dc.datasets.make_planted(60, 5, noise=0.5, rng=0).X
    best = dc.optimal_labels(X, tol=1e-6)
    function = getattr(Tree, name)
    for last in range(2, 12):
        calls = []

        def interrupted(*given, calls=calls, last=last):
            calls.append(1)
            if len(calls) == last:
                raise KeyboardInterrupt
            return function(*given)

        monkeypatch.setattr(Tree, name, interrupted)
        found = dc.optimal_labels(X, tol=1e-6)
        assert found.lower <= best.upper
        assert found.upper >= best.lower
        assert found.status in (dc.Status.STOPPED, dc.Status.OPTIMAL)


def executor_of(kind):
    if kind == "threads":
        return ThreadPoolExecutor(2)
    if kind == "processes":
        return ProcessPoolExecutor(2, mp_context=get_context("spawn"))
    distributed = pytest.importorskip("distributed")
    return distributed.Client(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None).get_executor()


@pytest.mark.parametrize(
    "kind", ["threads", pytest.param("processes", marks=pytest.mark.slow), pytest.param("dask", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("lam", [0.0, 0.05])
def test_an_executor_gives_equal_answers(kind, lam):
    X = dc.datasets.make_planted(40, 5, noise=0.4, rng=0).X
    tol = 1e-3 if lam else 1e-5
    alone = dc.optimal_labels(X, lam=lam, tol=tol, certain_within=1e-3)
    with executor_of(kind) as executor:
        found = dc.optimal_labels(X, lam=lam, tol=tol, executor=executor, certain_within=1e-3)
        cut = dc.optimal_labels(X, lam=lam, tol=1e-9, executor=executor, time_limit=0.0)
    np.testing.assert_array_equal(found.labels, alone.labels)
    np.testing.assert_array_equal(found.certain, alone.certain)
    assert found.status is alone.status is dc.Status.OPTIMAL
    assert max(found.lower, alone.lower, cut.lower) <= min(found.upper, alone.upper, cut.upper)
