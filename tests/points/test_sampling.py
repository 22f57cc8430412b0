"""Tables with many rows: streamed without a copy, solved on samples, certified on all rows."""

import pickle
import tracemalloc

import numpy as np
import pytest
from instances import assert_overlap
from posed import direction_problem

import diffrac_cvx as dc
from diffrac_cvx.certificates import checker
from diffrac_cvx.errors import DataError
from diffrac_cvx.points.reading import as_rows
from diffrac_cvx.solvers.factored import sampling, solver

RNG = np.random.default_rng(10)


def data(n=3000, d=5, noise=0.5):
    rng = np.random.default_rng([n, d])
    X = rng.standard_normal((n, d)) @ rng.standard_normal((d, d))
    X[:, 0] = np.sign(rng.standard_normal(n)) + noise * rng.standard_normal(n)
    return X + rng.standard_normal(d)


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
    for name, number in (("MIN_SAMPLE_ROWS", 20), ("ROWS_PER_SQUARE", 2)):
        monkeypatch.setattr(sampling, name, number)
    for module in (solver, checker):
        monkeypatch.setattr(module, "many_rows", lambda n, d: True)
    found = dc.low_rank(X, nu, penalty, tol=1e-5)
    assert dc.check_certificate(X, found).lower == found.lower
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


@pytest.mark.parametrize("nu", [1.0, 0.6])
def test_components_take_over_from_the_samples_and_say_what_is_proved(sample_small_tables, monkeypatch, nu):
    monkeypatch.setattr(sampling, "sampling_iterates", lambda *arguments, **options: iter(()))
    result = dc.low_rank(data(), nu, dc.Penalty(c=1.0), tol=1e-6)
    assert result.gap <= 1e-6
    assert str(result.components) == "V is diagonal, and every optimal V is certified to be"


@pytest.mark.parametrize("permuted", [0, 10_000])
def test_no_row_is_twice_in_a_sample(permuted, monkeypatch):
    monkeypatch.setattr(sampling, "MAX_PERMUTED_ROWS", permuted)
    X = RNG.standard_normal((60, 2))
    sample = sampling.draw_sample(direction_problem(as_rows(X), 1.0, dc.Penalty(lam=0.1)), 50).array()
    assert len({tuple(row) for row in sample}) == 50
