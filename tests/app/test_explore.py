"""Computations and views of the page, without a browser."""

import csv
import os
import re
import socket
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import marimo as mo
import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

import diffrac_cvx as dc
from diffrac_cvx.app.page import __main__ as launcher
from diffrac_cvx.app.page import computation, controls
from diffrac_cvx.app.page.computation import EXTRAS, Job, Outcome, Run, StatusLine, plan_extras, plan_search
from diffrac_cvx.app.page.controls import CONTROLS, hint
from diffrac_cvx.app.page.data import Data, NamedSource, PlantedSource, UploadedSource
from diffrac_cvx.app.page.marks import change_marks, draw_marks, place_points, points_in, read_marks, write_marks
from diffrac_cvx.app.page.pictures import draw_picture, list_remarks, make_picture
from diffrac_cvx.app.page.solve_choice import PageSetting, list_forms, plan_solves
from diffrac_cvx.app.page.summary import find_summary, summarize_run, summarize_search
from diffrac_cvx.app.page.tables import comparison_table, plane_of, rounding_table, table_figure
from diffrac_cvx.app.page.views import VIEWS, arrange, views_for
from diffrac_cvx.comparison.table import ReportTable
from diffrac_cvx.machine.processes import Call, CallResult, StoppedError, never_stop
from diffrac_cvx.registry import MAX_SIZE_ON_PAGE, SOLVERS

WITHOUT_START = ("source", "name", "file", "run", "automatic")  # without a recommended start
ROOT = Path(__file__).parents[2]
OF_TWO = [view.name for view in views_for(2)]
SMALL_SOURCE = PlantedSource(n=24, d=4, noise=0.2)
SETTING = PageSetting(nu=0.9, lam=0.01, ridge=0.1, alpha=0.1)
TABLE = "height,weight,species\n1.5,20,cat\n-1.7,25,dog\n1.4,8,cat\n-1.2,30,dog\n1.1,12,cat\n-0.9,14,dog\n"


def ignore(_):
    """Ignore intermediate outcomes and status lines."""


def do(call):
    return call.function(*call.arguments, **call.options)


def compute(source, setting, solves, worker, *, calls=None, stopped=never_stop, on_outcome=ignore, on_status=ignore):
    job = Job(Outcome(source, source.load(), setting), solves, calls or {})
    return job.compute(worker, stopped, on_outcome, on_status)


def compute_outcome(
    source, worker, *, forms=("(15)",), solvers=("low_rank", "fista"), extras=tuple(EXTRAS), setting=SETTING
):
    data = source.load()
    solves = plan_solves(data, setting, forms, solvers)
    return compute(source, setting, solves, worker, calls=plan_extras(data, setting, solves, extras))


@pytest.fixture(scope="module")
def outcome(worker):
    return compute_outcome(SMALL_SOURCE, worker)


@pytest.fixture
def coarse(monkeypatch):
    """Save figures at a low resolution, and close them afterwards."""
    save = plt.Figure.savefig
    monkeypatch.setattr(
        plt.Figure, "savefig", lambda self, file, dpi=None, **kwargs: save(self, file, dpi=20, **kwargs)
    )
    yield
    plt.close("all")


# Data


def test_data_are_those_of_the_package():
    made = dc.datasets.make_planted(24, 4, 2, 0.1, 0.2, rng=3)
    data = PlantedSource(24, 4, 2, 0.1, 0.2, 3).load()
    np.testing.assert_array_equal(data.X, made.X)
    np.testing.assert_array_equal(data.y, made.y)
    data = NamedSource("heart").load()
    np.testing.assert_array_equal(data.X, dc.datasets.load("heart", scaling="standardize")[0])
    assert data.summary == "heart: 270 points, 13 features, 2 reference classes: -1 (150), 1 (120). "


def test_a_table_is_read_with_labels_of_text_or_none_and_with_missing_values_dropped_or_replaced():
    data = UploadedSource(TABLE.encode(), "mine.csv", "species", scaling="none").load()
    np.testing.assert_array_equal(data.y, [-1, 1, -1, 1, -1, 1])
    assert data.names == ("height", "weight")
    assert list(UploadedSource(TABLE.encode(), "mine.csv").frame) == ["height", "weight", "species"]
    data = UploadedSource(TABLE.encode(), "mine.csv", drop=["species", "weight"]).load()
    assert data.y is None
    assert data.X.shape == (6, 1)
    np.testing.assert_allclose([data.X.mean(), data.X.std()], [0, 1], atol=1e-12)
    text = TABLE.replace("20", "").encode()
    sizes = [len(UploadedSource(text, "mine.csv", "species", missing=how).load().X) for how in ("drop", "mean")]
    assert sizes == [5, 6]


@pytest.mark.parametrize(
    ("text", "said", "control"),
    [
        ("a,b\n1,2\n3,oops\n", r"column 'b' contains text: 'oops' in row 1 of the data \(counted from 0\)", "columns"),
        ("a,b\n1,2\n3,4\n5,\n", r"the first missing value is in row 2 of the data .*, column 'b'", "missing values"),
        ("a,b\n1,2\ninf,4\n", r"column 'a' is infinite in row 1 of the data", ""),
        ("a,b\n1,2\n3,4,5\n", "cannot be read", ""),
    ],
)
def test_what_is_wrong_with_a_table_is_said_with_row_column_and_the_control_that_helps(text, said, control):
    with pytest.raises(dc.DataError, match=said) as error:
        UploadedSource(text.encode(), "mine.csv").load()
    assert "--" not in str(error.value) + hint(error.value), "the page has no command line"
    assert not control or hint(error.value) == f" (see the controls: {control})"
    assert hint(dc.ParameterError("nu = 7 is outside [0, 1]")) == ""


