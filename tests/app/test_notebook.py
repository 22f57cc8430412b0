"""Cells of the page, run from top to bottom without a browser, with different control values."""

import threading
import time
from html import unescape
from types import SimpleNamespace

import marimo as mo
import numpy as np
import pytest

import diffrac_cvx as dc
from diffrac_cvx.app.page import computation, controls, pictures
from diffrac_cvx.app.page.computation import Outcome, Run, StatusLine
from diffrac_cvx.app.page.data import PlantedSource
from diffrac_cvx.app.page.notebook import app
from diffrac_cvx.app.page.pictures import ViewPicture
from diffrac_cvx.app.page.solve_choice import PageSetting, plan_solves
from diffrac_cvx.app.page.views import VIEWS, views_for

TABLE = b"height,weight\n1.5,20\n-1.7,25\n1.4,8\n-1.2,30\n"
WAIT = 20.0  # seconds for a thread of the page to start


@pytest.fixture
def jobs(monkeypatch):
    """Record the jobs that the page starts, with their arguments, instead of computing them."""
    started, begun = [], threading.Event()

    def compute(job, worker, stopped, on_outcome, on_status):
        started.append((job, stopped, on_outcome, on_status))
        on_outcome(job.outcome)
        on_status(StatusLine("computing", state="running"))
        begun.set()
        return job.outcome

    monkeypatch.setattr(computation, "take_worker", lambda: None)
    monkeypatch.setattr(computation.Job, "compute", compute)
    return SimpleNamespace(started=started, begun=begun)


def choose(source, *, automatic=True, upload=None, experts=False):
    """Return the controls of the panel for a data source, with a file if given."""
    empty = SimpleNamespace(value=[], contents=lambda i: None, name=lambda i: None)
    given = upload and SimpleNamespace(value=[upload], contents=lambda i: upload, name=lambda i: "table.csv")
    return {
        "automatic": mo.ui.switch(value=automatic),
        "experts": mo.ui.switch(value=experts),
        "file": given or empty,
        "given": {},
        "known": controls.elements("known", {}),
        "parameters": controls.elements("parameters", {}),
        "planted": controls.elements("planted", {}),
        "rounding": controls.element("rounding", {}),
        "solving": controls.elements("solving", {}),
        "source": mo.ui.radio(["planted", "known", "own table"], value=source),
    }


def see(line="idle", outcome=None, **sections):
    """Return getters of the states of the page, and no setters."""
    kinds = ("line", "outcome", "search_line", "search", "labels", "solution", "paths", "comparison")
    empty = dict.fromkeys(("search_line", "search"))
    held = {**{kind: {} for kind in kinds}, "line": StatusLine(line), "outcome": outcome, **empty, **sections}
    return {**{f"get_{kind}": lambda value=held[kind]: value for kind in kinds}, "setters": {}}


def wait_until(reached):
    deadline = time.monotonic() + WAIT
    while not reached() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert reached()


def words(outputs):
    return unescape(" ".join(output.text for output in outputs if hasattr(output, "text")))


def test_the_page_opens_with_planted_data_and_starts_to_solve_them(jobs):
    outputs, names = app.run()
    assert jobs.begun.wait(WAIT)
    wait_until(lambda: len(jobs.started) == 2)
    ((job, stopped, _, _), (other, *_)) = jobs.started
    assert set(other.calls) == {computation.STRUCTURE}
    assert [solve.name for solve in job.solves if solve.call is not None]
    assert job.calls == {}, "what is for experts is computed when it is asked for"
    assert len(names["data"].X) == 150
    assert names["board"]["outcome"].data is job.outcome.data
    assert names["board"]["line"].state == "running"
    assert not stopped()
    names["under_way"]["event"].set()
    assert stopped()
    shown = words(outputs)
    for text in ("Clusters of a table", "Clusters in detail", "Data"):
        assert text in shown


