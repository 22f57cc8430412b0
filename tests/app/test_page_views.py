"""Data, tables, pictures and Python code of the page, and its cells, without a browser."""

import csv
import io
import re
import socket
import sys
from base64 import b64decode
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import matplotlib.image
import numpy as np
import pytest

import diffrac_cvx as dc
from diffrac_cvx.app.cli.program import run_command_line
from diffrac_cvx.app.page import __main__ as launcher
from diffrac_cvx.app.page import data as page_data
from diffrac_cvx.app.page import views
from diffrac_cvx.app.page.notebook import FIRST_METHODS, app
from diffrac_cvx.app.page.run import Request, Run, Setting, about, cluster_points
from diffrac_cvx.problem.result import Status

TABLE = "height,weight,species\n1.5,20,cat\n-1.7,25,dog\n1.4,8,cat\n-1.2,30,dog\n1.1,12,cat\n-0.9,14,dog\n"
SMALL = page_data.planted_data(24, 3, 1, 0.0, 0.3, 0)
NAMES = ("low_rank", "fista", "v_space", "penalized_nu", "CLARABEL")
METHODS = ["low_rank", "fista", "v_space/CLARABEL", "penalized_nu/CLARABEL"]


def compared(data=SMALL, setting=Setting(), names=NAMES, sample=None):  # noqa: B008
    """Return a finished run of the page."""
    run = Run(Request(data, setting, tuple(names), sample))
    run.work()
    assert not run.error
    return run


def with_setting(run, setting):
    """Return the run as if its setting had been another."""
    return replace(run, request=replace(run.request, setting=setting))


def uploaded(text=TABLE, label="species", **options):
    given = {"drop": [], "one_hot": [], "missing": "error", **options}
    return page_data.uploaded_data(text.encode(), "mine.csv", label, **given)


@pytest.fixture(scope="module")
def finished():
    return compared()


def table_of(run):
    return views.comparison_table(run, run.comparison, views.labels_of(run))


def cells(table, title):
    return [line[table.header.index(title)] for line in table.lines()[1:]]