# What is solved


def test_every_offered_solve_is_what_its_python_says_and_relaxations_of_one_problem_agree():
    data = PlantedSource(n=10, d=2, noise=0.3).load()
    setting = PageSetting(nu=0.8, ridge=0.2, alpha=0.3, tol=1e-3)
    names = {"dc": dc, "X": data.X, "nu": 0.8, "alpha": 0.3, "penalty": setting.penalty, "tol": setting.tol}
    forms = [form for form in list_forms() if form != "(24)"]  # which takes a minute
    solved = {}
    for solve in plan_solves(data, setting, forms, list(SOLVERS)):
        if solve.call is not None:
            found = solved[solve.name] = do(solve.call)
            assert found.value == pytest.approx(eval(solve.code, names).value, abs=1e-12), solve.name
    brackets = [result for name, result in solved.items() if name.startswith(("(15)", "(8)", "(11)"))]
    assert max(result.lower for result in brackets) <= min(result.upper for result in brackets) + 1e-9
    assert len(brackets) == 9


@pytest.mark.parametrize(
    ("n", "d", "setting", "form", "solver", "said"),
    [
        (MAX_SIZE_ON_PAGE + 2, 3, PageSetting(), "(8)", "SCS", f"at most {MAX_SIZE_ON_PAGE} points"),
        (MAX_SIZE_ON_PAGE + 2, 3, PageSetting(), "(11)", "SCS", f"at most {MAX_SIZE_ON_PAGE} points"),
        (100, 3, PageSetting(), "(7)", "CLARABEL", "at most 60 rows"),
        (20, 3, PageSetting(lam=0.1), "(8)", "SCS", "no l1 penalty"),
        (300, 80, PageSetting(), "(15)", "CLARABEL", "at most 60 rows"),
        (20, 3, PageSetting(), "(21)", "fista", "needs SCS or CLARABEL"),
        (100_000, 2, PageSetting(), "(15)", "CLARABEL", "CLARABEL too long for 100000 points in 2 features"),
        (100_000, 4, PageSetting(), "(21)", "SCS", "SCS too long for 100000 points"),
        (
            1000,
            60,
            PageSetting(),
            "(15)",
            "fista published",
            "an iteration takes 3816000 operations, more than 1000000",
        ),
    ],
)
def test_what_is_not_offered_says_why(n, d, setting, form, solver, said):
    (solve,) = plan_solves(PlantedSource(n, d).load(), setting, [form], [solver])
    assert solve.call is None
    assert said in solve.refusal


def test_relaxations_that_would_fit_are_offered():
    solves = plan_solves(PlantedSource(MAX_SIZE_ON_PAGE, 3).load(), PageSetting(ridge=0.0), list_forms(), ["SCS"])
    assert all(solve.call is not None for solve in solves)


def test_every_control_says_in_plain_words_what_it_does_and_where_to_start():
    panel = "".join((ROOT / f"diffrac_cvx/app/page/{name}.py").read_text() for name in ("controls", "notebook"))
    for name, (label, meaning) in CONTROLS.items():
        assert label
        assert name == "source" or panel.count(f'"{name}"') > 1, f"{name} is not in the panel"
        assert not re.search(r"[Ss]ection|Eq\.|Table \d|\|\||\^", label + meaning), name
        assert name in WITHOUT_START or re.search(r"[Ss]tart (at|with)", meaning), name


# The address


class Parameters(dict):
    """Stand-in for the query parameters of marimo."""

    def get_all(self, name):
        value = self.get(name, [])
        return value if isinstance(value, list) else [value]

    def remove(self, name):
        del self[name]


@pytest.fixture
def parameters(monkeypatch):
    held = Parameters()
    monkeypatch.setattr(controls.mo, "query_params", lambda: held)
    return held


def state_of(given):
    """Return the initial values of all controls of simulated data for an address."""
    groups = [controls.elements(kind, given) for kind in ("planted", "parameters", "solving")]
    one = {name: controls.element(name, given).value for name in ("source", "rounding")}
    return one | {name: value for group in groups for name, value in group.value.items()}


def test_an_empty_address_gives_the_usual_values_and_these_are_not_written(parameters):
    state = state_of(controls.read_address())
    assert state == {name: controls.DEFAULTS[name] for name in state}
    controls.write_address(state, controls.DEFAULTS)
    assert parameters == {}


def test_the_address_gives_back_every_control(parameters):
    state = state_of({})
    changed = {
        "n": 200, "noise": 0.55, "nu": 0.35, "lam": 0.02, "ridge": 3.0, "tol": 1e-3, "forms": ["(15)", "section 4"],
        "n_clusters": 5, "strategy": "splits", "solvers": ["SCS"], "extras": [], "rounding": "sign_leading",
        "source": "known",
    }  # fmt: skip
    controls.write_address({**state, **changed}, controls.DEFAULTS)
    assert set(parameters) == set(changed)
    assert state_of(controls.read_address()) == {**state, **changed}
    controls.write_address(state, controls.DEFAULTS)
    assert parameters == {}


