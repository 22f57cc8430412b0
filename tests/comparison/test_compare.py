"""Comparison of methods: equivalent problems agree, disagreements are reported, and a failed method gets a row."""

import time
import warnings
from dataclasses import replace

import numpy as np
import pytest

import diffrac_cvx as dc
from diffrac_cvx import registry
from diffrac_cvx.comparison import ComparisonTask, Method, comparing, list_methods, worst_disagreement
from diffrac_cvx.registry import baseline_method

PLANTED = dc.datasets.make_planted(20, 3, noise=0.2, rng=0)
PENALTIES = {"none": (0.7, dc.Penalty()), "ridge": (0.6, dc.Penalty(a=0.3)), "l1": (0.5, dc.Penalty.l1(0.05))}


@pytest.fixture(scope="module", params=PENALTIES)
def case(request):
    """The default comparison."""
    nu, penalty = PENALTIES[request.param]
    return nu, penalty, dc.compare(PLANTED.X, PLANTED.y, nu=nu, penalty=penalty)


def add_method(monkeypatch, name, method):
    """Add a method to `compare` that is not in the registry."""
    monkeypatch.setattr(comparing, "list_methods", lambda: {**list_methods(), name: method})


def add_wrong(monkeypatch, of="low_rank", **changes):
    """Add a method "wrong" that changes the result of another in the given way."""
    right = list_methods()[of]

    def run(task):
        result = right.run(task) if of != "low_rank" else dc.low_rank(task.X, task.nu, task.penalty, tol=1e-6)
        return replace(result, **{name: change(getattr(result, name)) for name, change in changes.items()})

    add_method(monkeypatch, "wrong", replace(right, run=run, parts=("ridge", "l1")))


def up(value):
    return value + 0.1


def compared(*methods, X=PLANTED.X, y=PLANTED.y, **options):
    return dc.compare(X, y, methods=methods, **options)


# What is run, and what it says


def test_all_methods_agree_within_their_proved_gaps_on_the_scale_of_15(case):
    nu, penalty, comparison = case
    assert comparison.disagreements == ()
    assert not [row for row in comparison.rows if "Error" in row["status"]]
    assert "No disagreement" in str(comparison)
    optimum = dc.low_rank(PLANTED.X, nu, penalty, tol=1e-7)
    sharp = [one.bounds for one in comparison.method_results.values() if one.bounds and one.bounds.gap < 1e-3]
    assert len(sharp) >= (8 if penalty == dc.Penalty() else 4)  # of those that finish in time
    for bounds in sharp:
        assert bounds.lower <= optimum.upper + 1e-9
        assert bounds.upper >= optimum.lower - 1e-9
    lower = max(one.bounds.lower for one in comparison.method_results.values() if one.bounds)
    for name, row in comparison.table.iterrows():  # the gap of the labels is that of the sharpest bound
        proof = dc.certify_labels(PLANTED.X, comparison.labels[name], lower, nu=nu, penalty=penalty)
        assert row["label_gap"] == pytest.approx(proof.gap, abs=1e-12)


def test_by_default_all_that_fit_are_run_the_quick_ones_first_and_the_others_are_named_with_the_reason(case):
    _, penalty, comparison = case
    methods = list_methods()
    slow = {name for name, method in methods.items() if method.too_large(*PLANTED.X.shape)}
    other = {name for name, method in methods.items() if registry.explain_unsupported(method.parts, penalty)}
    assert slow >= {"correlation/SCS", "fista published"}
    assert ("multiclass/SCS" in other) == (penalty != dc.Penalty())
    assert ("constrained_alpha/CLARABEL" in other) == penalty.has_l1
    assert ("penalized_nu/SCS" in other) == penalty.has_l1
    assert set(comparison.method_results) == set(methods) - slow - other
    said = " ".join(note for note in comparison.notes if "skipped: " in note)
    assert all(name in said for name in slow | other)
    names = list(comparison.method_results)
    through_cvxpy = [name for name in names if "/" in name]
    assert names[0] == "low_rank"
    assert names == [name for name in names if "/" not in name] + through_cvxpy
    sides = [registry.RELAXATIONS[name.partition("/")[0]].side(*PLANTED.X.shape) for name in through_cvxpy]
    assert sides == sorted(sides)


