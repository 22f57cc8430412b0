"""Cutting planes: bounds below all labels, inequalities on five points, and relaxations of merged points."""

from itertools import product

import numpy as np
import pytest
from oracles import labelings_values

import diffrac_cvx as dc
from diffrac_cvx.certificates.labels import LabelProblem
from diffrac_cvx.machine import deadlines
from diffrac_cvx.solvers.exact import cuts
from diffrac_cvx.solvers.exact.cuts import CutRelaxation, violated_cliques, violated_triangles


@pytest.mark.parametrize("n", [5, 7])
def test_one_inequality_on_all_points_proves_what_triangles_leave_open(n):
    """With n - 1 columns the objective is (1'y/n)^2 at least, and Y1 = 0 violates no triangle inequality."""
    X = np.random.default_rng(n).standard_normal((n, n - 1))
    best, reports = labelings_values(X)[1].min(), iter([None] * 40)
    zero, every_column = np.zeros(n - 1), np.ones(n - 1, dtype=bool)
    relaxation = CutRelaxation(LabelProblem(X, 1.0, zero, zero, np.ones(n), np.arange(n), np.ones(n), every_column))
    relaxation.solve(lambda: best - 1e-9, lambda _: best, lambda: next(reports, dc.Status.STOPPED))
    assert best == pytest.approx(1.0 / n**2)
    assert best - 1e-4 <= relaxation.lower <= best + 1e-12
    assert relaxation.parts[(n - 3) // 2].multipliers.max() > 1e-3


@pytest.mark.parametrize("q", [3, 5, 7])
def test_no_labels_violate_an_inequality_and_those_found_are_violated(q):
    rng = np.random.default_rng(q)
    F = rng.standard_normal((9, 4))
    F /= np.linalg.norm(F, axis=1)[:, None]
    Y, labels = F @ F.T, np.array(list(product((-1.0, 1.0), repeat=9)))
    if q == 3:
        (points, signs), worst = violated_triangles(Y, rng.permutation(9), 9, 1000)
    else:
        points, signs = violated_cliques(F, q, rng, 1000)
    assert len(points) > 0

    left = -sum(signs[:, i] * signs[:, j] * Y[points[:, i], points[:, j]] for i in range(q) for j in range(i))
    sums = np.abs(np.sum(signs * labels[:, points], axis=2))  # of an odd number of signs, at least 1
    assert np.all(left > (q - 1) / 2)
    assert sums.min() == 1
    assert np.max((q - sums**2) / 2) == (q - 1) / 2
    if q == 3:
        assert worst == pytest.approx(left.max() - 1.0, abs=1e-6)


@pytest.mark.parametrize("many", [0, 10**6], ids=["sparse", "dense"])
def test_violations_and_the_matrix_of_inequalities_are_those_of_their_rows(monkeypatch, many):
    monkeypatch.setattr(cuts, "MANY_PLACES", many)
    rng, n = np.random.default_rng(0), 8
    zero, every_column = np.zeros(2), np.ones(2, dtype=bool)
    X = rng.standard_normal((n, 2))
    relaxation = CutRelaxation(LabelProblem(X, 1.0, zero, zero, np.ones(n), np.arange(n), np.ones(n), every_column))
    triangles = np.array([[0, 3, 5], [5, 1, 3], [2, 6, 7]])
    relaxation.add(triangles, np.array([[1, -1, 1], [1, 1, 1], [-1, 1, 1]], dtype=np.int8))
    Y, g = rng.standard_normal((n, n)), rng.random(3)
    (rows,) = [part.rows() for part in relaxation.parts if len(part.multipliers)]
    T, left = np.zeros((n, n)), np.zeros(3)
    row = np.searchsorted(rows.ends, np.arange(len(rows.first)), side="right")
    np.add.at(T, (rows.first, rows.second), g[row] * rows.coefficients)
    np.add.at(left, row, rows.coefficients * (Y + Y.T)[rows.first, rows.second] / 2.0)
    np.testing.assert_allclose(relaxation.upper_matrix(g), T, atol=1e-15)
    np.testing.assert_allclose(relaxation.weighted_product(g, Y), (T + T.T) @ Y, atol=1e-14)
    np.testing.assert_allclose(relaxation.violations(np.triu(Y + Y.T) / 2.0), left - rows.right, atol=1e-14)


def test_violating_directions_enter_after_three_rounds_without_a_better_bound(monkeypatch):
    monkeypatch.setattr(cuts, "FIRST_RANK", 2)
    rng, n = np.random.default_rng(0), 60
    zero, every_column = np.zeros(3), np.ones(3, dtype=bool)
    X = rng.standard_normal((n, 3))
    relaxation = CutRelaxation(LabelProblem(X, 1.0, zero, zero, np.ones(n), np.arange(n), np.ones(n), every_column))
    whole, ranks = CutRelaxation.certify, []

    def certify(self):
        vectors = whole(self)[1]
        self.lower = 0.0
        return 0.0, vectors

    def report():
        ranks.append(relaxation.F.shape[1])
        return dc.Status.TIME_LIMIT if len(ranks) == 6 else None

    monkeypatch.setattr(CutRelaxation, "certify", certify)
    assert relaxation.solve(lambda: 5.0, lambda _: 5.0, report) is dc.Status.TIME_LIMIT
    assert len(set(ranks[:4])) == 1
    assert ranks[4] > ranks[3]


def test_cutting_planes_prove_at_the_root_what_needs_many_nodes_and_no_slower_clock_changes_that(
    monkeypatch, cuts_first
):
    X = dc.datasets.make_planted(60, 7, noise=0.5, rng=0).X
    found, seconds = dc.optimal_labels(X, ridge=0.1), deadlines.time.monotonic
    assert found.status is dc.Status.OPTIMAL
    assert found.n_cuts > 0
    assert found.n_nodes == 1
    assert found.upper - found.root_bound > 0.02
    assert found.hardness < 0.5
    assert dc.check_certificate(X, found.certificate).bracket.gap <= 1.01e-4
    assert "inequalities in" in str(found)
    monkeypatch.setattr(deadlines.time, "monotonic", lambda: 1000.0 * seconds())
    slow = dc.optimal_labels(X, ridge=0.1)
    assert (found.bracket, found.n_nodes, found.n_cuts) == (slow.bracket, slow.n_nodes, slow.n_cuts)
    np.testing.assert_array_equal(found.labels, slow.labels)


def test_branches_prove_what_branching_alone_closes():
    X = np.random.default_rng(0).standard_normal((10, 3))
    found = dc.optimal_labels(X)
    assert all(proof.signs is not None for proof in found.certificate.proofs)
    assert dc.check_certificate(X, found).lower == found.lower > 0.0
    assert dc.optimal_labels(X, certificate=False).certificate is None


def test_a_limit_of_time_and_a_callback_leave_valid_bounds(cuts_first):
    X = dc.datasets.make_planted(200, 10, noise=0.5, rng=0).X
    late = dc.optimal_labels(X, tol=1e-7, time_limit=0.3)
    assert late.status is dc.Status.TIME_LIMIT
    assert late.seconds < 2.3
    stopped = dc.optimal_labels(X, tol=1e-7, callback=lambda _bounds, _nodes, n_cuts: n_cuts > 0)
    assert stopped.status is dc.Status.STOPPED
    assert late.lower <= stopped.upper
    assert stopped.lower <= late.upper


def test_the_search_ends_with_valid_bounds_where_columns_are_too_nearly_collinear_for_cutting_planes(cuts_first):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12, 3))
    X[:, 2] = X[:, 0] + 1e-9 * rng.standard_normal(12)
    found = dc.optimal_labels(X)
    assert all(proof.rows is None for proof in found.certificate.proofs)
    assert found.gap < 1e-3  # what rounding leaves
    assert found.hardness == pytest.approx(3 * 4 / 24, rel=1e-2)