@pytest.mark.parametrize(
    ("name", "value"),
    [("n", "many"), ("nu", "7"), ("lam", "nan"), ("forms", "(99)"), ("tol", "1"), ("source", "?"), ("n", None)],
)
def test_an_address_that_says_nonsense_is_not_followed(name, value):
    state = state_of({name: [] if value is None else [value]})
    assert state == {one: controls.DEFAULTS[one] if one != "forms" or name != "forms" else [] for one in state}


# The answer


def answer_of(X, setting=SETTING, labels=None):
    classes = () if labels is None else tuple(np.unique(labels))
    data = Data(X, tuple(f"x{j}" for j in range(X.shape[1])), labels, classes, np.arange(len(X)))
    (solve,) = plan_solves(data, setting, ["(15)"], ["low_rank"])
    run = Run(solve, do(solve.call))
    return summarize_run(data, setting, run, "kmeans_centered"), run


def test_the_answer_says_sizes_cost_proof_and_what_counts(outcome):
    answer = find_summary(outcome, "", "kmeans_centered")
    data, text = outcome.data, " ".join(answer.sentences)
    labels = make_picture("projection", outcome).names["labels"]
    result = outcome.runs[0].result
    proof = dc.certify_labels(data.X, labels, result, nu=SETTING.nu, penalty=SETTING.penalty)
    assert answer.diagnostics == ()
    assert f"of {np.sum(labels < 0)} and {np.sum(labels > 0)} points" in text
    cost = float(re.search(r"Cost of this split: (\S+) ", text)[1])
    assert 0 <= cost - proof.objective <= 1e-3
    lower = float(re.search(r"costs less than (\S+)\.", text)[1])
    assert 0 <= proof.lower - lower <= 1e-3
    largest = np.argmax(np.abs(proof.v * data.X.std(axis=0)))
    assert f"important features: x{largest}" in text
    assert f"{np.sum(labels == data.y)} of 24 points agree" in text
    assert find_summary(Outcome(SMALL_SOURCE, data, SETTING), "", "kmeans_centered") is None