def test_a_row_says_what_the_functions_say_and_a_baseline_has_labels_and_proves_nothing(case):
    comparison = case[2]
    rows = {row["method"]: row for row in comparison.rows}
    for name in ("low_rank", "lifted/SCS", "v_space_normalized/CLARABEL"):
        row, result = rows[name], comparison.results[name]
        for rule, rounded in dc.rounding.ROUNDINGS.items():
            assert row[f"error_{rule}"] == dc.metrics.clustering_error(PLANTED.y, rounded(result.F))
        by_chance = dc.rounding.goemans_williamson(result.F, 0)
        assert row["error_goemans_williamson"] == dc.metrics.clustering_error(PLANTED.y, by_chance)
        assert row["error"] == row["error_kmeans_centered"]
        assert row["eigenvalue_ratio"] == dc.metrics.eigenvalue_ratio(result.F)
        assert row["rank"] == dc.metrics.numerical_rank(result.F)
        assert (row["lower"], row["upper"], row["gap"]) == (result.lower, result.upper, result.gap)
        assert row["status"] == str(result.status)
    expected = dc.baselines.alternating_optimization(PLANTED.X, rng=0)
    np.testing.assert_array_equal(comparison.labels["alternating"], expected)
    np.testing.assert_array_equal(comparison.labels["k-means"], dc.baselines.kmeans_whitened(PLANTED.X, rng=0))
    alone = [name for name in rows if name not in comparison.results]
    assert alone == list(registry.BASELINES)
    for name in alone:
        assert np.isnan([rows[name]["value"], rows[name]["gap"], rows[name]["error_sign_leading"]]).all()
        assert rows[name]["error"] == dc.metrics.clustering_error(PLANTED.y, comparison.labels[name])


def test_every_rendering_holds_every_method(case):
    comparison = case[2]
    for text in (str(comparison), comparison._repr_html_()):
        assert all(name in text for name in comparison.method_results)
    assert comparison.table.index.tolist() == list(comparison.method_results)
    assert comparison.table["value"].dtype == float


@pytest.mark.parametrize(
    ("n", "d", "out", "within"),
    [
        (500, 3, ["penalized_nu/SCS", "lifted/SCS", "penalized_nu/CLARABEL"], ["v_space/CLARABEL", "v_space/SCS"]),
        (60, 3, ["penalized_nu/CLARABEL", "lifted/CLARABEL"], ["penalized_nu/SCS", "lifted/SCS"]),
        (10_000, 40, ["v_space/SCS", "v_space/CLARABEL", "fista published"], ["low_rank", "fista", "k-means"]),
        (10, 3, ["correlation/SCS", "fista published"], ["correlation/CLARABEL"]),
    ],
)
def test_what_would_take_minutes_is_left_out_of_the_default_and_can_be_asked_for(n, d, out, within):
    methods = list_methods()
    assert all("select by name" in methods[name].too_large(n, d) for name in out)
    assert not any(methods[name].too_large(n, d) for name in within)
    chosen, left_out = comparing.choose_methods(out, ComparisonTask(X=np.zeros((n, d))))
    assert (list(chosen), left_out) == (out, {})


def test_a_relaxation_without_a_solver_is_by_clarabel_if_it_is_small_and_by_scs_if_not():
    small, large = (ComparisonTask(X=np.zeros((n, 3))) for n in (41, 42))
    names = ["low_rank", "v_space", "penalized_nu", "correlation"]
    chosen = ["low_rank", "v_space/CLARABEL", "penalized_nu/CLARABEL", "correlation/CLARABEL"]
    assert list(comparing.choose_methods(names, small)[0]) == chosen
    chosen[2] = "penalized_nu/SCS"
    assert list(comparing.choose_methods([*names, "penalized_nu/SCS"], large)[0]) == chosen


def test_a_longer_time_limit_admits_the_methods_that_it_suffices_for():
    task = ComparisonTask(X=np.zeros((300, 3)))
    admitted = {limit: set(comparing.choose_methods(None, task, limit)[0]) for limit in (None, 1.0, 60.0, 1e4)}
    assert admitted[None] == admitted[1.0]
    assert admitted[60.0] - admitted[1.0] >= {"penalized_nu/SCS", "lifted/SCS", "constrained_alpha/SCS"}
    assert not admitted[1e4] & {"correlation/SCS", "fista published", "penalized_nu/CLARABEL"}


