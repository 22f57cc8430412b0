"""Directions of V and of labels, and affine functions: comparison with their definitions."""

import numpy as np
import pytest
from instances import result_of

import diffrac_cvx as dc
from diffrac_cvx.points.checks import as_data
from diffrac_cvx.points.table import array_table
from diffrac_cvx.problem.penalties.base import PairPenalty
from diffrac_cvx.problem.penalties.group import GroupNorms
from diffrac_cvx.rounding import directions
from diffrac_cvx.rounding.directions import leading_direction

X = as_data(np.random.default_rng(12).standard_normal((15, 4)) * [1.0, 10.0, 0.1, 3.0])


@pytest.mark.parametrize("dense", [0, 100], ids=["one vector", "all vectors"])
@pytest.mark.parametrize("offset", [False, True])
def test_the_leading_direction_gives_the_best_scores_of_rank_one(dense, offset, monkeypatch):
    monkeypatch.setattr(directions, "DIRECT_SOLVE_SIZE", dense)
    G = np.random.default_rng(13).standard_normal((4 + offset, 3))
    v = leading_direction(X, result_of(G=G))
    left, sizes, _ = np.linalg.svd(X @ G[:4])
    scores = X @ v
    assert np.linalg.norm(scores) == pytest.approx(sizes[0], rel=1e-6)
    assert abs(scores @ left[:, 0]) == pytest.approx(sizes[0], rel=1e-6)
    np.testing.assert_allclose(v, leading_direction(X, G @ G.T), rtol=1e-5)
    units = np.sqrt(np.mean(X**2, axis=0))
    assert (v * units)[np.argmax(np.abs(v * units))] > 0.0


def test_of_labels_alone_the_direction_is_the_one_that_predicts_them():
    y = np.sign(X @ [1.0, 0.1, 0.0, 0.0])
    v = leading_direction(X, result_of(factor=y[:, None]))
    fitted = np.linalg.lstsq(X, y - y.mean())[0]
    assert abs(v @ fitted) == pytest.approx(np.linalg.norm(v) * np.linalg.norm(fitted))


@pytest.mark.parametrize("d", [1, 2, 4, 5])
@pytest.mark.parametrize("n", [2, 4, 5, 6])
def test_the_direction_of_labels_is_that_of_least_squares_whatever_the_rank(n, d):
    """Includes n = d, where centring reduces the rank by one."""
    for seed in range(20):
        rng = np.random.default_rng([n, d, seed])
        X, y = rng.standard_normal((n, d)), rng.choice([-1.0, 1.0], n)
        centered = X - X.mean(axis=0)
        residual = y - y.mean() - centered @ np.linalg.lstsq(centered, y - y.mean())[0]
        cost = float(np.mean(residual**2) + y.mean() ** 2)
        assert dc.certify_labels(X, y, 0.0).objective == pytest.approx(cost, abs=1e-9)