def test_what_counts_does_not_depend_on_the_units():
    made = dc.datasets.make_planted(60, 3, noise=0.2, rng=1)
    rotated = made.X @ np.array([[1.0, 0.3, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    free = PageSetting(ridge=0.0)
    first, second = (answer_of(rotated * units, free)[0] for units in (1.0, np.array([1e-3, 1.0, 1e3])))
    terms = [[text for text in one.sentences if "important features" in text] for one in (first, second)]
    assert terms[0] == terms[1]


@pytest.mark.filterwarnings("ignore::diffrac_cvx.DegenerateDataWarning")
@pytest.mark.parametrize(
    ("X", "setting", "kind"),
    [
        (np.ones((20, 2)), PageSetting(), "constant"),
        (np.random.default_rng(0).standard_normal((40, 2)), PageSetting(nu=0.0), "no preference"),
        (np.random.default_rng(0).standard_normal((40, 2)), PageSetting(lam=1e5), "no gain"),
        (np.random.default_rng(0).standard_normal((12, 11)), PageSetting(ridge=0.0), "too few points"),
        (np.append(np.zeros(59), 50.0)[:, None] + 0.01 * np.arange(60)[:, None], PageSetting(), "few points"),
    ],
)
def test_what_is_no_answer_is_said_first_with_what_to_change(X, setting, kind):
    answer, _ = answer_of(X, setting)
    assert kind in [reason.code for reason in answer.diagnostics]
    assert answer.html.startswith('<div class="doubts">')
    assert all(reason.remedy in answer.html for reason in answer.diagnostics)


def test_a_bound_of_another_problem_is_not_claimed_for_a_split(worker):
    outcome = compute_outcome(SMALL_SOURCE, worker, forms=["(21)"], solvers=["CLARABEL"], extras=())
    answer = find_summary(outcome, "", "kmeans_centered")
    assert "Certified" not in " ".join(answer.sentences)
    assert "gives no bound for this split" in " ".join(answer.sentences)


def test_known_groups_of_any_number_are_compared():
    rng = np.random.default_rng(0)
    labels = np.repeat(["a", "b", "c"], 20)
    X = rng.standard_normal((60, 2)) * 0.1 + np.repeat([-1.0, 1.0, 1.1], 20)[:, None]
    answer, _ = answer_of(X, labels=labels)
    rows = {row[0]: set(row[1:]) for row in answer.groups.rows}
    assert rows == {name: {0, 20} for name in "abc"}
    expected = adjusted_rand_score(labels, np.repeat([0, 1, 1], 20))
    assert f"adjusted Rand index {expected:.2f}" in " ".join(answer.sentences)


def test_the_clusters_are_saved_with_the_numbers_of_their_rows(worker):
    source = UploadedSource(b"a,b,kind\n1,2,x\n3,,x\n5,-6,y\n-7,9,y\n", "mine.csv", "kind", missing="drop")
    answer = find_summary(compute_outcome(source, worker, extras=()), "", "kmeans_centered")
    head, *rows = csv.reader(answer.clusters.decode().splitlines())
    assert head == ["row", "cluster", "score", "known_group"]
    assert [row[0] for row in rows] == ["0", "2", "3"]
    assert {row[1] for row in rows} <= {"0", "1"}
    assert [row[3] for row in rows] == ["x", "y", "y"]


# More than two clusters

THREE = "height,weight,kind\n" + "".join(
    f"{5 * (k == 1) + 0.1 * (i % 5)},{5 * (k == 2) + 0.1 * (i % 3)},kind {k}\n" for i in range(12) for k in range(3)
)


@pytest.fixture(scope="module", params=["together", "splits"])
def three(request, worker):
    setting = PageSetting(tol=1e-3, n_clusters=3, strategy=request.param)
    table = UploadedSource(THREE.encode(), "mine.csv", "kind")
    return compute_outcome(table, worker, solvers=["low_rank"], extras=("comparison",), setting=setting)


def test_three_clusters_are_answered_with_their_sizes_their_cost_and_what_is_proved(three):
    answer, data = find_summary(three, "", "kmeans_centered"), three.data
    model = three.extras["clusters"]
    proof = dc.certify_clusters(data.X, model.labels_, three.runs[0].result, 3, penalty=three.setting.penalty)
    text = " ".join(answer.sentences)
    assert answer.diagnostics == ()
    assert "3 clusters of 12, 12 and 12 points." in text
    assert "adjusted Rand index 1.00 (1: identical, about 0: chance level)." in text
    cost = float(re.search(r"Cost of these clusters: (\S+) ", text)[1])
    assert 0 <= cost - proof.objective <= 1e-3
    lower = float(re.search(r"no 3 clusters of these points cost less than (\S+)\.$", answer.sentences[2])[1])
    assert proof.lower - 2e-3 <= lower <= proof.objective
    assert {row[0]: sorted(row[1:]) for row in answer.groups.rows} == {f"kind {k}": [0, 0, 12] for k in range(3)}
    assert answer.groups.header == ("reference class", "cluster 0", "cluster 1", "cluster 2")


def test_three_clusters_are_saved_each_point_with_its_scores(three):
    head, *rows = csv.reader(find_summary(three, "", "kmeans_centered").clusters.decode().splitlines())
    assert head == ["row", "cluster", "score_0", "score_1", "score_2", "margin", "known_group"]
    assert [row[0] for row in rows] == [str(i) for i in range(36)]
    assert [int(row[1]) for row in rows] == [int(np.argmax([float(score) for score in row[2:5]])) for row in rows]
    assert [row[6] for row in rows[:3]] == ["kind 0", "kind 1", "kind 2"]


@pytest.mark.parametrize("name", ["clusters_found", "known_groups", "cluster_table"])
def test_the_python_of_three_clusters_runs_as_it_stands_and_draws_the_same(name, three, tmp_path, monkeypatch, coarse):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.csv").write_text(THREE)
    view = make_picture(name, three)
    found = {}
    exec(compile(view.code, f"{name}.py", "exec"), found)
    assert (tmp_path / f"{name}.pdf").read_bytes().startswith(b"%PDF")
    same = view.execute()
    if view.view.is_table:
        assert same["table"].rows == found["table"].rows
        assert [row[:3] for row in same["table"].rows] == [(k, 12, "33.3 %") for k in range(3)]
        return
    mine, theirs = same["figure"].axes[0], found["figure"].axes[0]
    assert len(mine.lines) == 3
    for a, b in zip(mine.lines, theirs.lines, strict=True):
        assert (a.get_label(), a.get_color()) == (b.get_label(), b.get_color())
        np.testing.assert_allclose(a.get_xydata(), b.get_xydata(), atol=1e-9)
    assert "3 clusters by" in view.caption


def test_the_views_of_two_clusters_and_of_more_do_not_stand_side_by_side(three):
    many, two = ([view.name for view in views_for(k)] for k in (3, 2))
    assert {"clusters_found", "cluster_table", "spectra"} <= set(many)
    assert not {"projection", "roundings", "comparison"} & set(many)
    assert not {"clusters_found", "known_groups", "cluster_table"} & set(two)
    held = dict.fromkeys([*reversed(many), *two], "picture")
    assert list(arrange(held, "labels", 3)) == ["cluster_table", "clusters_found", "known_groups"]
    assert set(three.extras) == {"clusters"}, "the comparison is one of splits in two"


def test_why_there_are_no_clusters_is_said(worker):
    setting, table = PageSetting(n_clusters=12), UploadedSource(TABLE.encode(), "mine.csv", "species")
    outcome = compute_outcome(table, worker, solvers=["low_rank"], extras=(), setting=setting)
    answer = find_summary(outcome, "", "kmeans_centered")
    assert answer.sentences == ("n_clusters = 12 is more than the 6 points; reduce n_clusters",)
    assert answer.clusters == b""
    assert make_picture("clusters_found", outcome).message == answer.sentences[0]
    assert find_summary(replace(outcome, extras={}), "", "kmeans_centered") is None


def test_known_groups_are_shown_only_where_there_are_some(worker):
    table = UploadedSource(TABLE.encode(), "mine.csv", drop=["species"])
    outcome = compute_outcome(table, worker, solvers=["low_rank"], extras=(), setting=PageSetting(n_clusters=3))
    assert "no reference labels" in make_picture("known_groups", outcome).message
    assert draw_picture("clusters_found", outcome, "", "kmeans_centered").message == ""


def test_the_plane_shows_clusters_on_a_line_as_a_line():
    X = np.repeat([0.0, 1.0, 5.0], 4)[:, None] + 0.01 * np.arange(12)[:, None]
    model = dc.DiffracClustering(n_clusters=3, ridge=0.0, random_state=0).fit(X)
    plane = plane_of(model, X)
    assert plane.shape == (12, 2)
    assert abs(np.corrcoef(plane[:, 0], X[:, 0])[0, 1]) > 1 - 1e-12
    np.testing.assert_array_equal(plane[:, 1], 0.0)


# Jobs


def test_a_process_that_dies_is_a_sentence_on_the_page(worker):
    solve = plan_solves(SMALL_SOURCE.load(), PageSetting(), ["(15)"], ["low_rank"])[0]
    dying = replace(solve, call=Call(os._exit, (3,)))
    outcome = compute(SMALL_SOURCE, PageSetting(), [dying, solve], worker)
    assert "the process died: exit code 3" in outcome.runs[0].message
    assert outcome.runs[1].result is not None


def test_the_outcome_grows_and_the_lines_count(worker):
    grown, lines = [], []
    solves = plan_solves(SMALL_SOURCE.load(), SETTING, ["(15)", "(21)"], ["low_rank", "fista"])
    compute(SMALL_SOURCE, SETTING, solves, worker, on_outcome=grown.append, on_status=lines.append)
    assert [len(outcome.runs) for outcome in grown] == [1, 2, 3]
    assert grown[-1].runs[2].message.startswith("(21) needs SCS or CLARABEL")
    assert str(lines[-1]).startswith("done after")
    assert "3 of 3 computed" in str(lines[-1])


def test_a_stopped_job_keeps_what_it_has(worker):
    lines, outcomes = [], []
    solves = plan_solves(SMALL_SOURCE.load(), SETTING, ["(15)"], ["low_rank", "fista", "CLARABEL"])
    outcome = compute(
        SMALL_SOURCE,
        SETTING,
        solves,
        worker,
        stopped=lambda: bool(outcomes),
        on_outcome=outcomes.append,
        on_status=lines.append,
    )
    assert list(outcome.solved) == ["(15) low_rank"]
    assert str(lines[-1]).startswith("stopped after")


def test_a_job_stopped_in_its_last_solve_says_so_and_keeps_the_bracket(worker):
    source, lines = PlantedSource(400, 30, noise=0.5), []
    solves = plan_solves(source.load(), PageSetting(tol=1e-9), ["(15)"], ["fista published"])
    outcome = compute(
        source, SETTING, solves, worker, stopped=lambda: any(line.progress for line in lines), on_status=lines.append
    )
    assert lines[-1].state == "stopped"
    assert outcome.runs[0].result.status is dc.Status.STOPPED


def test_a_solve_that_is_stopped_before_it_answers_keeps_its_last_bracket():
    def stop(call, *, stopped, callback, seconds=None):
        callback(dc.Progress(7, 0.5, 0.125, 0.5))
        raise StoppedError

    lines, outcomes = [], []
    solves = plan_solves(SMALL_SOURCE.load(), SETTING, ["(15)"], ["fista", "low_rank"])
    outcome = compute(
        SMALL_SOURCE,
        SETTING,
        solves,
        SimpleNamespace(call=stop),
        stopped=lambda: True,
        on_outcome=outcomes.append,
        on_status=lines.append,
    )
    (run,) = outcome.runs
    assert run.message == "stopped before a solution was found; certified so far: optimal cost between 0.125 and 0.5"
    assert outcomes == [outcome]
    assert lines[-1].state == "stopped"
    assert str(lines[-1]).endswith("optimal cost between 0.125 and 0.5")
    assert f"{run.name}: {run.message}" in list_remarks(outcome)


def test_a_line_tells_the_bounds():
    line = StatusLine("(15) fista", 1, 3, 2.0, dc.Progress(40, 1.9, 0.25, 0.5), "running")
    assert str(line) == "(15) fista (2 of 3), 2.0 s: iteration 40, optimal cost between 0.25 and 0.5"
    stopped = replace(line, state="stopped")
    assert str(stopped) == "stopped after 2.0 s, 1 of 3 computed; (15) fista: optimal cost between 0.25 and 0.5"


# Views


OFTEN_SOLVED = ("nu_path",)  # views that solve many problems, like lambda_path


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in OFTEN_SOLVED)) for name in OF_TWO]
)
def test_the_python_of_a_view_runs_as_it_stands_and_draws_the_same(name, outcome, tmp_path, monkeypatch, coarse):
    monkeypatch.chdir(tmp_path)
    view = make_picture(name, outcome)
    found = {}
    exec(compile(view.code, f"{name}.py", "exec"), found)
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / f"{name}.pdf").read_bytes().startswith(b"%PDF")
    same = view.execute()
    for mine, theirs in zip(same["figure"].axes, found["figure"].axes, strict=True):
        assert mine.get_xlabel() == theirs.get_xlabel()
        for a, b in zip(mine.lines, theirs.lines, strict=True):
            assert len(a.get_xdata()) == len(b.get_xdata())
            if "seconds" not in mine.get_xlabel():
                np.testing.assert_allclose(a.get_ydata(), b.get_ydata(), atol=1e-9)
    if view.view.is_table:
        columns = [j for j, title in enumerate(same["table"].header) if title != "seconds"]
        timeless = [[[row[j] for j in columns] for row in names["table"].rows] for names in (same, found)]
        assert repr(timeless[0]) == repr(timeless[1])