@pytest.mark.parametrize(
    ("text", "options", "arguments"),
    [
        (TABLE, {}, ["--classes", "species"]),
        (TABLE, {"label": None}, []),
        (TABLE, {"label": None, "drop": ["species"]}, ["--drop", "species"]),
        (TABLE, {"label": None, "one_hot": ["species"]}, ["--one-hot", "species"]),
        (TABLE.replace("20", ""), {}, ["--classes", "species"]),
        (TABLE.replace("20", ""), {"missing": "mean"}, ["--classes", "species", "--missing", "mean"]),
        (TABLE.replace(",", ";").replace(".", ","), {}, ["--classes", "species"]),
        (TABLE.replace("1.5", "1e200"), {}, ["--classes", "species"]),
        ("", {"label": None}, []),
    ],
)
def test_the_page_reads_a_file_exactly_as_the_program_does(text, options, arguments, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.csv").write_text(text)
    status = run_command_line(["cluster", "mine.csv", "--no-structure", "--out", "program.csv", *arguments])
    said = capsys.readouterr().err
    if status == 2:
        with pytest.raises(dc.DataError) as error:
            uploaded(text, **options)
        assert " ".join(str(error.value).split()).rstrip(".") in " ".join(said.split()), (
            "it may be followed by an option"
        )
    else:
        table = uploaded(text, **options).table
        model = cluster_points(table, Setting())
        assert views.labels_csv(table, model) == (tmp_path / "program.csv").read_bytes()


def test_a_file_that_is_too_large_is_refused_before_it_is_parsed(monkeypatch):
    monkeypatch.setattr(page_data, "MAX_UPLOAD_BYTES", 10)
    monkeypatch.setattr(page_data, "read_file", lambda *_: pytest.fail("parsed"))
    monkeypatch.setattr(page_data.datasets, "read_table", lambda *_, **__: pytest.fail("parsed"))
    for read in (uploaded, lambda: page_data.column_names(TABLE.encode(), "mine.csv")):
        with pytest.raises(dc.DataError, match=r"mine.csv has .* MB and the page accepts"):
            read()


def request_of(n, names=FIRST_METHODS, d=4, **options):
    table = page_data.two_class_table(np.zeros((n, d)), np.ones(n))
    return Request(page_data.PageData(table, "", ""), Setting(**options), tuple(names))


def test_the_ticked_relaxations_are_compared_by_the_solver_for_their_size():
    by_clarabel = [f"{name}/CLARABEL" for name in ("v_space", "constrained_alpha", "penalized_nu", "lifted")]
    assert request_of(30).methods == ["low_rank", "fista", *by_clarabel]
    by_scs = [f"{name}/SCS" for name in ("constrained_alpha", "penalized_nu", "lifted")]
    assert request_of(300).methods == ["low_rank", "fista", "v_space/CLARABEL", *by_scs]
    assert request_of(20, ["low_rank", "lifted"]).methods == [], "low_rank solves (15) only"


def test_scs_runs_before_clarabel_if_both_are_ticked_and_the_matrix_is_large():
    names = ["penalized_nu", "SCS", "CLARABEL"]
    assert request_of(80, names).methods == ["penalized_nu/SCS", "penalized_nu/CLARABEL"]


def test_what_would_take_far_longer_than_the_limit_is_omitted_with_its_estimate():
    request = request_of(10_000, d=10)
    assert request.methods == ["low_rank", "fista", "v_space/SCS"]
    (sentence,) = views.describe_others(SimpleNamespace(results={}, method_results={}, notes=()), request.omitted, 2)
    names = "constrained_alpha/SCS, penalized_nu/SCS, lifted/SCS"
    assert sentence == f"omitted: {names} (about 400 h). Increase the time limit, or compare on a sample."
    assert not replace(request, sample=100).omitted
    assert request_of(300, ["penalized_nu", "CLARABEL"], time_limit=3600.0).methods == ["penalized_nu/CLARABEL"]


def test_the_estimate_is_that_of_the_sample_and_at_most_the_time_limit():
    request = request_of(300)
    assert request.seconds == request.setting.time_limit == 60.0
    assert replace(request, sample=100).seconds < 10.0
    assert views.describe_plan(request) == "6 methods, about 60 s."
    assert views.describe_plan(request_of(300, lam=0.1)) == "4 methods, about 40 s.", "(7) and (8) take no l1 penalty"
    assert views.describe_plan(request_of(30, [])) == "Tick a relaxation that supports the penalty, and a solver."
    assert [about(seconds) for seconds in (0.13, 34.0, 80.0, 90.0, 5_000.0, 90_000.0)] == [
        "about 0.1 s", "about 30 s", "about 80 s", "about 2 min", "about 80 min", "about 20 h",
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("n", [60, 120])
def test_an_estimate_of_scs_is_within_a_factor_of_ten(n):
    X = dc.datasets.make_planted(n, 3, noise=0.3, rng=0).X
    seconds = dc.compare(X, methods=["penalized_nu/SCS"], ridge=0.3).rows[0]["seconds"]
    estimate = dc.registry.RELAXATIONS["penalized_nu"].estimate_seconds("SCS", n, 3)
    assert estimate / 10 < seconds < 10 * estimate


def test_the_page_says_whether_its_results_are_those_of_the_controls(finished):
    request = finished.request
    assert "have changed" not in views.describe_state(request, finished, finished)
    again = replace(request, data=page_data.planted_data(24, 3, 1, 0.0, 0.3, 0))
    assert not again.differs_from(request), "the same table, read again"
    for other in (
        replace(request, setting=Setting(lam=0.01)), replace(request, names=NAMES[1:]),
        replace(request, data=page_data.planted_data(24, 3, 1, 0.0, 0.3, 1)),
    ):  # fmt: skip
        assert "The settings have changed." in views.describe_state(other, finished, finished)
    assert "Comparing." in views.describe_state(request, Run(request), finished)
    assert "those of the earlier table" in views.describe_state(None, finished, finished)
    assert views.describe_state(None, None, None) == ""


def test_the_progress_names_every_method_with_its_seconds_and_a_stop_keeps_what_is_finished():
    heard, run = [], Run(Request(SMALL, Setting(), NAMES))

    def tell(lines):
        heard.append(lines)
        if lines[1].startswith("fista: 0 s"):
            run.stop()

    run.work(tell)
    assert heard[0][0] == "low_rank: 0 s"
    assert heard[0][2].startswith("v_space/CLARABEL: waiting, about 0.")
    assert heard[-1][0].startswith("low_rank: done in 0.")
    assert next(iter(run.comparison.results)) == "low_rank"
    assert "v_space/CLARABEL" not in run.comparison.results
    assert any("stopped before" in note for note in run.comparison.notes)
    assert run.model is not None


def test_a_run_ends_when_another_has_started():
    run = Run(Request(SMALL, Setting(), NAMES))
    run.work(is_over=lambda: True)
    assert not run.comparison.results
    assert f"stopped before {', '.join(METHODS)}" in run.comparison.notes


def test_a_sample_is_said_in_the_table_and_the_clusters_are_those_of_all_rows():
    data = page_data.planted_data(130, 3, 1, 0.0, 0.3, 0)
    run = compared(data, names=["low_rank", "v_space"], sample=100)
    assert cells(table_of(run), "rows") == ["100 of 130"]
    assert len(run.shown.X) == 100
    np.testing.assert_array_equal(run.shown.labels, data.table.labels[run.comparison.sample])
    X = dc.datasets.SCALINGS["standardize"](data.table.X)
    np.testing.assert_array_equal(run.scaled, X[run.comparison.sample])
    assert len(run.model.labels_) == 130
    assert "of all rows" in views.describe_costs(run)
    assert "100 points" in views.solution_cards(run.shown, run.comparison, views.labels_of(run))


def test_the_clusters_cost_at_most_what_the_labels_of_the_table_cost(finished):
    model = finished.model
    assert model.label_gap_ + model.lower_bound_ <= finished.comparison.rows[0]["objective"] + 1e-9
    assert "of all rows" not in views.describe_costs(finished)
    assert "refit the directions" in views.describe_costs(with_setting(finished, Setting(n_clusters=3)))


def test_the_csv_of_the_comparison_has_the_rows_of_compare(finished):
    head, *lines = csv.reader(io.StringIO(views.comparison_csv(finished.comparison).decode()))
    assert head == list(finished.comparison.rows[0])
    assert [line[0] for line in lines] == METHODS
    assert [float(line[head.index("lower")]) for line in lines] == [row["lower"] for row in finished.comparison.rows]


def test_the_table_has_values_bounds_rank_and_errors_of_every_method(finished):
    table, comparison = table_of(finished), finished.comparison
    assert cells(table, "method") == [f"{'(8)' if 'nu' in name else '(15)'} {name}" for name in METHODS]
    for name, value, bounds in zip(METHODS, cells(table, "value"), cells(table, "certified bounds"), strict=True):
        result, (lower, upper) = comparison.results[name], re.findall(r"[\d.]+", bounds)
        assert Fraction(lower) <= Fraction(result.lower) <= Fraction(result.upper) <= Fraction(upper)
        assert 0 <= Fraction(value) - Fraction(result.value) < 2e-6
    labels = comparison.labels["low_rank"]
    y = np.where(SMALL.table.labels == "+1", 1.0, -1.0)
    assert float(cells(table, "clustering error")[0]) == pytest.approx(dc.metrics.clustering_error(y, labels), abs=1e-4)
    X = dc.datasets.SCALINGS["standardize"](SMALL.table.X)
    objective = dc.certify_labels(X, labels, 0.0, ridge=0.3).objective
    assert 0 <= Fraction(cells(table, "objective of labels")[0]) - Fraction(objective) < 1e-4


def test_more_than_two_clusters_are_those_of_the_rows_of_each_factor(finished):
    table, comparison = table_of(with_setting(finished, Setting(n_clusters=3))), finished.comparison
    labels = dc.rounding.kmeans_rows(comparison.results["fista"].F, 3, n_init=3, rng=0)
    sizes = sorted(map(int, cells(table, "clusters")[1].split(" + ")))
    assert sizes == sorted(np.bincount(labels, minlength=3).tolist())
    X = dc.datasets.SCALINGS["standardize"](SMALL.table.X)
    proof = dc.certify_clusters(X, labels, 0.0, 3, ridge=0.3)
    assert float(cells(table, "objective of labels")[1]) == pytest.approx(proof.objective, abs=2e-4)
    index = dc.metrics.adjusted_rand_score(SMALL.table.labels, labels)
    assert float(cells(table, "adjusted Rand index")[1]) == pytest.approx(index, abs=1e-4)
    assert not any("best labels" in note for note in views.describe_others(comparison, {}, 3))
    assert any("best labels" in note for note in views.describe_others(comparison, {}, 2))


def test_clusters_are_numbered_as_the_classes_with_which_they_agree():
    rng = np.random.default_rng(0)
    for K, classes in ((2, 2), (3, 2), (2, 3), (4, 4)):
        reference, labels = rng.integers(classes, size=50), rng.integers(K, size=50)
        found = views.numbered_like(reference, labels, K)
        assert len(set(zip(found, labels, strict=True))) == len(set(labels.tolist())), "only the numbers change"
        if K == classes:
            assert np.array_equal(views.numbered_like(reference, (reference + 1) % K, K), reference)


def test_a_disagreement_is_a_sentence(finished, monkeypatch):
    comparison = finished.comparison
    assert views.describe_limits(comparison, 5.0) == []
    assert views.describe_agreement(comparison) == ["No disagreement beyond the certified bounds of 4 methods."]
    record = dc.registry.SOLVERS["fista"]

    def lie(*arguments, **options):
        found = record.function(*arguments, **options)
        return replace(found, value=found.value + 0.1, lower=found.lower + 0.1, upper=found.upper + 0.1)

    monkeypatch.setitem(dc.registry.SOLVERS, "fista", replace(record, function=lie))
    wrong = compared(names=["low_rank", "fista", "v_space"])
    assert views.describe_agreement(wrong.comparison)[0].startswith(
        "Disagreement: fista certifies that the optimum of (15) is at"
    )
    assert all("optimality gap" not in table_of(with_setting(wrong, Setting(n_clusters=K))).header for K in (2, 3))


def test_a_method_that_a_limit_stopped_is_named():
    data = page_data.planted_data(300, 60, 3, 0.0, 1.0, 0)
    found = compared(data, Setting(lam=0.01, time_limit=0.01), ["low_rank", "v_space"]).comparison
    assert found.results["low_rank"].status is Status.TIME_LIMIT
    (sentence,) = views.describe_limits(found, 0.01)
    assert sentence.startswith("The time limit, 0.01 s for all methods, stopped low_rank. The bounds are valid.")
    model = cluster_points(data.table, Setting(lam=0.01, time_limit=0.01))
    assert any("time limit reached" in text for text in views.describe_answer(data.table, model)[0])


def test_a_failed_method_is_named_with_its_reason(finished):
    comparison = finished.comparison
    failed = dc.comparison.MethodResult("(15)", reason="DataError: no such file")
    wrong = replace(comparison, method_results={**comparison.method_results, "fista": failed})
    assert "fista failed: DataError: no such file." in views.describe_others(wrong, {}, 2)
    labels = views.labels_of(replace(finished, comparison=wrong))
    assert "fista" not in views.solution_cards(SMALL.table, wrong, labels)


def image_of(html):
    return matplotlib.image.imread(io.BytesIO(b64decode(html.partition("base64,")[2].partition('"')[0])))


def test_the_rows_of_a_heat_map_are_sorted_by_class_then_by_cluster(finished):
    labels = views.labels_of(finished)["low_rank"]
    rows = views.row_order(SMALL.table, labels)
    pairs = list(zip(views.class_indices(SMALL.table)[rows], labels[rows], strict=True))
    assert pairs == sorted(pairs)
    assert sorted(rows) == list(range(24))
    large = page_data.planted_data(1000, 2, 1, 0.0, 0.3, 0).table
    assert len(views.row_order(large, np.zeros(1000, int))) == views.MAX_PIXELS


def test_a_heat_map_is_red_where_points_are_in_one_cluster_and_blue_elsewhere():
    y = np.repeat([1.0, -1.0], 5)
    image = image_of(views.heat_map(np.outer(y, y), 1.0, (), "Y"))
    assert image.shape[:2] == (10, 10)
    red, blue = image[..., 0] > image[..., 2], image[..., 2] > image[..., 0]
    np.testing.assert_array_equal(red, np.outer(y, y) > 0)
    np.testing.assert_array_equal(blue, np.outer(y, y) < 0)


def test_v_shows_the_features_with_the_largest_diagonal_entries():
    G = np.zeros((100, 1))
    G[[3, 70], 0] = 2.0, 1.0
    image, features = views.direction_map(SimpleNamespace(G=G), [f"x{j}" for j in range(100)])
    assert features == "x3 4, x70 1"
    assert image_of(image).shape[:2] == (60, 60)
    assert views.direction_map(SimpleNamespace(G=None), ["a"]) == ("", "")


def test_the_spectrum_is_that_of_y_over_n(finished):
    result = finished.comparison.results["low_rank"]
    text = views.spectrum_bars(result)[1]
    largest = np.linalg.eigvalsh(result.F @ result.F.T / 24)[::-1][:3]
    assert list(map(float, text.split(", "))) == pytest.approx(largest, abs=1e-3)


@pytest.mark.parametrize(
    ("source", "K", "sample"), [("planted", 2, None), ("planted", 3, None), ("known", 2, 50), ("file", 3, None)]
)
def test_the_python_of_the_page_repeats_what_it_shows(source, K, sample, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.csv").write_text(TABLE)
    data = {"planted": lambda: SMALL, "known": lambda: page_data.known_data("heart"), "file": uploaded}[source]()
    setting = Setting(nu=0.9, ridge=0.1, alpha=0.2, n_clusters=K, tol=1e-3, standardize=source != "planted")
    run = compared(data, setting, ["low_rank", "fista", "v_space", "constrained_alpha", "CVXPY"], sample)
    found, names = run.comparison, {}
    exec(views.python_code(run.request), names)
    assert "low_rank" in capsys.readouterr().out
    assert list(found.results) == run.request.methods
    for name in found.results:
        assert names["comparison"].results[name].bracket == found.results[name].bracket
        np.testing.assert_array_equal(names["F"][name], found.results[name].F)
    if K > 2:
        same = [dc.metrics.adjusted_rand_score(names["labels"][name], labels)
                for name, labels in views.labels_of(run).items()]  # fmt: skip
        assert same == [1.0] * len(found.results)
    np.testing.assert_array_equal(names["model"].labels_, run.model.labels_)
    assert names["model"].label_gap_ == run.model.label_gap_


def test_the_page_opens_with_seven_eight_eleven_and_fifteen_of_a_small_planted_table_and_all_its_parts():
    outputs, names = app.run()
    text = " ".join(output.text for output in outputs if hasattr(output, "text"))
    for part in ("Compare relaxations", "Values and certified bounds", "Solutions", "Clusters of the table", "Python"):
        assert part in text
    assert {row["problem"] for row in names["shown"].comparison.rows} == {"(7)", "(8)", "(11)", "(15)"}
    assert names["setting"] == Setting(), "the defaults of the estimator"
    assert "No disagreement beyond the certified bounds of 6 methods." in text
    assert "Why costs (objective values) can be lower here than above" in text


def test_an_error_of_the_data_is_shown_and_nothing_else():
    values = {"n": 30, "d": 4, "sparsity": 7, "seed": 0, "noise": 0.3, "imbalance": 0.0, "source": "planted"}
    controls = {name: SimpleNamespace(value=value) for name, value in values.items()}
    outputs, names = app.run(defs={**controls, "known": None, "file": SimpleNamespace(value=[])})
    assert names["data"] is None
    assert any("sparsity = 7" in output.text for output in outputs if hasattr(output, "text"))
    assert names["shown"] is None


@pytest.mark.parametrize(
    ("port", "said"),
    [
        (0, "is not a valid port.*--port"),
        (70_000, "is not a valid port.*--port"),
        ("used", "is in use.*--port"),
        ("without marimo", r"pip install 'diffrac-cvx\[explore\]'"),
    ],
)
def test_a_port_that_cannot_be_used_and_a_missing_package_are_said_in_one_line(port, said, monkeypatch, capsys):
    if port == "without marimo":
        monkeypatch.setattr(launcher, "find_spec", lambda name: None)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        number = port if isinstance(port, int) else other.getsockname()[1]
        monkeypatch.setattr(sys, "argv", ["explore", "--headless", "--port", str(number)])
        with pytest.raises(SystemExit) as end:
            launcher.main()
    line = capsys.readouterr().err
    assert (end.value.code, line.count("\n")) == (2, 1)
    assert re.search(said, line)


def test_a_port_is_free_again_after_its_program_has_ended():
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", 0))
        port = other.getsockname()[1]
    launcher.require_port(port)
