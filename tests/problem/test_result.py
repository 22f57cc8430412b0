"""Result records: status keys, gaps, components as text, and fields."""

import pickle
import re

import numpy as np
import pytest
import scipy.sparse
from instances import result_of

from diffrac_cvx.problem.penalty import suggested_lam
from diffrac_cvx.problem.result import Components, Status

STATUS_KEYS = (
    "optimal closed_form max_iter time_limit user_limit out_of_memory stopped smoothed_gap stalled inaccurate "
    "relaxed invalid_bound overflow failed"
)


def test_every_status_has_a_stable_key_and_a_message():
    assert [status.value for status in Status] == STATUS_KEYS.split()
    assert len({status.message for status in Status}) == len(Status)
    for status in Status:
        assert status is Status(status.value) is Status[status.value.upper()] is pickle.loads(pickle.dumps(status))
        assert str(status) == f"{status}" == status.message
        assert re.fullmatch(r"\w.*[^.]", status.message)  # without a full stop: it stands in other sentences


@pytest.mark.parametrize(
    ("found", "proved", "words"),
    [
        ([0, 1, 2], None, "V is diagonal"),
        ([0, 1, 2], [0, 0, 1], "V is diagonal"),
        ([0, 1, 2], [0, 1, 2], "V is diagonal, and every optimal V is certified to be"),
        ([0, -1, 1], None, "V is diagonal except for features with c = 0"),
        ([0, 0, 0, 1], None, "V has 2 components, the largest with 3 features"),
        ([1, 1, 0, -1], [0, 0, 0, -1], "V has 2 components, the largest with 2 features"),
        (
            [0, 0, 1, 2],
            [0, 0, 0, 1],
            "V has 3 components, the largest with 2 features; "
            "every optimal V is certified to have 2 or more, each with at most 3 features",
        ),
    ],
)
def test_components_are_counted_in_words_with_what_is_proved(found, proved, words):
    assert str(Components(np.array(found), None if proved is None else np.array(proved))) == words


def test_a_field_may_be_made_when_it_is_first_read_and_is_then_kept():
    made = []
    result = result_of(factor=lambda: made.append(1) or np.ones((2, 1)), G=np.ones((4, 3)))
    assert "rank<=3" in repr(result)
    assert made == []
    assert result.F is result.F
    assert made == [1]
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(result)).F, np.ones((2, 1)))


def test_the_words_of_a_result_name_the_rank_of_its_factor_and_what_was_left_out():
    assert "rank<=2" in repr(result_of())
    assert "n_excluded" not in repr(result_of())
    assert "components" not in repr(result_of())
    words = repr(result_of(n_excluded=2, components=Components(np.arange(2))))
    assert "n_excluded=2" in words
    assert "components='V is diagonal'" in words
    assert result_of().V is None
    np.testing.assert_allclose(result_of(G=np.ones((2, 3))).V, np.full((2, 2), 3.0))


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csc_array])
def test_features_in_use_are_ranked_by_the_diagonal_of_v(form):
    result = result_of(G=form(np.diag([9.0, 0.0, 4.0, 0.04, 0.004]) ** 0.5))
    assert result.features().tolist() == [0, 2, 3]
    assert result.features(rtol=0.0).tolist() == [0, 2, 3, 4]
    assert result.features(rtol=0.01).tolist() == [0, 2]
    assert result.features(5).tolist() == [0, 2, 3]
    assert result.features(4).tolist() == [0, 2, 3]  # the last row is that of the offset
    assert result_of(G=form(np.diag([1.0, 0.5, 100.0]))).features(2).tolist() == [0, 1]


def test_the_weight_to_begin_with_is_that_of_the_law():
    assert suggested_lam(100, 1000, 0.3) == pytest.approx(0.0788, abs=1e-4)
    assert suggested_lam(400, 1000, 0.3) == pytest.approx(suggested_lam(100, 1000, 0.3) / 2)
    assert suggested_lam(60, 5000, 0.0) == 0.0