@pytest.mark.parametrize("closeness", [1.0, 1e-3, 1e-6, 1e-9, 0.0])
def test_the_directions_of_many_labels_of_a_tall_table_are_those_of_each_alone(closeness):
    """The factor that serves all of them is used only where it is as accurate as a QR factorisation of the rows."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((400, 6)) * [1e-6, 1.0, 1e6, 1.0, 1.0, 1.0]
    X[:, 5] = X[:, 4] + closeness * X[:, 5]  # nearly collinear
    table, weights = array_table(X - X.mean(axis=0)), PairPenalty(np.zeros(6))
    regression, targets = directions.LabelRegression(table, weights), rng.choice([-1.0, 1.0], (3, 400))
    for y in targets - targets.mean(axis=1)[:, None]:
        units = np.sqrt(table.mean_squares())
        fitted = table.array() @ (np.linalg.lstsq(table.array() / units, y, rcond=1e-12)[0] / units)
        np.testing.assert_allclose(table @ regression.direction(y), fitted, atol=1e-6 if closeness == 1e-9 else 1e-10)


def test_groups_that_a_direction_does_not_need_are_exactly_zero():
    rng = np.random.default_rng(0)
    labels, y = np.repeat(np.arange(12), 3), np.where(rng.random(80) < 0.5, 1.0, -1.0)
    X = rng.standard_normal((80, 36))
    X[:, :6] += y[:, None]
    X -= X.mean(axis=0)
    weights = GroupNorms(np.full(36, 0.6), labels, a=np.full(36, 0.3))
    v = directions.best_direction(array_table(X), y - y.mean(), weights)
    sizes = np.sqrt(np.bincount(labels, v**2))
    assert set(np.flatnonzero(sizes)) == {0, 1}
    slopes = X.T @ (y - y.mean() - X @ v) / 80 - 0.09 * v
    bound = 0.36 * sizes.sum()
    sums = np.sqrt(np.bincount(labels, slopes**2))
    np.testing.assert_allclose(sums[:2], bound, rtol=1e-4)
    assert np.all(sums[2:] <= bound)


@pytest.mark.parametrize("large", [4, 10**6], ids=["many columns", "few columns"])
@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize("lam", [0.0, 0.05, 0.4])
@pytest.mark.parametrize(("n", "d"), [(6, 12), (30, 12), (40, 5)])
def test_a_direction_satisfies_the_conditions_of_its_optimum_by_every_method(monkeypatch, n, d, lam, ridge, large):
    monkeypatch.setattr(directions, "LARGE_SIZE", large)
    monkeypatch.setattr(directions, "INITIAL_FEATURES", 2)
    rng = np.random.default_rng([n, d])
    X, y = rng.standard_normal((n, d)), rng.standard_normal(n)
    X[:, 0] += y
    X -= X.mean(axis=0)
    a, c = ridge**0.5 * rng.uniform(0.5, 1.5, d), lam**0.5 * rng.uniform(0.5, 1.5, d)
    for signs in (directions.direction_by_signs, lambda *_: None):  # with and without success of the sign search
        monkeypatch.setattr(directions, "direction_by_signs", signs)
        v = directions.best_direction(array_table(X), y - y.mean(), PairPenalty(c, a=a))
        slopes = X.T @ (y - y.mean() - X @ v) / n - a**2 * v
        bound = c * (c @ np.abs(v))
        np.testing.assert_allclose(slopes[v != 0.0], (bound * np.sign(v))[v != 0.0], atol=1e-7)
        assert np.all(np.abs(slopes) <= bound + 1e-7)
        assert lam < 0.4 or np.count_nonzero(v) < d


@pytest.mark.parametrize("weights", [(0.0, 0.0), (0.3, 0.0), (0.0, 0.1), (0.3, 0.1)])
@pytest.mark.parametrize(("n", "d"), [(6, 12), (30, 12)])
def test_a_direction_of_many_columns_is_no_worse_than_none_where_the_time_is_over(monkeypatch, n, d, weights):
    monkeypatch.setattr(directions, "LARGE_SIZE", 4)
    monkeypatch.setattr(directions, "is_late", lambda *_: True)
    rng = np.random.default_rng([n, d])
    X, y = rng.standard_normal((n, d)), rng.standard_normal(n)
    X, y = X - X.mean(axis=0), y - y.mean()
    a, c = (np.full(d, weight**0.5) for weight in weights)
    v = directions.best_direction(array_table(X), y, PairPenalty(c, a=a))
    cost = np.mean((y - X @ v) ** 2) + np.sum(a**2 * v**2) + (c @ np.abs(v)) ** 2
    assert cost < np.mean(y**2)


def test_ridges_however_small_decide_among_the_directions_that_fit():
    rng = np.random.default_rng(15)
    Z, b = rng.standard_normal((3, 8)) / 8.0**0.5, rng.standard_normal(3)
    a = 1e-20 * np.array([1.0, 3.0, 1.0, 0.3, 2.0, 1.0, 1.0, 0.5])
    whole = (Z / a**2) @ Z.T  # v'A^2v is least with Zv = b
    expected = Z.T @ np.linalg.solve(whole, b) / a**2
    found = directions.best_direction(array_table(Z * 3.0**0.5), b * 3.0**0.5, PairPenalty(np.zeros(8), a=a))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("lam", [0.0, 0.01])
def test_a_direction_whose_system_does_not_fit_in_memory_is_refused_in_words(monkeypatch, lam):
    points, y = array_table(X), np.sign(X[:, 0])
    monkeypatch.setattr("diffrac_cvx.machine.memory.available_memory", lambda: 100.0)
    with pytest.raises(dc.ResourceError, match="the direction of labels in 4 features"):
        directions.best_direction(points, y, PairPenalty(np.full(4, lam**0.5), a=np.zeros(4)))


def test_a_group_larger_than_the_number_of_columns_taken_at_first_is_taken_whole(monkeypatch):
    labels = np.array([0, 0, 0, 1])
    weights = GroupNorms(np.full(4, 0.1), labels, a=np.full(4, 0.1))
    y = np.sign(X[:, 1])
    expected = directions.best_direction(array_table(X), y, weights)
    assert np.all(expected[:3] != 0.0)
    monkeypatch.setattr(directions, "INITIAL_FEATURES", 2)
    monkeypatch.setattr(directions, "is_late", after(20))
    np.testing.assert_allclose(directions.best_direction(array_table(X), y, weights), expected, rtol=1e-5)


def after(calls):
    """Clock whose deadline passes after so many calls."""
    looks = iter(range(calls))
    return lambda *_: next(looks, None) is None
