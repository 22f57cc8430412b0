"""Several methods on the same data: the equivalences hold, what does not agree is named, a failure is a row."""

import sys
from dataclasses import replace

import numpy as np
import pytest

import diffrac_cvx as dc
from diffrac_cvx import compare_methods
from diffrac_cvx.compare_methods import METHODS, Method

PLANTED = dc.datasets.make_planted(36, 3, noise=0.2, rng=0)
PENALTIES = {"none": (1.0, dc.Penalty()), "ridge": (0.6, dc.Penalty(a=0.3)), "l1": (0.5, dc.Penalty.l1(0.05))}


@pytest.fixture(scope="module", params=PENALTIES)
def comparison(request):
    nu, penalty = PENALTIES[request.param]
    return dc.compare(PLANTED.X, PLANTED.y, nu=nu, penalty=penalty)


def test_all_methods_agree_within_their_proved_gaps(comparison):
    assert comparison.disagreements == ()
    assert not [row for row in comparison.rows if "Error" in row["status"]]
    assert "No disagreement" in str(comparison)


def test_bounds_that_are_read_for_the_same_problem_are_close(comparison):
    bounds = [one.bounds for one in comparison.found.values() if one.bounds is not None]
    assert len(bounds) >= 5
    assert max(b.upper for b in bounds) - min(b.upper for b in bounds) < 1e-3


def test_a_row_says_what_the_functions_say(comparison):
    row = next(row for row in comparison.rows if row["method"] == "low_rank")
    result = comparison.results["low_rank"]
    for name, rounded in dc.rounding.ROUNDINGS.items():
        assert row[f"error_{name}"] == dc.metrics.clustering_error(PLANTED.y, rounded(result.F))
    assert row["eigenvalue_ratio"] == dc.metrics.eigenvalue_ratio(result.F)
    assert (row["lower"], row["upper"], row["gap"]) == (result.lower, result.upper, result.gap)
    assert 0 <= row["label_gap"] <= 1


def test_what_cannot_take_the_penalty_is_left_out_with_the_reason():
    notes = dc.compare(PLANTED.X, penalty=dc.Penalty(a=0.1, c=0.1), methods=["low_rank", "penalized_nu/SCS"]).notes
    assert notes == ("penalized_nu/SCS is left out: it takes no l1 penalty",)


def test_large_cones_are_left_out_of_the_default_and_can_be_asked_for():
    task = compare_methods.Task(np.zeros((500, 3)), 1.0, dc.Penalty(), 0.0, 1e-4, None, 0)
    assert "500" in METHODS["penalized_nu/SCS"].too_large(task.X)
    assert METHODS["lifted/SCS"].too_large(task.X)
    assert not METHODS["v_space/CLARABEL"].too_large(task.X)
    assert all(method.too_large(task.X) == "" for name, method in METHODS.items() if method.fast)


def wrong(task):
    result = dc.low_rank(task.X, task.nu, task.penalty)
    return replace(result, lower=result.lower + 0.1, upper=result.upper + 0.1)


def broken(task):
    raise MemoryError("a solver died\nsomewhere")


def test_a_wrong_method_is_named_with_every_one_that_it_contradicts(monkeypatch):
    monkeypatch.setitem(METHODS, "wrong", Method("(15)", wrong))
    found = dc.compare(PLANTED.X, methods=["low_rank", "fista", "wrong"])
    apart = [sentence for sentence in found.disagreements if "apart by 0.1" in sentence]
    assert len(apart) == 2
    assert all("wrong" in sentence for sentence in found.disagreements)
    assert "DISAGREEMENT" in str(found)


def test_a_method_that_fails_is_a_row_with_its_reason_and_the_others_go_on(monkeypatch):
    monkeypatch.setitem(METHODS, "broken", Method("(15)", broken))
    found = dc.compare(PLANTED.X, PLANTED.y, methods=["broken", "low_rank"])
    assert found.rows[0]["status"] == "MemoryError: a solver died"
    assert np.isnan(found.rows[0]["value"])
    assert found.rows[1]["error"] == 0.0
    assert "broken: MemoryError" in str(found)


def test_labels_of_rank_one_that_differ_are_noted(monkeypatch):
    def other(task):
        F = np.where(np.arange(len(task.X)) % 2, 1.0, -1.0)[:, None]
        return replace(dc.low_rank(task.X), F=F)

    clean = dc.datasets.make_planted(60, 3, rng=1)
    monkeypatch.setitem(METHODS, "other", Method("(15)", other))
    assert any("their labels differ" in note for note in dc.compare(clean.X, methods=["low_rank", "other"]).notes)


def test_agreement_is_one_on_the_diagonal_and_symmetric(comparison):
    agreement = comparison.agreement
    assert agreement.shape == (len(comparison.labels),) * 2
    np.testing.assert_allclose(np.diag(agreement), 1.0)
    np.testing.assert_allclose(agreement, agreement.T)


def test_the_table_has_a_row_for_each_method(comparison):
    table = comparison.table
    assert table.index.tolist() == list(comparison.found)
    assert table["gap"].dropna().min() >= -1e-9


def test_every_rendering_holds_every_method_and_html_is_escaped(comparison, monkeypatch):
    from rich.console import Console

    console = Console(width=200, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(comparison)
    for text in (str(comparison), comparison._repr_html_(), console.export_text()):
        assert all(name in text for name in comparison.found)
    monkeypatch.setitem(METHODS, "<b>", Method("(15)", broken))
    html = dc.compare(PLANTED.X, methods=["<b>"])._repr_html_()
    assert "<b>" not in html
    assert "&lt;b&gt;" in html
    assert "http" not in html


def test_memory_is_measured_in_a_process_of_its_own():
    row = dc.compare(PLANTED.X, methods=["low_rank"], memory=True).rows[0]
    assert 0 <= row["memory_MB"] < 1000
    assert row["gap"] <= 1e-4


def test_progress_is_told_of_every_method_and_may_stop_the_rest():
    heard = []

    def progress(method, now):
        heard.append((method, now is None))
        return method == "fista" and now is None

    found = dc.compare(PLANTED.X, methods=["low_rank", "fista", "k-means"], progress=progress)
    assert list(found.found) == ["low_rank"]
    assert found.notes == ("stopped before fista",)
    assert ("low_rank", True) in heard
    assert ("low_rank", False) in heard


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"methods": ["magic"]}, "'magic' is not known; there are low_rank, "),
        ({"y": [1, -1]}, "2 labels for 36 points"),
        ({"y": np.arange(36)}, "only -1 and"),
        ({"nu": 2.0}, "outside"),
        ({"alpha": -1.0}, "outside"),
        ({"tol": 0.0}, "greater than 0"),
    ],
)
def test_bad_input_is_refused_before_anything_runs(arguments, message):
    with pytest.raises(ValueError, match=message):
        dc.compare(PLANTED.X, **arguments)


def test_without_pandas_the_rows_are_there_and_the_table_says_how_to_get_it(monkeypatch, comparison):
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert comparison.rows
    with pytest.raises(ValueError, match="needs pandas: pip install"):
        _ = comparison.table