def test_found_labels_are_named_after_the_true_ones_in_picture_and_python(worker):
    flipped = 0
    for seed in range(6):
        source = replace(SMALL_SOURCE, seed=seed)
        outcome = compute_outcome(source, worker, solvers=["low_rank"], extras=())
        view = make_picture("projection", outcome)
        found = {}
        exec("\n".join(view.code.split("\n\n")[:3]), found)  # all but the drawing
        np.testing.assert_array_equal(found["labels"], view.names["labels"])
        assert found["labels"] @ outcome.data.y >= 0
        flipped += dc.rounding.kmeans_centered(found["result"].F) @ outcome.data.y < 0
    assert flipped, "no draw needed it"


def test_the_paths_pass_through_what_is_solved(outcome):
    X = outcome.data.X
    here = dc.low_rank(X, nu=SETTING.nu, penalty=SETTING.penalty)
    for name, value in (("nu path", SETTING.nu), ("lambda path", SETTING.lam)):
        path = outcome.extras[name]
        (k,) = np.flatnonzero(np.isclose(path.parameter, value))
        assert path.lower[k] <= here.upper + 1e-9
        assert here.lower <= path.upper[k] + 1e-9


@pytest.mark.parametrize("name", OF_TWO)
def test_a_view_says_what_it_is_of_and_is_drawn_once_where_pyplot_cannot_close_it(name, outcome, coarse, monkeypatch):
    view = make_picture(name, outcome, "(15) fista", "sign_centered")
    assert "n = 24, d = 4, nu = 0.9, lam = 0.01, ridge = 0.1, alpha = 0.1" in view.caption
    assert make_picture(name, outcome, "(15) fista", "sign_centered") is view
    if view.view.of == "one":
        assert ("<table" if view.view.is_table else "<img") in view.html
        assert "dc.fista(" in view.code
        assert view.caption.startswith("(15) fista")
    known = []
    monkeypatch.setattr(plt.Figure, "savefig", lambda self, file, **kwargs: known.append(plt.get_fignums()))
    plt.close("all")
    view.save("png")
    assert known == [[]]


