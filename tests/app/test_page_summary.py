"""Page: main figure, summary, persistent cluster numbers, and column roles."""

import re
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

import diffrac_cvx as dc
from diffrac_cvx.app.page import cards, computation, controls, naming
from diffrac_cvx.app.page.columns import (
    FEATURE,
    KNOWN_GROUPS,
    LEFT_OUT,
    MAX_CHIPS,
    ZERO_ONE,
    describe_guesses,
    guess_columns,
)
from diffrac_cvx.app.page.computation import FIRST_RESULT_SECONDS, Outcome, Run, compute_jobs, plan_jobs
from diffrac_cvx.app.page.data import Data, PlantedSource, UploadedSource, values_of
from diffrac_cvx.app.page.marks import MAX_DRAWN_POINTS, draw_marks, drawn_points, place_points, points_in
from diffrac_cvx.app.page.pictures import make_picture
from diffrac_cvx.app.page.solve_choice import PageSetting, plan_solves
from diffrac_cvx.app.page.summary import find_summary, name_as_shown, names_of_many
from diffrac_cvx.plotting.canvas import style_of
from diffrac_cvx.problem.formatting import format_ends
from diffrac_cvx.problem.result import Status

FOR_EXPERTS = {"forms": ("(15)",), "solvers": ("low_rank", "fista"), "extras": ("nu path",)}


def unlabeled(n=60, d=3, seed=0):
    X = dc.datasets.make_planted(n, d, noise=0.4, rng=seed).X
    return Data(X, tuple(f"x{j}" for j in range(d)), None, (), np.arange(n), title="points")


def solve(data, setting):
    (one,) = plan_solves(data, setting, ["(15)"], ["low_rank"])
    return Outcome(
        PlantedSource(), data, setting, (Run(one, one.call.function(*one.call.arguments, **one.call.options)),)
    )


def answer_of(data, setting, rounding="kmeans_centered"):
    return find_summary(solve(data, setting), "", rounding)


# Names and colours


@pytest.mark.parametrize("count", [2, 3, 5])
def test_clusters_keep_their_numbers_however_a_method_numbers_them(count):
    rng, data = np.random.default_rng(count), unlabeled()
    shown = rng.integers(count, size=60)
    naming.remember_clusters(data, shown, count)
    moved = np.where(np.arange(60) % 10 == 0, rng.integers(count, size=60), shown)
    found = rng.permutation(count)[moved]
    names = naming.match_names(found, count, data)
    np.testing.assert_array_equal(names[found], moved)


def test_two_clusters_keep_their_sides_when_the_signs_of_a_solution_turn():
    data = unlabeled()
    first = answer_of(data, PageSetting())
    for setting in (PageSetting(nu=0.9), PageSetting(lam=0.01), PageSetting(ridge=0.1)):
        now = name_as_shown(-first.labels, data, setting)
        np.testing.assert_array_equal(now, first.labels)
        assert answer_of(data, setting).labels @ first.labels > 0


def test_the_first_answer_has_the_numbers_of_the_program():
    data = unlabeled(seed=3)
    model = dc.DiffracClustering(standardize=False).fit(data.X)
    labels = answer_of(data, PageSetting()).labels
    assert (labels > 0) @ model.labels_ > (labels < 0) @ model.labels_


def test_known_groups_and_clusters_have_the_same_colors_and_the_groups_their_own_names():
    source = UploadedSource(
        b"x,kind\n" + b"".join(b"%d,%s\n" % (v, b"ox" if v > 5 else b"ape") for v in range(12)), "t.csv", "kind"
    )
    outcome = solve(source.load(), PageSetting())
    find_summary(Outcome(source, outcome.data, PageSetting(), outcome.runs), "", "kmeans_centered")
    drawn = [make_picture(name, outcome).execute()["display"] for name in ("projection", "known_split")]
    texts = [[text.get_text() for text in display.legend_.get_texts()][:2] for display in drawn]
    assert texts == [["cluster 0, 6 points", "cluster 1, 6 points"], ["group ape, 6 points", "group ox, 6 points"]]


