"""Overflow gives wide bounds or a clear error, and numbers that are not finite certify nothing."""

from itertools import islice, product

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from forms import quick_or_slow

import diffrac_cvx as dc
from diffrac_cvx.certificates import proof
from diffrac_cvx.points.ranges import in_range
from diffrac_cvx.solvers.factored import augmented_lagrangian

TALL = np.random.default_rng(0).standard_normal((12, 4))
WIDE = np.random.default_rng(0).standard_normal((4, 6))
ONE = np.array([1.0, 0.0, 0.0, 0.0])
TABLES = {
    "columns of 1e95": TALL * 1e95,
    "columns of 1e-95": TALL * 1e-95,
    "one column of 1e95": TALL * np.where(ONE, 1e95, 1.0),
    "columns from 1e-95 to 1e95": TALL * 10.0 ** np.linspace(-95.0, 95.0, 4),
    "few points": WIDE,
    "few points of 1e95": WIDE * 1e95,
}
PENALTIES = {
    "none": dc.Penalty(),
    "lam 0.1": dc.Penalty(lam=0.1),
    "lam 1e-150": dc.Penalty(lam=1e-150),
    "lam 1e30": dc.Penalty(lam=1e30),
    "ridge 1e-150": dc.Penalty(ridge=1e-150),
    "ridge 1e-30": dc.Penalty(ridge=1e-30),
    "ridge 1e30": dc.Penalty(ridge=1e30),
    "lam 1e-30, ridge 1e30": dc.Penalty(lam=1e-30, ridge=1e30),
}
ALTERNATING = (-1.0) ** np.arange(12)
FUNCTIONS = {
    "low_rank": lambda X, penalty: dc.low_rank(X, 0.5, penalty, max_iter=50, time_limit=5),
    "low_rank of sparse columns": lambda X, penalty: dc.low_rank(
        scipy.sparse.csr_array(X), 1.0, penalty, max_iter=50, time_limit=5
    ),
    "fista": lambda X, penalty: dc.fista(X, 1.0, penalty, max_iter=20, time_limit=5),
    "fista published": lambda X, penalty: dc.fista(X, 1.0, penalty, variant="published", max_iter=20, time_limit=5),
    "certify_v": lambda X, penalty: dc.certify_v(X, np.eye(X.shape[1]), 1.0, penalty),
    "certify_labels": lambda X, penalty: dc.certify_labels(X, ALTERNATING[: len(X)], 0.0, penalty=penalty),
    "certify_clusters": lambda X, penalty: dc.certify_clusters(X, np.arange(len(X)) % 3, 0.0, penalty=penalty),
    "find_components": lambda X, penalty: dc.find_components(X, np.eye(X.shape[1]), 1.0, penalty),
}


ALL_CASES = [*product(TABLES, PENALTIES, FUNCTIONS)]  # each table with every other penalty, in turn, by each function
QUICK = [case for i, case in enumerate(ALL_CASES) if (i + i // 8 + i // 64) % 2]


@pytest.mark.filterwarnings("ignore")
@quick_or_slow(("table", "penalty", "name"), ALL_CASES, QUICK)
def test_extreme_scales_give_a_bracket_or_an_error_in_words(table, penalty, name):
    try:
        found = FUNCTIONS[name](TABLES[table], PENALTIES[penalty])
    except (dc.DataError, dc.ParameterError):
        return
    if name != "find_components":
        upper = getattr(found, "upper", getattr(found, "objective", None))
        assert 0.0 <= found.lower <= upper
        assert np.isfinite(upper)


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [(0, 0), (2, 2), (2, 0)])
def test_a_matrix_that_is_not_finite_is_not_proved_positive(place, value):
    S = np.eye(3)
    S[place] = S[place[::-1]] = value
    assert proof.cholesky_or_none(np.eye(3)) is not None
    assert proof.cholesky_or_none(S) is None
    assert proof.lifted_cholesky(S, 0.0)[0] is None


def fail(message):
    def one_block_iterates(*arguments):
        yield from islice(made(*arguments), 3)
        raise message

    made = augmented_lagrangian.one_block_iterates
    return one_block_iterates


ERRORS = {
    "numpy": np.linalg.LinAlgError("Eigenvalues did not converge"),
    "scipy": ValueError("array must not contain infs or NaNs"),
    "overflow": OverflowError(34, "Numerical result out of range"),
}


@pytest.mark.parametrize("error", ERRORS)
def test_what_was_proved_before_numbers_left_the_range_is_returned(monkeypatch, error):
    monkeypatch.setattr(augmented_lagrangian, "one_block_iterates", fail(ERRORS[error]))
    found = dc.low_rank(TALL, ridge=0.1, tol=1e-15)
    assert found.status is dc.Status.OVERFLOW
    assert 0.0 < found.lower <= found.upper < 1.0
    assert "double precision; the bounds are valid" in str(found.status)


@pytest.mark.parametrize("function", [np.linalg.eigvalsh, scipy.linalg.eigvalsh], ids=["numpy", "scipy"])
def test_an_error_of_a_library_is_one_in_words(function):
    with pytest.raises(dc.DataError, match="range of double precision"):
        in_range()(function)(np.full((3, 3), np.nan))
    with pytest.raises(ValueError, match=r"square|0-dim|Last 2"):
        in_range()(function)(np.ones((3, 2)))