def test_a_view_is_saved_in_two_formats(outcome):
    view = make_picture("spectra", outcome)
    assert view.save("png").startswith(b"\x89PNG")
    assert view.save("pdf").startswith(b"%PDF")


def test_every_view_is_in_a_section_of_the_page_and_has_words_without_formulas():
    assert list(dict.fromkeys(view.section for view in VIEWS)) == ["labels", "solution", "paths", "comparison"]
    assert not any(re.search(r"section|\|\||\^|\\", view.description) for view in VIEWS)


def test_without_labels_no_view_uses_them(worker):
    source = UploadedSource(TABLE.encode(), "mine.csv", drop=["species"])
    outcome = compute_outcome(source, worker, extras=("comparison",))
    assert "no reference labels" in make_picture("known_split", outcome).message
    assert '<td data-title="clustering error"></td>' in make_picture("roundings", outcome).html
    for name in ("projection", "direction", "spectra", "comparison"):
        assert draw_picture(name, outcome, "", "kmeans_centered").message == ""


def test_what_is_not_computed_is_said_and_not_drawn(outcome):
    empty = Outcome(outcome.source, outcome.data, outcome.setting)
    assert "There is no solution yet" in make_picture("spectra", empty).html
    assert "Not computed yet" in make_picture("nu_path", empty).html
    failed = Outcome(outcome.source, outcome.data, outcome.setting, (), {"nu path": "nu is <wrong>"})
    assert make_picture("nu_path", failed).html == "<p>nu is &lt;wrong&gt;</p>"


def test_a_view_that_cannot_be_drawn_leaves_a_sentence(outcome, monkeypatch):
    monkeypatch.setattr(dc.plotting.SpectrumDisplay, "plot", lambda self: 1 / 0)
    other = Outcome(outcome.source, outcome.data, PageSetting(), outcome.runs)
    assert "could not be drawn: ZeroDivisionError" in draw_picture("spectra", other, "", "kmeans_centered").message


def test_the_label_gap_is_claimed_only_where_it_is_proved(worker):
    outcome = compute_outcome(SMALL_SOURCE, worker, forms=["(15)", "(21)"], solvers=["low_rank", "CLARABEL"], extras=())
    proved = make_picture("roundings", outcome, "(15) low_rank")
    assert "bounds=True" in proved.code
    other = make_picture("roundings", outcome, "(21) CLARABEL")
    assert "bounds=False" in other.code
    assert set(column(other.execute()["table"], "optimality gap")) == {None}


def column(table, title):
    return [row[table.header.index(title)] for row in table.rows]