def test_more_clusters_have_the_same_colors_in_picture_table_and_file():
    data = unlabeled(90, 4)
    model = dc.DiffracClustering(n_clusters=3, standardize=False, random_state=0).fit(data.X)
    naming.remember_clusters(data, (model.labels_ + 1) % 3, 3)  # the previous result
    setting = PageSetting(n_clusters=3)
    outcome = Outcome(PlantedSource(), data, setting, solve(data, setting).runs, {"clusters": model})
    np.testing.assert_array_equal(names_of_many(data, model), [1, 2, 0])
    found = find_summary(outcome, "", "kmeans_centered")
    np.testing.assert_array_equal(found.labels, (model.labels_ + 1) % 3)
    np.testing.assert_array_equal(found.scores.argmax(axis=1), found.labels)
    table = make_picture("cluster_table", outcome).execute()["table"]
    assert [row[1] for row in table.rows] == found.sizes == np.bincount(found.labels).tolist()
    assert f'color:{style_of(2).color}">■ <b>cluster 2</b> {found.sizes[2]} points' in cards.legend_html(found)


# The answer at once


class AtOnce:
    """Worker that runs a call in this thread."""

    def __init__(self):
        self.asked = []

    def call(self, call, **_):
        self.asked.append(call)
        return computation.CallResult(call.function(*call.arguments, **call.options))


@pytest.mark.parametrize(("clusters", "calls"), [(2, 1), (3, 2)])
def test_the_answer_waits_for_nothing_that_is_for_experts(clusters, calls):
    source = PlantedSource(30, 3)
    data, answered = source.load(), []
    jobs = plan_jobs(source, data, PageSetting(n_clusters=clusters), FOR_EXPERTS)
    quick, slow, outcomes = AtOnce(), AtOnce(), []
    show = outcomes.append
    compute_jobs(jobs, (quick, slow), lambda: False, show, lambda line: None, lambda: answered.append(len(outcomes)))
    assert answered == [calls]
    assert len(quick.asked) == calls
    assert find_summary(outcomes[calls - 1], "", "kmeans_centered") is not None
    assert len(slow.asked) == len(outcomes) - calls == 3


def test_what_is_for_experts_is_left_out_unless_asked_for():
    source = PlantedSource(60, 4)
    first, structure, rest = plan_jobs(source, source.load(), PageSetting(), None)
    assert list(structure.calls) == [computation.STRUCTURE]
    assert [one.name for one in first.solves] == ["(15) low_rank"]
    assert [*first.calls, *rest.solves, *rest.calls] == []


def test_a_first_answer_that_runs_out_of_time_is_shown_and_then_found_to_the_end():
    source = PlantedSource(100, 60, noise=1.0)
    jobs = plan_jobs(source, source.load(), PageSetting(lam=0.01), None)
    assert jobs[0].seconds == FIRST_RESULT_SECONDS
    outcomes = []
    hurried = [replace(jobs[0], seconds=1e-9), jobs[2]]
    compute_jobs(hurried, (AtOnce(), AtOnce()), lambda: False, outcomes.append, lambda line: None, lambda: None)
    early, late = (outcome.runs[0].result for outcome in outcomes)
    assert early.status is Status.TIME_LIMIT
    assert late.status is Status.OPTIMAL
    assert early.lower <= late.upper + 1e-9


@pytest.mark.parametrize(("n", "d"), [(10_000, 10), (1000, 100), (50_000, 2)])
def test_answer_and_picture_of_a_large_table_take_less_than_a_second_of_this_process(n, d):
    data = unlabeled(n, d)
    outcome = solve(data, PageSetting(tol=1e-2))
    started = time.process_time()
    found = find_summary(outcome, "", "kmeans_centered")
    draw_marks(found, ())
    assert time.process_time() - started < 1.0
    assert len(drawn_points(n)) == min(n, MAX_DRAWN_POINTS)


# Picture and words


def parts_of(found, data, is_new=True):
    return cards.hero(None, found, solve(data, PageSetting()), is_new, "")