@pytest.mark.parametrize("penalty", [dc.Penalty(), dc.Penalty(ridge=0.3)], ids=["no ridge", "ridge"])
def test_seven_eight_eleven_and_fifteen_have_one_value_with_and_without_a_ridge(penalty):
    names = ["constrained_alpha", "penalized_nu", "lifted", "v_space"]
    found = compared(*names, nu=0.6, penalty=penalty)
    assert [row["problem"] for row in found.rows] == ["(7)", "(8)", "(11)", "(15)"]
    assert not found.disagreements
    optimum = dc.low_rank(PLANTED.X, 0.6, penalty, tol=1e-7)
    for one in found.method_results.values():
        assert one.bounds.lower - 1e-9 <= optimum.value <= one.bounds.upper + 1e-9
        assert one.bounds.gap < 1e-3


# A sample


def test_a_sample_is_the_comparison_of_these_rows_and_says_so_in_every_row():
    found = compared("low_rank", "k-means", sample=12, rng=3)
    assert found.sample.tolist() == sorted(np.random.default_rng(3).choice(20, 12, replace=False).tolist())
    alone = compared("low_rank", "k-means", X=PLANTED.X[found.sample], y=PLANTED.y[found.sample], rng=3)
    for row, other in zip(found.rows, alone.rows, strict=True):
        assert row["rows"] == "12 of 20"
        assert "rows" not in other
        expected = {**other, "rows": row["rows"], "seconds": row["seconds"]}
        assert row == pytest.approx(expected, abs=1e-9, nan_ok=True)
    assert "all numbers are those of a sample of 12 of 20 rows (seed 3)" in found.notes
    assert "12 of 20 rows" in str(found)
    assert len(found.labels["low_rank"]) == 12


def test_a_sample_of_at_least_all_rows_is_the_table():
    for sample in (20, 100):
        found = compared("low_rank", sample=sample)
        assert found.sample is None
        assert found.results["low_rank"].bracket == compared("low_rank").results["low_rank"].bracket


def test_a_sample_that_is_too_small_and_one_with_constraints_are_refused():
    with pytest.raises(dc.ParameterError, match="sample = 1 rows are too few"):
        compared("low_rank", sample=1)
    with pytest.raises(dc.ParameterError, match="constraints refer to all rows"):
        compared("low_rank", sample=10, constraints=dc.Constraints(must_link=[(0, 1)]))


def test_the_imbalance_of_eq_7_is_that_of_a_solution_or_the_one_given():
    methods = ["constrained_alpha/SCS", "low_rank"]
    own, given = compared(*methods, nu=0.5), compared(*methods, nu=0.5, alpha=0.3)
    assert list(own.method_results) == methods  # in the order in which they are asked for
    (lower, upper), optimum = own.method_results[methods[0]].bounds, own.results["low_rank"].value
    assert lower - 1e-9 <= optimum <= upper + 1e-9
    assert upper - lower < 1e-3
    assert given.method_results[methods[0]].bounds.lower == -np.inf
    assert given.method_results[methods[0]].bounds.upper > optimum
    fixed = dc.solve(dc.constrained_alpha(PLANTED.X, 0.3), "SCS")
    assert given.results[methods[0]].value == pytest.approx(fixed.value, abs=1e-9)
    assert np.isnan(compared(methods[0], alpha=0.3).rows[0]["label_gap"])


def test_two_classes_by_any_names_have_the_errors_of_their_signs_and_three_none():
    named, classes = np.where(PLANTED.y > 0, "oak", "elm"), np.arange(20) % 3
    by_name, by_sign, of_three = (compared("k-means", y=y) for y in (named, PLANTED.y, classes))
    for measure in ("error", "adjusted_rand"):
        assert by_name.rows[0][measure] == by_sign.rows[0][measure]
    expected = dc.metrics.adjusted_rand_score(classes, of_three.labels["k-means"])
    assert of_three.rows[0]["adjusted_rand"] == pytest.approx(expected)
    assert np.isnan(of_three.rows[0]["error"])
    assert "adjusted rand" in str(of_three)