@pytest.mark.parametrize("pressed", [False, True])
def test_known_clusters_of_the_address_are_given_to_the_solves_and_to_the_search(jobs, pressed):
    empty = dict.fromkeys(("refresh", "run", "stop"), SimpleNamespace(value=False, text="", _mime_=lambda: ("", "")))
    board = {"line": StatusLine("starting")}
    held = {"board": board, "shown": {}, "under_way": {}, "worker": None, "helper": None, "searcher": "other process"}
    chosen = {"prove": SimpleNamespace(value=pressed), "remembered": {"run": None, "marks": "17:0 3:1"}}
    app.run(defs={**choose("planted", automatic=not pressed, experts=True), **see(), **empty, **held, **chosen})
    assert jobs.begun.wait(WAIT)
    wait_until(lambda: len(jobs.started) == (1 if pressed else 3))
    job = jobs.started[-1][0]
    assert job.outcome.setting.marks == ((3, 1), (17, -1))
    assert set(job.calls) == ({computation.SEARCH} if pressed else set(computation.EXTRAS))
    assert board["search" if pressed else "outcome"] is job.outcome


def test_nothing_is_solved_until_run_is_pressed_where_that_is_chosen(jobs):
    app.run(defs=choose("planted", automatic=False))
    assert not jobs.begun.wait(0.2)
    assert jobs.started == []


def test_a_data_set_and_a_table_of_ones_own_are_what_is_solved(jobs):
    for chosen, n in ((choose("known"), 683), (choose("own table", upload=TABLE), 4)):
        jobs.begun.clear()
        _, names = app.run(defs=chosen)
        assert len(names["data"].X) == n
        assert jobs.begun.wait(WAIT)
    assert list(names["guesses"]) == ["height", "weight"]


@pytest.mark.parametrize(
    ("upload", "said"), [(None, "choose a file"), (b"a,b\n1,2\n2,y\n3,4\n", "row 1"), (b"a,b\n", "no row")]
)
def test_what_is_wrong_with_a_table_is_said_and_nothing_is_solved_or_shown(jobs, upload, said):
    outputs, names = app.run(defs=choose("own table", upload=upload))
    assert names["data"] is None
    assert said in words(outputs)
    assert str(names["board"]["line"]) == "nothing to compute"
    assert jobs.started == []


@pytest.fixture
def outcome():
    """Outcome of two solves of small data."""
    source, setting = PlantedSource(n=16, d=3), PageSetting(nu=1.0, lam=0.01, ridge=0.0, alpha=0.0)
    data = source.load()
    solves = plan_solves(data, setting, ["(15)"], ["low_rank", "fista"])
    found = dc.low_rank(data.X, penalty=dc.Penalty.l1(0.01))
    return Outcome(source, data, setting, tuple(Run(solve, found) for solve in solves))


def test_what_was_computed_is_drawn_and_the_solution_looked_at_is_kept(jobs, outcome, monkeypatch):
    drawn, done = [], threading.Event()

    def draw(name, outcome, run, rounding):
        drawn.append((name, run, rounding))
        if len(drawn) == len(views_for(2)):
            done.set()
        return ViewPicture(next(view for view in VIEWS if view.name == name), message="There is nothing to show.")

    monkeypatch.setattr(pictures, "draw_picture", draw)
    outputs, names = app.run(defs={**choose("planted", automatic=False, experts=True), **see(outcome=outcome)})
    assert done.wait(WAIT)
    first, second = outcome.solved
    assert names["look"].options.keys() == {first, second}
    assert drawn == [(view.name, first, "kmeans_centered") for view in views_for(2)]
    assert 'class="remarks"' in words(outputs)
    names["look"]._update([second])
    assert names["remembered"]["run"] == second


def test_pictures_stand_under_their_headings_with_their_files_and_python(jobs, outcome):
    view = next(view for view in VIEWS if view.of == "one" and not view.is_table)
    picture = pictures.make_picture(view.name, outcome)
    without = ViewPicture(view, message="No solve has a result yet.")
    shown = see(labels={view.name: picture}, solution={view.name: without})
    outputs, _ = app.run(defs={**choose("planted", automatic=False, experts=True), **shown})
    text = words(outputs)
    assert text.count('<details class="menu">') == 1
    assert text.count(f'data-view="{view.name}"') == 2
    assert 'src="data:image/png;base64' in text
    assert "savefig" in text
    assert "No solve has a result yet." in text
    assert picture.caption.split(",")[0] in text
    png = picture.save("png", dpi=20)
    assert png[:4] == b"\x89PNG"
    assert np.isfinite(outcome.solved[next(iter(outcome.solved))].result.value)