def test_the_words_begin_with_names_and_colors_and_the_bar_of_what_is_proved():
    data = unlabeled()
    found = answer_of(data, PageSetting())
    text = parts_of(found, data)
    lower, cost = format_ends(found.lower, found.cost)
    assert text.index("cluster 0</b>") < text.index('class="track"') < text.index("Cost of this split")
    assert f"no split costs less than {lower}; this one costs {cost}" in text
    widths = [float(width) for width in re.findall(r"width:([\d.]+)%", text)]
    end = min(end for end in cards.BAR_ENDS if end >= found.cost)
    assert widths == pytest.approx([100 * found.lower / end, 100 * (found.cost - found.lower) / end], abs=0.01)
    assert "Eigen" not in text
    assert '<div class="hero">' in text
    assert '<div class="hero old">' in parts_of(found, data, is_new=False), "the answer to an earlier question is grey"


def test_nothing_is_drawn_as_proved_where_nothing_is():
    assert "width:0.00%" in cards.proof_bar(-np.inf, 0.4)
    assert cards.proof_bar(-np.inf, np.inf) == ""


def test_a_label_that_is_known_moves_the_bar():
    data = unlabeled(60, 3, seed=5)
    free = answer_of(data, PageSetting())
    outer = int(np.argmin(free.scores))
    marked = answer_of(data, PageSetting(marks=((outer, 1), (int(np.argmax(free.scores)), 1))))
    assert marked.cost > free.cost
    assert marked.lower > free.lower + 1e-4


def test_a_click_shows_the_row_as_the_file_has_it():
    source = UploadedSource(
        b"id,height,kind\n" + b"".join(b"%d,%d.5,k%d\n" % (i, i * i, i % 2) for i in range(9)),
        "t.csv",
        "kind",
        drop=("id",),
    )
    data = source.load()
    outcome = Outcome(source, data, PageSetting(), solve(data, PageSetting()).runs)
    found = find_summary(outcome, "", "kmeans_centered")
    assert values_of(source, data, 4) == {"id": "4", "height": "16.5", "kind": "k0"}
    table = cards.row_table(source, found, 4)
    assert dict(zip(table.header, table.rows[0], strict=True))["reference label"] == "k0"
    assert table.header[-3:] == ("id", "height", "kind")
    shown = cards.point_section(source, found, [4], 0, True, {}, "", "").text
    assert "Row 4" in shown
    assert "16.5" in shown


def test_with_more_than_two_clusters_it_is_said_that_marks_are_not_used():
    data = unlabeled()
    found = answer_of(data, PageSetting())
    many = cards.point_section(PlantedSource(), found, [1], 7, False, {"0": "press"}, "", "").text
    assert "can be labelled only with two clusters. The 7 labels are kept" in many
    assert "press" not in many


def test_points_on_a_line_are_drawn_by_their_rows():
    data = Data(np.linspace(-1.0, 1.0, 9)[:, None], ("x",), None, (), np.arange(9))
    np.testing.assert_array_equal(place_points(answer_of(data, PageSetting()))[:, 1], np.arange(9))


def test_of_very_many_points_those_that_are_drawn_can_be_chosen():
    data = unlabeled(MAX_DRAWN_POINTS + 500, 2)
    found = answer_of(data, PageSetting(tol=1e-2))
    ax = draw_marks(found, ())
    everything = type("All", (), {"get_mask": lambda self, x, y: np.ones(len(x), dtype=bool)})()
    chosen = points_in(everything, found, ax)
    assert len(chosen) == MAX_DRAWN_POINTS == sum(len(line.get_xdata()) for line in ax.lines)
    assert chosen[-1] == len(data.X) - 1


def test_a_card_has_one_menu_that_holds_its_caption_its_files_and_its_python():
    source = PlantedSource(24, 4)
    picture = make_picture("direction", solve(source.load(), PageSetting()))
    head, menu, rest = re.split(r'<details class="menu">|</details>', cards.view_html(picture))
    assert picture.caption in menu
    assert all(kind in menu for kind in ("PNG", "PDF", "Python", "savefig"))
    assert "marimo-download" not in head + rest
    assert picture.caption not in head + rest


