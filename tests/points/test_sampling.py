"""Tables with many rows: streamed without a copy, solved on samples, certified on all rows."""

import pickle
import tracemalloc

import numpy as np
import pytest
from instances import assert_overlap
from posed import direction_problem

import diffrac_cvx as dc
from diffrac_cvx.certificates.direction_bounds import certify, certify_in_one_pass
from diffrac_cvx.errors import DataError, DegenerateDataWarning
from diffrac_cvx.points.checks import as_data
from diffrac_cvx.points.dense import DensePoints
from diffrac_cvx.points.factors import outer_product
from diffrac_cvx.points.linear_algebra import weighted_gram
from diffrac_cvx.points.reading import as_rows
from diffrac_cvx.solvers.factored import sampling
from diffrac_cvx.solvers.factored.augmented_lagrangian import Lagrangian

RNG = np.random.default_rng(10)
PENALTIES = {
    "none": dc.Penalty(),
    "l1": dc.Penalty.l1(1e-2),
    "ridge": dc.Penalty(a=0.3),
    "both, with zeros": dc.Penalty(a=np.array([0.0, 0.1, 0.2, 0.0, 0.5]), c=np.array([0.1, 0.0, 0.2, 0.05, 0.0])),
}
every_penalty = pytest.mark.parametrize("penalty", PENALTIES.values(), ids=PENALTIES)
every_nu = pytest.mark.parametrize("nu", [1.0, 0.6])


def data(n=3000, d=5, noise=0.5):
    rng = np.random.default_rng([n, d])
    X = rng.standard_normal((n, d)) @ rng.standard_normal((d, d))
    X[:, 0] = np.sign(rng.standard_normal(n)) + noise * rng.standard_normal(n)
    return X + rng.standard_normal(d)


@every_nu
@every_penalty
def test_rows_by_blocks_give_the_values_and_bounds_of_the_array(nu, penalty):
    dense, rows = (direction_problem(read(data()), nu, penalty) for read in (as_data, as_rows))
    U = np.random.default_rng(0).standard_normal((len(dense.c), len(dense.c)))
    V = outer_product(dense.coordinates.inverse_transform(U))
    one, other = (problem.rescale(problem.coordinates.transform_matrix(V)) for problem in (dense, rows))
    assert other.value == pytest.approx(one.value, abs=1e-12)
    q = rows.X.quadratic_forms(other.U)
    np.testing.assert_allclose(q, one.q, rtol=1e-10)
    _, bounds, M = certify_in_one_pass(rows, other.U, None)
    assert bounds.lower == pytest.approx(certify(dense, one).lower, abs=1e-9)
    assert bounds.upper == pytest.approx(one.value, abs=1e-12)
    np.testing.assert_allclose(M, weighted_gram(rows.X.array(), 1 / np.sqrt(q)), atol=1e-10)


def test_centering_in_blocks_is_as_accurate_as_in_one_piece_and_exact_where_a_column_is_constant():
    X = RNG.standard_normal((5001, 4)) * [1.0, 1e3, 1e-3, 1.0] + [1e7, 0.0, 5.0, 0.1]
    X[:, 3] = 0.1
    with pytest.warns(DegenerateDataWarning, match=r"\[3\]"):
        rows = as_rows(X)
    expected = as_data(X, warn=False)
    size = np.maximum(np.abs(expected).max(axis=0), 1e-300)
    np.testing.assert_allclose(rows.array() / size, expected / size, atol=1e-14)
    assert not rows.array()[:, 3].any()
    np.testing.assert_allclose(rows.second_moment(), expected.T @ expected / len(X), rtol=1e-9, atol=1e-9)


@every_nu
@every_penalty
def test_the_gradient_of_the_surrogate_is_that_of_all_rows(nu, penalty):
    rows = direction_problem(as_rows(data()), nu, penalty)
    U = rows.rescale(np.random.default_rng(0).standard_normal((len(rows.c), len(rows.c)))).U
    last, _, M = certify_in_one_pass(rows, U, None)
    sample = DensePoints(rows.X.take(np.arange(0, 3000, 3)))
    small = sampling.surrogate(rows, sample, last.U, M)
    expected = Lagrangian(rows).point(last.U).gradient
    gradient = Lagrangian(small).point(last.U).gradient
    np.testing.assert_allclose(gradient, expected, atol=1e-12)


