"""The penalty: its value, its weights as arrays, its multiples, and what is refused."""

import numpy as np
import pytest
from oracles import gamma

from diffrac_cvx.errors import ParameterError
from diffrac_cvx.problem.penalty import Penalty, ridge_of, weights_of

A, C = np.array([0.0, 0.3, 2.0]), np.array([0.5, 0.0, 0.1])
V = np.cov(np.random.default_rng(4).standard_normal((3, 9)))


def value(penalty):
    a, c = penalty.weights(3)
    return gamma(V, a, c)


@pytest.mark.parametrize("lam", [0.0, 0.04, 9.0])
def test_the_lambda_of_the_papers_experiments_multiplies_the_squared_l1_norm(lam):
    v = np.array([1.0, -2.0, 0.5])
    assert value(Penalty.l1(lam)) == pytest.approx(lam * np.abs(V).sum())
    a, c = Penalty.l1(lam).weights(3)
    assert gamma(np.outer(v, v), a, c) == pytest.approx(lam * np.abs(v).sum() ** 2)
    assert value(Penalty.l1(lam, a=A)) == pytest.approx(lam * np.abs(V).sum() + A**2 @ np.diag(V))


@pytest.mark.parametrize("scale", [0.0, 0.25, 3.0])
@pytest.mark.parametrize("weights", [(A, C), (0.4, 0.0), (0.0, 0.7)])
def test_a_multiple_of_a_penalty_multiplies_its_value(weights, scale):
    penalty = Penalty(*weights)
    assert value(penalty.times(scale)) == pytest.approx(scale * value(penalty))


@pytest.mark.parametrize(("c", "has"), [(0.0, False), (0.2, True), (C, True), (np.zeros(3), False)])
def test_a_single_weight_makes_an_l1_part(c, has):
    assert Penalty(A, c).has_l1 is has


def test_a_number_is_the_same_weight_for_every_feature_and_an_array_has_one_for_each():
    a, c = weights_of(Penalty(0.3, C), 3)
    np.testing.assert_array_equal(a, [0.3, 0.3, 0.3])
    np.testing.assert_array_equal(c, C)
    np.testing.assert_array_equal(ridge_of(Penalty(A), 3), A)


def test_weights_are_copied_and_cannot_be_written():
    given = C.copy()
    penalty = Penalty(c=given)
    given[:] = 7.0
    np.testing.assert_array_equal(penalty.weights(3)[1], C)
    with pytest.raises(ValueError, match="read-only"):
        penalty.c[0] = 1.0


BAD = [-0.1, np.nan, np.inf, 1.001e100, "0.1", None, 1j, np.ones((3, 1)), [0.1, -0.1], list("abc")]


@pytest.mark.parametrize("bad", BAD)
def test_a_weight_that_is_not_a_number_from_zero_on_is_refused(bad):
    for name in ("a", "c"):
        with pytest.raises(ParameterError, match=f"{name} = "):
            Penalty(**{name: bad})


def test_weights_up_to_a_hundred_digits_are_taken_and_whole_numbers_too():
    assert Penalty(1e100).a == 1e100
    assert Penalty(a=2, c=np.array([True, False])).weights(2)[1].tolist() == [1.0, 0.0]


@pytest.mark.parametrize("name", ["a", "c"])
def test_as_many_weights_as_features_are_needed(name):
    with pytest.raises(ParameterError, match=f"{name} has 3 weights for 4 features"):
        Penalty(**{name: np.ones(3)}).weights(4)


def test_what_is_no_penalty_is_refused_with_an_example():
    with pytest.raises(ParameterError, match=r"Penalty\(lam=0\.01\)"):
        weights_of(0.1, 3)


def test_an_l1_part_has_no_formulation_in_the_labels_alone():
    with pytest.raises(ParameterError, match="lifted or v_space"):
        ridge_of(Penalty(c=C), 3)