# What does not agree


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"lower": up, "value": up, "upper": up}, "wrong certifies that the optimum of (15) is at least 0.1"),
        ({"lower": lambda _: 0.0, "value": lambda v: v / 2, "upper": up}, "below the lower bound"),
        ({"lower": lambda _: 0.0, "value": up}, "above its own upper bound"),
        ({"lower": lambda _: 0.0, "value": up}, "more than its own gap"),
        ({"lower": up}, "above its own upper bound"),
        ({"value": lambda v: v / 2}, "below its own lower bound"),
        ({"value": lambda _: np.nan}, "that is NaN"),
        (dict.fromkeys(("lower", "value", "upper"), lambda _: 0.5), "the labels of k-means have the objective"),
    ],
)
def test_a_wrong_method_is_named(monkeypatch, changes, words):
    add_wrong(monkeypatch, **changes)
    found = compared("low_rank", "fista", "k-means", "wrong")
    assert any(words in sentence for sentence in found.disagreements)
    assert all("wrong" in sentence for sentence in found.disagreements)
    assert "DISAGREEMENT" in str(found)
    assert all(np.isnan(row["label_gap"]) for row in found.rows)


def test_brackets_apart_are_named_once_for_each_pair_across_equivalent_problems(monkeypatch):
    add_wrong(monkeypatch, lower=up, value=up, upper=up)
    others = ["low_rank", "lifted/CLARABEL", "penalized_nu/SCS", "v_space_normalized/CLARABEL", "multiclass/SCS"]
    said = compared("wrong", *others).disagreements
    apart = [sentence for sentence in said if "a difference of 0.099" in sentence]  # rounded down
    assert len(apart) == len(others)
    assert all(any(name in sentence for sentence in apart) for name in others)
    assert all(sentence in apart or sentence.startswith("the labels of") for sentence in said)


@pytest.mark.parametrize(
    ("of", "penalty", "rival"),
    [
        ("constrained_alpha/SCS", dc.Penalty(), "low_rank"),
        ("constrained_alpha/SCS", dc.Penalty(), "constrained_alpha/SCS"),
        ("v_space_normalized/CLARABEL", dc.Penalty.l1(0.05), "v_space_normalized/SCS"),
        ("correlation/CLARABEL", dc.Penalty(), "correlation/CLARABEL"),
        ("multiclass/SCS", dc.Penalty(), "fista"),
    ],
)
def test_problems_that_are_not_15_are_held_to_each_other_too(monkeypatch, of, penalty, rival):
    add_wrong(monkeypatch, of, lower=lambda bound: bound + 1.0, value=lambda v: v + 1.0, upper=lambda b: b + 1.0)
    found = compared("wrong", rival, X=PLANTED.X[:15], y=None, penalty=penalty)
    assert any("a difference of" in sentence and rival in sentence for sentence in found.disagreements)


def test_with_an_l1_penalty_the_normalized_problem_bounds_the_other_from_above(monkeypatch):
    penalty = dc.Penalty.l1(0.05)
    right = compared("low_rank", "v_space_normalized/CLARABEL", penalty=penalty)
    bounds = right.method_results["v_space_normalized/CLARABEL"].bounds
    assert bounds.lower == -np.inf
    assert bounds.upper >= right.results["low_rank"].lower
    changes = dict.fromkeys(("lower", "value", "upper"), lambda _: -1.0)
    add_wrong(monkeypatch, "v_space_normalized/CLARABEL", **changes)
    assert compared("low_rank", "wrong", penalty=penalty).disagreements


def test_the_worst_disagreement_is_negative_where_all_agree_and_names_the_pair():
    right, oracle = dc.low_rank(PLANTED.X, tol=1e-6), dc.solve(dc.v_space(PLANTED.X), "CLARABEL")
    amount, pair = worst_disagreement({"right": right, "oracle": oracle}, {"right"})
    assert amount <= 1e-9
    assert pair in ("right | oracle", "oracle outside right")
    apart = replace(right, value=right.value + 0.1, lower=right.lower + 0.1, upper=right.upper + 0.1)
    assert worst_disagreement({"right": right, "apart": apart}, {"right"}) == (
        pytest.approx(0.1, abs=1e-3),
        "right | apart",
    )
    low = replace(right, value=right.value - 0.1, lower=right.lower - 0.2)  # compared with the references only
    assert worst_disagreement({"right": right, "low": low}, {"right"})[1] == "low outside right"
    assert worst_disagreement({"right": right, "low": low}, {"low"})[0] <= 1e-9


# What fails


