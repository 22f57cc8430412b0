"""What a result says of itself: the width of its bracket, its components in words, its fields."""

import pickle

import numpy as np
import pytest

from diffrac_cvx.result import Bracket, Components, Result, Status


def result_of(**fields):
    given = {"value": 0.5, "lower": 0.2, "upper": 0.5, "F": np.eye(3, 2), "status": Status.OPTIMAL, "n_iter": 3}
    return Result(**{**given, "seconds": 0.1, "solver": "a solver", **fields})


def test_the_gap_is_the_width_of_the_bracket():
    assert Bracket(0.2, 0.5).gap == pytest.approx(0.3)
    assert result_of().gap == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("found", "proved", "words"),
    [
        ([0, 1, 2], None, "V is diagonal"),
        ([0, 1, 2], [0, 0, 1], "V is diagonal"),
        ([0, 1, 2], [0, 1, 2], "V is diagonal, and every optimal V is proved to be"),
        ([0, -1, 1], None, "V is diagonal but for features with c = 0"),
        ([0, 0, 0, 1], None, "V has 2 components, the largest of 3 features"),
        ([1, 1, 0, -1], [0, 0, 0, -1], "V has 2 components, the largest of 2 features"),
        (
            [0, 0, 1, 2],
            [0, 0, 0, 1],
            "V has 3 components, the largest of 2 features; "
            "every optimal V is proved to have 2, the largest of 3 at most",
        ),
    ],
)
def test_components_are_counted_in_words_with_what_is_proved(found, proved, words):
    assert str(Components(np.array(found), None if proved is None else np.array(proved))) == words


def test_a_field_may_be_made_when_it_is_first_read_and_is_then_kept():
    made = []
    result = result_of(F=lambda: made.append(1) or np.ones((2, 1)), G=np.ones((4, 3)))
    assert "rank<=3" in repr(result)
    assert made == []
    assert result.F is result.F
    assert made == [1]
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(result)).F, np.ones((2, 1)))
    assert not hasattr(Result, "F")


def test_the_words_of_a_result_name_the_rank_of_its_factor_and_what_was_left_out():
    assert "rank<=2" in repr(result_of())
    assert "left_out" not in repr(result_of())
    assert "components" not in repr(result_of())
    words = repr(result_of(left_out=2, components=Components(np.arange(2))))
    assert "left_out=2" in words
    assert "components='V is diagonal'" in words
    assert result_of().V is None
    np.testing.assert_allclose(result_of(G=np.ones((2, 3))).V, np.full((2, 2), 3.0))
