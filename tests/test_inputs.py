"""What users pass in: refused in words, or read as the float64 matrix it is, and never modified."""

import numpy as np
import pandas as pd
import pytest

import diffrac_cvx as dc

RNG = np.random.default_rng(5)
X = RNG.standard_normal((24, 3))
X[:, 0] += 3 * np.repeat([1, -1], 12)
WITH_NAN = X.copy()
WITH_NAN[3, 1] = np.nan
WITH_INF = X.copy()
WITH_INF[0, 2] = -np.inf

TAKE_DATA = {
    "low_rank": dc.low_rank,
    "fista": dc.fista,
    "v_space": dc.v_space,
    "v_space_normalized": dc.v_space_normalized,
    "lifted": dc.lifted,
    "penalized_nu": dc.penalized_nu,
    "constrained_alpha": lambda data: dc.constrained_alpha(data, 0.5),
    "correlation": dc.correlation,
    "certify_v": lambda data: dc.certify_v(data, np.eye(3)),
    "certify_y": lambda data: dc.certify_y(data, np.ones((24, 1))),
    "certify_labels": lambda data: dc.certify_labels(data, np.ones(24), 0.0),
}
BAD_DATA = [
    (WITH_NAN, "nan at row 3, column 1"),
    (WITH_INF, "-inf at row 0, column 2"),
    (X[0], "reshape"),
    (X[None], "2-d"),
    (np.zeros((0, 3)), "empty"),
    (np.zeros((5, 0)), "empty"),
    (X[:1], "one row"),
    (X + 0j, "complex"),
    (X.astype(str), "numbers"),
    ([["a", 1.0], ["b", 2.0]], "numbers"),
    (1e150 * X, "rescale"),
]


@pytest.mark.parametrize("name", TAKE_DATA)
@pytest.mark.parametrize(("data", "message"), BAD_DATA, ids=[message for _, message in BAD_DATA])
def test_data_that_cannot_be_used_are_refused_in_words(name, data, message):
    with pytest.raises(dc.DataError, match=message):
        TAKE_DATA[name](data)


@pytest.mark.parametrize("solver", [dc.low_rank, dc.fista])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"nu": 1.5}, "nu = 1.5"),
        ({"nu": -0.1}, "nu = -0.1"),
        ({"nu": np.nan}, "nu = nan"),
        ({"nu": "1"}, "nu = '1'"),
        ({"tol": 0}, "tol = 0"),
        ({"tol": -1e-3}, "tol = -0.001"),
        ({"max_iter": 0}, "max_iter = 0"),
        ({"max_iter": 1.5}, "max_iter = 1.5"),
        ({"time_limit": 0.0}, "time_limit = 0"),
        ({"penalty": dc.Penalty(a=[1.0, 2.0])}, "a has 2 weights for 3 features"),
        ({"penalty": 0.1}, "penalty = 0.1"),
    ],
)
def test_a_parameter_outside_its_range_is_named_with_its_value(solver, options, message):
    with pytest.raises(dc.ParameterError, match=message):
        solver(X, **options)


@pytest.mark.parametrize(
    "weights", [{"a": -1.0}, {"c": [-0.5, 1.0]}, {"c": np.nan}, {"a": np.ones((2, 2))}, {"a": "x"}]
)
def test_a_penalty_needs_nonnegative_weights(weights):
    with pytest.raises(dc.ParameterError):
        dc.Penalty(**weights)


def as_fortran(data):
    return np.asfortranarray(data)


def read_only(data):
    copy = data.copy()
    copy.setflags(write=False)
    return copy


@pytest.mark.parametrize(
    "form", [as_fortran, read_only, pd.DataFrame, np.ndarray.tolist, np.float32, np.int64, np.bool_]
)
@pytest.mark.parametrize("solver", [dc.low_rank, dc.fista, lambda data: dc.solve(dc.v_space(data))])
def test_any_form_of_the_same_numbers_gives_the_float64_answer(form, solver):
    whole = (X > 0).astype(float)  # 0 and 1 are the same number in every type
    given = form(whole)
    before = np.array(given, copy=True)
    result = solver(given)
    np.testing.assert_array_equal(np.asarray(given), before)
    expected = solver(whole)
    assert result.value == expected.value
    np.testing.assert_array_equal(result.F, expected.F)


@pytest.mark.parametrize("penalty", [dc.Penalty(), dc.Penalty(c=0.2)])
def test_a_constant_column_is_named_and_changes_nothing(penalty):
    wide = np.column_stack([X, np.full(24, 1e8)])
    with pytest.warns(dc.DegenerateDataWarning) as warned:
        result = dc.low_rank(wide, penalty=penalty, tol=1e-7)
    assert [str(warning.message) for warning in warned] == ["columns [3] of X are constant and carry no information"]
    assert result.value == pytest.approx(dc.low_rank(X, penalty=penalty, tol=1e-7).value, abs=2e-7)


@pytest.mark.filterwarnings("ignore::diffrac_cvx.DegenerateDataWarning")
@pytest.mark.parametrize("nu", [0.5, 1.0])
@pytest.mark.parametrize("units", [[1e-8, 1.0, 1e8], [1e8, 1e-8, 1.0], [1e-8, 1e-8, 1e-8]])
def test_the_units_of_the_columns_do_not_matter_without_a_penalty(nu, units):
    value = dc.low_rank(X, nu, tol=1e-8).value
    assert dc.low_rank(X * units, nu, tol=1e-8).value == pytest.approx(value, abs=2e-8)
    assert dc.solve(dc.v_space(X * units, nu)).value == pytest.approx(value, abs=1e-6)


@pytest.mark.filterwarnings("ignore::diffrac_cvx.DegenerateDataWarning")
@pytest.mark.parametrize("solver", [dc.low_rank, dc.fista])
def test_duplicate_columns_and_rows_change_nothing_without_a_penalty(solver):
    value = solver(X, tol=1e-4).value
    assert solver(X[:, [0, 1, 2, 0]], tol=1e-4).value == pytest.approx(value, abs=1e-4)
    assert solver(np.vstack([X, X]), tol=1e-4).value == pytest.approx(value, abs=1e-4)


def test_more_dimensions_than_points_is_said_to_be_uninformative():
    with pytest.warns(dc.DegenerateDataWarning, match="every labelling is fitted exactly"):
        assert dc.low_rank(RNG.standard_normal((6, 9))).value == pytest.approx(0.0, abs=1e-5)