def broken(task):
    raise MemoryError("a solver died\nsomewhere")


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (broken, "MemoryError: a solver died"),
        (lambda task: replace(dc.low_rank(task.X), factor=np.full((20, 1), np.nan)), "F is nan"),
        (lambda task: replace(dc.low_rank(task.X), factor=np.ones((5, 1))), "5 labels for 20 points"),
        (lambda task: replace(dc.low_rank(task.X), status=dc.Status.FAILED), "no solution"),
        (lambda task: np.zeros(20), "only -1 and"),
        (lambda task: dc.solve(dc.v_space(task.X), "SCS", memory_limit=1e-9), "ResourceError: v_space"),
        (lambda task: dc.solve(dc.v_space(task.X), "MOSEC"), "not installed"),
    ],
)
def test_a_method_that_fails_is_a_row_with_its_reason_and_the_others_go_on(monkeypatch, run, words):
    add_method(monkeypatch, "broken", Method("(15)", run))
    found = compared("broken", "low_rank")
    assert words in found.rows[0]["status"]
    assert "\n" not in found.rows[0]["status"]
    assert np.isnan([found.rows[0]["value"], found.rows[0]["error"], found.rows[0]["label_gap"]]).all()
    assert found.rows[1]["error"] == 0.0
    assert list(found.labels) == list(found.results) == ["low_rank"]
    assert words in str(found)


def test_a_warning_is_a_note_that_names_the_methods():
    X = PLANTED.X.copy()
    X[:, 1] = 1.0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        notes = dc.compare(X, methods=["low_rank", "fista"]).notes
    assert len(caught) == 1
    assert any(note.startswith("low_rank, fista: column [1] of X is constant") for note in notes)


# What is shown


def test_html_is_escaped(monkeypatch):
    add_method(monkeypatch, "<b>", Method("<i>", list_methods()["low_rank"].run))
    html = dc.compare(PLANTED.X, methods=["<b>"])._repr_html_()
    assert "<b>" not in html
    assert "<i>" not in html
    assert html.count("&lt;b&gt;") >= 4  # both tables and a note
    assert "http" not in html


# Progress


def test_progress_is_told_of_every_method_and_may_stop_one_and_the_rest():
    heard = []

    def progress(method, now):
        heard.append((method, now is None))
        return method == "fista published"

    found = compared("low_rank", "fista published", "k-means", callback=progress)
    assert list(found.method_results) == ["low_rank"]
    assert "stopped before fista published, k-means" in found.notes
    assert {("low_rank", True), ("low_rank", False), ("fista published", True)} == set(heard)
    late = compared("fista published", "k-means", callback=lambda method, now: now is not None)
    assert late.results["fista published"].status is dc.Status.STOPPED
    assert list(late.method_results) == ["fista published"]


@pytest.mark.parametrize("stops", [False, True])
def test_a_large_problem_by_cvxpy_reports_its_seconds_and_can_be_stopped(stops):
    heard = []

    def progress(_method, now):
        heard.append(now)
        return stops and now is not None

    X = dc.datasets.make_planted(130, 3, noise=0.3, rng=0).X
    found = compared("penalized_nu", "k-means", X=X, y=None, tol=0.1, callback=progress)
    assert list(found.method_results) == ["penalized_nu/SCS"] + ["k-means"] * (not stops)
    assert found.results["penalized_nu/SCS"].status is (dc.Status.STOPPED if stops else dc.Status.OPTIMAL)
    assert (heard[1].lower, heard[1].upper) == (0.0, 1.0)


@pytest.mark.slow
def test_a_limit_that_stops_scs_leaves_the_bounds_of_its_current_point():
    X = dc.datasets.make_planted(250, 3, noise=0.3, rng=0).X
    result = compared("penalized_nu", X=X, y=None, tol=1e-9, time_limit=8.0).results["penalized_nu/SCS"]
    assert result.status is dc.Status.USER_LIMIT
    assert result.gap < 0.1


def sleeping(X, *, rng):
    time.sleep(0.3)
    return np.sign(X[:, 0])


def test_a_limit_of_time_is_one_for_all_methods_and_all_values(monkeypatch):
    X = dc.datasets.make_planted(30, 3, noise=0.3, rng=0).X
    monkeypatch.setitem(registry.BASELINES, "slow", baseline_method(sleeping, "nothing"))
    found = dc.compare(X, methods=["slow", "low_rank", "alternating"], time_limit=0.1)
    assert "the time limit was reached before low_rank, alternating" in found.notes
    assert list(found.method_results) == ["slow"]
    path = dc.paths.lambda_path(X, np.geomspace(1e-4, 1e-2, 9), time_limit=1e-6)
    assert len(path.parameter) == len(path.value) == len(path.diagnostics) == 1
    assert path.parameter[0] == pytest.approx(1e-2)