@pytest.mark.parametrize(("noise", "kind"), [(True, "doubts"), (False, "structure")])
def test_the_first_sentence_says_whether_there_is_a_structure(noise, kind):
    data = unlabeled(60, 4)
    data = replace(data, X=np.random.default_rng(0).standard_normal((60, 4))) if noise else data
    names = computation.namespace_of(data, PageSetting())
    tests = computation.evaluate(computation.TESTS_CODE.replace("time_limit=0.75", "time_limit=60"), names)
    outcome = replace(solve(data, PageSetting()), extras={computation.STRUCTURE: tests})
    text = cards.hero(None, find_summary(outcome, "", "kmeans_centered"), outcome, True, "")
    assert f'<div class="words answer"><div class="{kind}">' in text
    assert ("0 of 19 null tables reach this cost" in text) != noise
    assert cards.structure_html("nu = 0 has no value") == cards.structure_html(()) == ""


# Columns


def table(**columns):
    rows = zip(*columns.values(), strict=True)
    text = "\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)])
    return UploadedSource(text.encode(), "t.csv")


X = [round(float(x), 3) for x in np.random.default_rng(0).standard_normal(30)]


def test_numbers_are_features_and_text_is_excluded_with_a_message_as_in_the_program():
    guesses = guess_columns(table(x=X, target=[i % 3 for i in range(30)], kind=["ape", "ox"] * 15).frame)
    assert {name: one.role for name, one in guesses.items()} == {"x": FEATURE, "target": FEATURE, "kind": LEFT_OUT}
    assert "excluded because they hold text; they may be reference labels" in describe_guesses(guesses, {})
    assert describe_guesses(guesses, {"kind": ZERO_ONE}) == "", "another role was chosen"


def test_the_roles_of_columns_are_how_the_table_is_read_and_come_back_from_the_address():
    source = table(x=X, sex=["m", "f"] * 15, kind=["a", "b", "c"] * 10, id=list(range(30)))
    made = controls.elements_of_table({}, guess_columns(source.frame))
    assert {name: role.value for name, role in made.elements["columns"].elements.items()}["kind"] == LEFT_OUT
    given = {"label": ["kind"], "one_hot": ["sex"], "drop": ["id"]}
    made = controls.elements_of_table(given, guess_columns(source.frame))
    assert made.value["columns"] == {"x": FEATURE, "sex": ZERO_ONE, "kind": KNOWN_GROUPS, "id": LEFT_OUT}
    options = controls.table_options(made.value)
    data = replace(source, **options).load()
    assert data.names == ("x", "sex=m")
    assert data.classes == ("a", "b", "c")
    assert "one_hot=['sex']" in replace(source, **options).code()[0]
    with pytest.raises(dc.DataError, match="'a' and 'b' are all marked as reference labels"):
        controls.table_options(
            {"columns": {"a": KNOWN_GROUPS, "b": KNOWN_GROUPS}, "missing": "error", "scaling": "none"}
        )


def test_of_very_many_columns_those_that_something_is_said_of_have_a_chip_and_the_others_can_be_left_out():
    wide = table(**{f"g{j}": X for j in range(MAX_CHIPS + 20)}, kind=["a", "b"] * 15)
    made = controls.elements_of_table({}, guess_columns(wide.frame))
    assert len(made.elements["columns"].elements) == MAX_CHIPS
    assert "kind" in made.elements["columns"].elements
    assert len(made.elements["drop"].options) == 21
    made.elements["drop"]._update(["g59"])
    assert controls.table_options({**made.value, "drop": ["g59"]})["drop"] == ["kind", "g59"]


def test_a_worker_that_is_taken_has_solved_something(monkeypatch):
    asked, done = [], threading.Event()

    class Waiting:
        def call(self, call):
            asked.append(call.function())
            done.set()

    monkeypatch.setattr(computation, "IDLE_WORKERS", [Waiting()])
    computation.take_worker()
    assert done.wait(20)
    assert len(asked[0].labels_) == 12