WHOLE = RNG.integers(0, 5, (400, 3))
ODD = {
    "two points": np.array([[0.0, 1.0], [1.0, 3.0]]),
    "a constant column": np.column_stack([data(3001, 3), np.full(3001, 0.1)]),
    "a column twice": data(400, 3)[:, [0, 1, 2, 2]],
    "every row twice": np.repeat(data(200, 3), 2, axis=0),
    "outliers": data(400, 3) * np.where(np.arange(400) % 97 == 0, 1e6, 1.0)[:, None],
    "rows of zeros": np.concatenate([WHOLE - 1, 1 - WHOLE, np.zeros((100, 3))]),
    "two values": np.sign(data(400, 3)),
    "labels without noise": data(400, 3, noise=0.0),
    "units": data(400, 3) * [1e-30, 1.0, 1e30],
    "whole numbers": WHOLE,
}


@pytest.mark.filterwarnings("ignore::diffrac_cvx.errors.DegenerateDataWarning")
@pytest.mark.parametrize("nu", [1.0, 0.5])
@pytest.mark.parametrize("penalty", [dc.Penalty(), dc.Penalty.l1(0.05)], ids=["none", "l1"])
@pytest.mark.parametrize("X", ODD.values(), ids=ODD)
def test_odd_data_are_solved_by_samples_as_without(monkeypatch, X, penalty, nu):
    plain = dc.low_rank(X, nu, penalty, tol=1e-5)
    for name, number in (("MIN_ROWS", 2), ("MIN_SAMPLE_ROWS", 20), ("ROWS_PER_SQUARE", 2)):
        monkeypatch.setattr(sampling, name, number)
    monkeypatch.setattr(sampling, "many_rows", lambda n, d: True)
    found = dc.low_rank(X, nu, penalty, tol=1e-5)
    assert found.gap <= 1e-5
    assert_overlap(found, plain, 1e-10)
    assert np.isfinite(found.F).all()


def test_a_warm_start_is_certified_by_the_first_pass(sample_small_tables):
    X, penalty = data(), dc.Penalty.l1(1e-2)
    first = dc.low_rank(X, penalty=penalty, tol=1e-6)
    again = dc.low_rank(X, penalty=penalty, tol=1e-5, start=first)
    start = again.history[0]
    assert start.iteration == 0
    assert start.upper - start.lower <= 1e-3
    assert again.gap <= 1e-5


def test_F_is_made_when_it_is_read_and_not_from_a_table_that_has_changed(sample_small_tables):
    X = data()
    result, changed = (dc.low_rank(X, penalty=dc.Penalty.l1(1e-2), tol=1e-4) for _ in range(2))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(result)).F, result.F)
    X[:] = RNG.standard_normal(X.shape)
    with pytest.raises(DataError, match="changed"):
        _ = changed.F


def test_the_memory_is_that_of_the_table_and_not_of_copies():
    X = data(n=60_000, d=20)
    tracemalloc.start()
    result = dc.low_rank(X, penalty=dc.Penalty.l1(1e-2), tol=1e-3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert result.gap <= 1e-3
    assert peak <= 0.6 * X.nbytes


@every_nu
def test_components_take_over_from_the_samples_and_say_what_is_proved(sample_small_tables, monkeypatch, nu):
    monkeypatch.setattr(sampling, "sampling_iterates", lambda *arguments, **options: iter(()))
    result = dc.low_rank(data(), nu, dc.Penalty(c=1.0), tol=1e-6)
    assert result.gap <= 1e-6
    assert str(result.components) == "V is diagonal, and every optimal V is certified to be"


# Sizes of samples


def test_rows_are_many_where_samples_of_twenty_entries_each_are_few_beside_them():
    assert sampling.many_rows(40_000, 5)
    assert not sampling.many_rows(39_999, 5)
    assert sampling.many_rows(160_000, 63)
    assert not sampling.many_rows(160_000, 64)


@pytest.mark.parametrize("permuted", [0, 10_000])
def test_no_row_is_twice_in_a_sample(permuted, monkeypatch):
    monkeypatch.setattr(sampling, "MAX_PERMUTED_ROWS", permuted)
    X = RNG.standard_normal((60, 2))
    sample = sampling.draw_sample(direction_problem(as_rows(X), 1.0, dc.Penalty(lam=0.1)), 50).array()
    assert len({tuple(row) for row in sample}) == 50