def test_roundings_are_judged_by_eq_9():
    X, y, _ = dc.datasets.make_planted(24, 4, noise=0.2)
    result, penalty = dc.low_rank(X, nu=0.9, penalty=SETTING.penalty), SETTING.penalty
    table = rounding_table(X, result, y, 0.9, penalty, like=y)
    rows = {row[0]: dict(zip(table.header, row, strict=True)) for row in table.rows}
    labels = dc.rounding.sign_leading(result.F)
    proof = dc.certify_labels(X, labels, result, nu=0.9, penalty=penalty)
    assert rows["sign_leading"]["cost"] == proof.objective
    assert rows["sign_leading"]["optimality gap"] == proof.gap
    assert rows["sign_leading"]["clustering error"] == dc.metrics.clustering_error(y, labels)
    assert rows["sign_leading"]["cluster 0"] + rows["sign_leading"]["cluster 1"] == 24
    least = min(row["cost"] for row in rows.values())
    assert all((row["lowest cost"] == "*") == (row["cost"] <= least + 1e-9) for row in rows.values())


def test_a_comparison_is_shown_with_its_disagreements(outcome):
    comparison = outcome.extras["comparison"]
    table = comparison_table(comparison)
    assert column(table, "method") == ["low_rank", "fista", "k-means", "alternating"]
    assert column(table, "value")[0] == comparison.rows[0]["value"]
    assert list_remarks(outcome)[0] == "No disagreement beyond the certified gaps."


def test_a_contradiction_comes_first(outcome):
    false = replace(outcome.extras["comparison"], disagreements=("a and b are apart",))
    refused = Run(outcome.runs[0].solve, message="refused")
    remarks = list_remarks(replace(outcome, runs=(refused,), extras={"comparison": false}))
    assert remarks[0] == "Disagreement: a and b are apart"
    assert "(15) low_rank: refused" in remarks


def test_a_table_is_drawn_as_it_is_printed():
    table = ReportTable(("name", "value"), (("one", 0.123456), ("none", None)))
    (drawn,) = table_figure(table).axes[0].tables
    assert [[drawn[i, j].get_text().get_text() for j in range(2)] for i in range(3)] == table.lines()


# What is known of points, and the search for the best split

MARKED = replace(SETTING, marks=((0, -1), (5, 1), (7, -1)))
WITH_PYTHON = ["projection", "direction", "roundings", "nu_path", "lambda_path", "comparison"]


@pytest.fixture(scope="module")
def marked(worker):
    return compute_outcome(
        SMALL_SOURCE, worker, forms=("(15)", "(8)", "(7)"), solvers=("low_rank", "fista", "CLARABEL"), setting=MARKED
    )


def test_every_way_to_read_clusters_gives_those_that_are_known(marked):
    assert list(marked.solved) == ["(15) low_rank", "(15) fista", "(15) CLARABEL"]
    for name in marked.solved:
        for rounding in dc.rounding.ROUNDINGS:
            assert find_summary(marked, name, rounding).labels[[0, 5, 7]].tolist() == [-1, 1, -1]
    sentence = "split of these points that satisfies the constraints"
    assert sentence in " ".join(find_summary(marked, "", "kmeans_centered").sentences)
    free = compute_outcome(SMALL_SOURCE, SimpleNamespace(call=lambda call, **_: CallResult(do(call))), extras=())
    assert "the constraints" not in " ".join(find_summary(free, "", "kmeans_centered").sentences)


def test_brackets_with_known_clusters_overlap_and_lie_above_those_without(marked, outcome):
    brackets = [run.result for run in marked.solved.values()]
    assert max(one.lower for one in brackets) <= min(one.upper for one in brackets) + 1e-9
    assert min(one.upper for one in brackets) >= outcome.runs[0].result.lower - 1e-9


def test_what_cannot_take_known_clusters_says_so(marked):
    refused = {run.name: run.message for run in marked.runs if run.result is None}
    assert refused["(7) CLARABEL"].startswith("(7) does not support labelled points")
    assert "k-means was skipped: it takes no constraints" in list_remarks(marked)
    assert "3 labelled points" in make_picture("projection", marked).caption


def test_the_python_of_every_view_has_the_known_clusters(marked):
    for name in WITH_PYTHON:
        code = make_picture(name, marked).code
        assert "known[[0, 5, 7]] = [-1, 1, -1]" in code
        assert "constraints=" in code


@pytest.mark.parametrize("name", ["direction", "roundings", "comparison"])
def test_the_python_of_a_view_with_known_clusters_draws_the_same(name, marked, tmp_path, monkeypatch, coarse):
    test_the_python_of_a_view_runs_as_it_stands_and_draws_the_same(name, marked, tmp_path, monkeypatch, coarse)


def test_known_clusters_are_of_no_use_to_more_than_two():
    many = replace(MARKED, n_clusters=3)
    assert many.constraints(24) is None
    assert "constraints" not in "".join(many.code())


def test_marks_are_read_as_they_are_written_by_the_rows_of_the_file():
    data = UploadedSource(b"a,b\n1,2\n3,\n5,6\n7,9\n", "mine.csv", missing="drop").load()
    assert read_marks("3:1, 0:0", data) == ((0, -1), (2, 1))
    assert write_marks(((0, -1), (2, 1)), data) == "0:0 3:1"
    assert read_marks("", data) == ()
    assert change_marks(((0, -1), (2, 1)), [1, 2], 0) == ((0, -1),)
    assert change_marks(((0, -1),), [2, 0], 1) == ((0, 1), (2, 1))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1:1", "there is no row 1\\."),
        ("3", "names no cluster"),
        ("3:2", "names no cluster"),
        ("3:1 3:0", "both clusters"),
    ],
)
def test_what_is_wrong_with_marks_is_said(text, said):
    data = UploadedSource(b"a,b\n1,2\n3,\n5,6\n7,9\n", "mine.csv", missing="drop").load()
    with pytest.raises(dc.ParameterError, match=said):
        read_marks(text, data)