@pytest.mark.parametrize("method", ["proof that fails", "no time to certify"])
def test_cutting_planes_that_prove_nothing_give_way_to_branching(monkeypatch, cuts_first, method):
    X = dc.datasets.make_planted(30, 4, noise=0.5, rng=0).X
    best = dc.optimal_labels(X, ridge=0.1)
    if method == "proof that fails":
        monkeypatch.setattr(LabelProblem, "lower_bound", lambda *_: -np.inf)
    else:
        monkeypatch.setattr(cuts, "is_late", lambda *_: True)
    found = dc.optimal_labels(X, ridge=0.1, time_limit=60.0)
    assert all(proof.rows is None for proof in found.certificate.proofs)
    assert found.status is dc.Status.OPTIMAL
    assert found.upper == pytest.approx(best.upper, abs=1e-4)


@pytest.mark.parametrize("unit", [1e-90, 1e-12, 1e12, 1e90])
def test_labels_are_proved_optimal_in_any_units(unit):
    X = dc.datasets.make_planted(30, 3, noise=0.5, rng=0).X
    best, found = dc.optimal_labels(X), dc.optimal_labels(unit * X)
    assert found.status is dc.Status.OPTIMAL
    assert found.upper == pytest.approx(best.upper, abs=1e-9)


def test_tables_with_more_columns_than_points_have_a_certificate_too():
    X = np.random.default_rng(0).standard_normal((12, 40))
    found = dc.optimal_labels(X, ridge=3.0, time_limit=20.0)
    assert dc.check_certificate(X, found.certificate).bracket.gap <= 1.01e-4
    A = (X - X.mean(axis=0)).T @ (X - X.mean(axis=0)) / 12
    effective = np.trace(np.linalg.solve(A + 3.0 * np.eye(40), A))
    assert found.hardness == pytest.approx(effective * (effective + 1.0) / 24.0)