def test_a_box_chooses_what_is_in_it_and_a_click_the_nearest_point(marked):
    answer = find_summary(marked, "", "kmeans_centered")
    ax, plane = draw_marks(answer, MARKED.marks), place_points(answer)
    np.testing.assert_array_equal(plane[:, 0], answer.scores)
    np.testing.assert_array_equal(ax.lines[-1].get_xydata(), plane[[0, 5, 7]])
    (left, low), (right, high) = plane.min(axis=0), np.median(plane, axis=0)
    box = mo.ui.matplotlib(ax, value={"x": (left, right), "y": (low, high)})
    click = mo.ui.matplotlib(ax, value={"x": (plane[9, 0],) * 2, "y": (plane[9, 1] + 1e-3,) * 2})
    beside = mo.ui.matplotlib(ax, value={"x": ax.get_xlim()[:1] * 2, "y": ax.get_ylim()[:1] * 2})
    inside = np.flatnonzero((plane[:, 0] <= right) & (plane[:, 1] <= high)).tolist()
    assert points_in(box.value, answer, ax) == inside
    assert 0 < len(inside) < 24
    assert points_in(click.value, answer, ax) == [9]
    assert points_in(beside.value, answer, ax) == []
    assert points_in(mo.ui.matplotlib(ax).value, answer, ax) == []


def search(source, setting, worker, stopped=never_stop, on_status=ignore):
    calls = plan_search(source.load(), setting)
    return compute(source, setting, (), worker, calls=calls, stopped=stopped, on_status=on_status)


@pytest.mark.parametrize("setting", [SETTING, MARKED, PageSetting()])
def test_the_search_is_that_of_the_package_and_its_python_draws_it(setting, worker, tmp_path, monkeypatch, coarse):
    outcome = search(SMALL_SOURCE, setting, worker)
    above = compute_outcome(SMALL_SOURCE, worker, solvers=["low_rank"], extras=(), setting=setting)
    answer = summarize_search(outcome, find_summary(replace(above, data=outcome.data), "", "kmeans_centered"))
    found = dc.optimal_labels(
        outcome.data.X, setting.nu, setting.penalty, constraints=setting.constraints(24), tol=setting.tol
    )
    assert abs(answer.labels @ found.labels) == 24
    text = " ".join(answer.sentences)
    assert (
        f"optimal: no split of these points{' that satisfies the constraints' * bool(setting.marks)} is cheaper" in text
    )
    assert f"({found.n_nodes} relaxations, " in text
    assert ("It is the split above." in text) != ("It differs from the split above in" in text)
    assert answer.clusters.startswith(b'"row","cluster","score"')
    monkeypatch.chdir(tmp_path)
    view, drawn = make_picture("search", outcome), {}
    exec(compile(view.code, "search.py", "exec"), drawn)
    mine, theirs = view.execute()["figure"].axes[0], drawn["figure"].axes[0]
    np.testing.assert_allclose(mine.lines[0].get_ydata(), theirs.lines[0].get_ydata(), atol=1e-9)


def test_a_search_that_is_stopped_says_what_is_proved_by_then(worker):
    lines, hard = [], PlantedSource(300, 20, noise=1.5)
    outcome = search(hard, PageSetting(), worker, lambda: any(line.progress for line in lines), lines.append)
    assert lines[-1].state == "stopped"
    assert any(": relaxations " in str(line) for line in lines)
    text = " ".join(summarize_search(outcome, None).sentences)
    assert "Not certified optimal (" in text
    assert "may be cheaper by at most" in text


def test_why_there_is_no_best_split_is_said():
    outcome = Outcome(SMALL_SOURCE, SMALL_SOURCE.load(), SETTING, extras={computation.SEARCH: "the rows do not fit"})
    assert summarize_search(outcome, None).sentences == ("the rows do not fit",)
    assert summarize_search(replace(outcome, extras={}), None) is None


# The page as a program


def test_without_marimo_the_program_says_how_to_get_it(monkeypatch, capsys):
    monkeypatch.setattr(launcher, "find_spec", lambda name: None)
    monkeypatch.setattr(sys, "argv", ["explore"])
    with pytest.raises(SystemExit) as end:
        launcher.main()
    said = capsys.readouterr().err
    assert end.value.code == 2
    assert said.count("\n") == 1
    assert "pip install 'diffrac-cvx[explore]'" in said


@pytest.mark.parametrize(
    ("port", "said"), [(0, "is not a valid port"), (70_000, "is not a valid port"), (None, "is in use")]
)
def test_a_port_that_cannot_be_used_is_said_in_one_line(port, said, monkeypatch, capsys):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        used_port = other.getsockname()[1] if port is None else port
        monkeypatch.setattr(sys, "argv", ["explore", "--headless", "--port", str(used_port)])
        with pytest.raises(SystemExit) as end:
            launcher.main()
    line = capsys.readouterr().err
    assert end.value.code == 2
    assert line.count("\n") == 1
    assert said in line
    assert "--port" in line


def test_a_port_is_free_again_after_its_program_has_ended():
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", 0))
        port = other.getsockname()[1]
    launcher.require_port(port)
