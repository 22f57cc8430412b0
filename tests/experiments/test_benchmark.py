"""The benchmark: which methods run on which instances, how results are certified, and how failures are shown."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from toy import Here

import diffrac_cvx as dc
from diffrac_cvx.machine.processes import OutOfTimeError, WorkerDiedError
from experiments import methods, problems
from experiments.benchmark import cells, convergence, findings, scale
from experiments.methods import solve_max_cut
from experiments.problems import FAMILIES, OUTLIER, make_instance, make_rows, make_words, write_rows

SMALL = problems.SMOKE[0]


def row_of(method="low_rank", instance=SMALL.name, **entries):
    usual = {
        "instance": instance, "n": 80, "d": 6, "lam": 0.1, "limit": 20.0, "method": method, "reason": "",
        "seconds": 0.5, "peak_MB": 3.0, "own_lower": 0.1, "own_upper": 0.100001,
        "judged_lower": 0.1, "judged_upper": 0.100001, "status": "met",
        "time_to_1e-2": 0.2, "time_to_1e-4": 0.5, "upper_time_to_1e-2": 0.1001, "upper_time_to_1e-4": 0.100001,
    }  # fmt: skip
    return usual | entries


NO_ANSWER = dict.fromkeys(
    ("own_lower", "own_upper", "judged_lower", "judged_upper", "seconds", "peak_MB", *cells.TIMES), np.nan
)
STOPPED = {"time_to_1e-2": np.nan, "time_to_1e-4": np.nan, "reason": "stopped after 20 s"}
TABLE = cells.complete(
    pd.DataFrame(
        [
            row_of(),
            row_of("accelerated FISTA", **{"time_to_1e-4": np.nan}),
            row_of("FISTA as published", **STOPPED),
            row_of("CVXPY + SCS", **NO_ANSWER, reason="not run: the problem needs about 30 GB"),
            row_of("CVXPY + CLARABEL", **NO_ANSWER, reason="out of memory at 8 GB"),
        ]
    )
)


# The grid


def test_no_cell_is_there_twice_and_max_cut_has_no_l1_penalty(monkeypatch, tmp_path):
    monkeypatch.setenv("DIFFRAC_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(cells, "timed_data_of", lambda name: None)
    found = pd.DataFrame(cells.cells_of("full"))
    assert not found.duplicated(["instance", "method"]).any()
    assert set(found["method"]) == set(methods.METHODS)
    assert set(found.loc[found["method"] == "max-cut, pymanopt", "lam"]) == {0.0}
    assert (found.groupby("instance")["limit"].nunique() == 1).all(), "a limit is the same for all methods"


@pytest.mark.parametrize("name", [SMALL.name, "breast_cancer 683 x 10, 0", "dense 1000 x 40, 0"])
def test_the_columns_have_mean_zero_and_variance_one_and_in_the_dense_instance_correlated_neighbors(name):
    X = problems.timed_data_of(name)
    assert X.shape == problems.INSTANCES[name][1:3]
    np.testing.assert_allclose(X.mean(axis=0), 0.0, atol=1e-10)
    np.testing.assert_allclose((X**2).mean(axis=0), 1.0)
    if name.startswith("dense"):
        correlation = np.mean(np.sum(X[:, 1:] * X[:, :-1], axis=0)) / len(X)
        assert correlation == pytest.approx(problems.CORRELATION, abs=0.05)


# One cell


def cell_of(method):
    return next(cell for cell in cells.cells_of("smoke") if cell["method"] == method)


def test_a_cell_is_solved_and_judged(monkeypatch):
    monkeypatch.setattr(cells, "Worker", Here)
    row = cells.measure(**cell_of("low_rank"))
    assert row["reason"] == ""
    assert row["judged_lower"] <= row["own_upper"] + 1e-9
    assert row["own_lower"] <= row["judged_upper"] + 1e-9
    assert row["judged_upper"] == pytest.approx(row["own_upper"], abs=1e-9)
    assert 0 < row["time_to_1e-2"] <= row["time_to_1e-4"] <= 2 * row["seconds"]


def test_a_factor_of_y_alone_is_judged_like_a_v():
    instance = problems.SMOKE[1]
    X = problems.timed_data_of(instance.name)
    result = solve_max_cut(X, None, 1.0, 10.0, gradient_norm=1e-6)
    answer = cells.Answer(1.0, dc.Bracket(0, 1), result.status, (np.nan, np.nan), cells.point_of(X, result))
    bracket = cells.judge(instance.name, answer)
    assert bracket.gap < 1e-5
    assert bracket.upper == pytest.approx(result.upper, abs=1e-6)


def test_a_rival_proves_a_small_gap_and_one_that_is_not_installed_is_a_row_that_names_its_package(monkeypatch):
    name = "CVXPY + MOREAU"
    method = methods.METHODS[name]
    if not method.missing:
        result = method.rungs[-1].solve(problems.timed_data_of(SMALL.name), dc.Penalty.l1(SMALL.lam), 1.0, 20.0)
        assert cells.relative_gap(dc.Bracket(result.lower, result.upper)) < methods.GOALS[-1]
    monkeypatch.setitem(methods.METHODS, name, method._replace(package="no-such-package"))
    cell = cell_of(name)
    found = cells.complete(pd.DataFrame([row_of(), cell | cells.measure(**cell)]))
    assert found["reason"][1] == "not run: no-such-package is not installed. Run pip install no-such-package."
    assert findings.seconds_text(found.iloc[1]) == "not run"
    assert findings.check(found).passed


def answer_of(gap, seconds=5.0, status=dc.Status.OPTIMAL, reached=(np.nan, np.nan), upper=1.0):
    return cells.Answer(seconds, dc.Bracket(upper * (1.0 - gap), upper), status, reached, None)  # not certified


@pytest.fixture
def climb(monkeypatch):
    """Run settings with these results: return the times to both goals, and the settings that were run."""

    def run(*answers, method="CVXPY + SCS"):
        given, asked = iter(answers), []
        monkeypatch.setattr(cells, "judge", lambda instance, answer: cells.UNKNOWN)

        def call(function, instance, method, *setting, seconds):
            asked.append(setting)
            return next(given)

        worker = SimpleNamespace(call=call, peak=1e6)
        row = cells.summarize(SMALL.name, list(cells.climb(worker, SMALL.name, method, 20.0)), 20.0)
        return [row[column] for column in cells.TIMES], asked

    return run


def test_a_ladder_ends_once_the_tighter_goal_is_reached_and_its_tolerance_follows_the_optimum(climb):
    times, asked = climb(answer_of(1e-1), answer_of(1e-3), answer_of(1e-5))
    assert times == [5.0, 5.0]
    assert [rung for rung, _ in asked] == [0, 1, 2]
    _, asked = climb(answer_of(0.004, upper=0.25), answer_of(0.0), method="low_rank")
    assert asked == [(0, 1.0), (2, 0.25)], "a setting for a goal that is reached is passed over"


@pytest.mark.parametrize(
    ("answers", "times"),
    [
        ([answer_of(0.5, 20.0, dc.Status.TIME_LIMIT)], [np.nan, np.nan]),
        ([answer_of(0.5, 23.0)], [np.nan, np.nan]),
        ([answer_of(1e-5, seconds) for seconds in (0.3, 0.1, 0.2)], [0.1, 0.1]),  # fast: the shortest of three
        ([answer_of(1e-5, 5.0, reached=(1.0, 4.0))], [1.0, 4.0]),  # by the history
    ],
)
def test_a_limit_ends_the_ladder_and_a_time_is_the_least_that_is_known(climb, answers, times):
    np.testing.assert_array_equal(climb(*answers)[0], times)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OutOfTimeError(23.0), "killed after 23 s without an answer"),
        (MemoryError(), "out of memory at 8 GB"),
        (dc.ResourceError("it needs 30 GB, but only 8 GB are available; take low_rank"), "not run: it needs 30 GB"),
        (WorkerDiedError(-9), "the process died: SIGKILL"),
        (np.linalg.LinAlgError("no convergence"), "failed: LinAlgError: no convergence"),
    ],
)  # fmt: skip
def test_every_failure_has_its_words(error, said):
    assert cells.explain(error, 20.0).startswith(said)


# The judge over all methods


def test_a_time_that_the_judge_does_not_confirm_is_dropped():
    optimiztic = row_of("FISTA as published", own_lower=0.0999, judged_upper=0.11, **{"upper_time_to_1e-2": 0.11})
    found = cells.complete(pd.DataFrame([row_of(), optimiztic])).set_index("method")
    assert np.isnan(found.loc["FISTA as published", "time_to_1e-2"])
    assert found.loc["low_rank", "time_to_1e-4"] == 0.5
    assert found.loc["FISTA as published", "relative_gap"] == pytest.approx(0.01 / 0.11)


def test_an_answer_too_large_for_the_judge_keeps_its_times():
    unjudged = {name: np.nan for name in row_of() if name.startswith(("judged", "upper"))}
    found = cells.complete(pd.DataFrame([row_of(**unjudged)])).iloc[0]
    assert found["time_to_1e-4"] == 0.5
    assert np.isnan(found["relative_gap"])
    assert findings.OWN in findings.gap_text(found)


def test_brackets_that_lie_apart_fail_the_command():
    assert findings.check(TABLE).passed
    wrong = cells.complete(pd.DataFrame([row_of(), row_of("CVXPY + SCS", own_lower=0.2, own_upper=0.3)]))
    verdict = findings.check(wrong)
    assert not verdict.passed
    assert "CVXPY + SCS own_lower is 0.2" in verdict.text


# What a reader sees


def test_times_limits_and_failures_have_their_words():
    words = {row["method"]: findings.seconds_text(row) for _, row in TABLE.iterrows()}
    assert words == {
        "low_rank": "0.2; 0.5",
        "accelerated FISTA": "0.2; no",
        "FISTA as published": "> 20",
        "CVXPY + SCS": "not run",
        "CVXPY + CLARABEL": "out of memory",
    }
    head, row = findings.pivot(TABLE, findings.gap_text).lines()
    assert head[:3] == ["instance", "low_rank", "FISTA, accelerated"]
    assert row[:2] == ["planted 80 \N{MULTIPLICATION SIGN} 6, λ = 1/√n", "1.00e-05 in 0.5"]


def test_methods_are_counted_where_they_were_run_and_compared_where_both_solve():
    assert findings.reached(TABLE).loc["low_rank", ["run", "to 0.01", "to 0.0001"]].tolist() == [1, 1, 1]
    assert findings.reached(TABLE).loc["CVXPY + SCS", ["run", "to 0.01"]].tolist() == [0, 0]
    slower = row_of("accelerated FISTA", **{"time_to_1e-2": 0.8, "time_to_1e-4": np.nan})
    found = findings.ahead(cells.complete(pd.DataFrame([row_of(), slower])))
    assert found.loc[("accelerated FISTA", 0.01), ["both", "median"]].tolist() == [1, pytest.approx(4.0)]
    assert found.loc[("accelerated FISTA", 1e-4), ["both", "only `low_rank`"]].tolist() == [0, 1]
    assert len(findings.findings(TABLE)) == 2


# Convergence to a certified gap: the instances, and detection of incorrect statuses


@pytest.mark.parametrize("family", FAMILIES)
def test_an_instance_depends_on_its_name_and_size_alone(family):
    X, nu, penalty = make_instance(family, 12, 5)
    again, *_ = make_instance(family, 12, 5)
    assert X.shape == (12, 5)
    np.testing.assert_array_equal(X, again)
    assert 0.0 < nu <= 1.0
    assert penalty.has_l1 == (not family.endswith("no penalty"))
    if "outlying rows" in family:
        assert np.abs(X).max() > OUTLIER / 10


def test_a_goal_that_is_not_reached_is_not_counted_and_a_false_status_is_noticed():
    deadline = convergence.Deadline(60.0)
    X, nu, penalty = make_instance("planted", 12, 5)
    result = dc.low_rank(X, nu, penalty, tol=1e-4)
    good = convergence.read(result, 1e-4, deadline)
    assert (good["solved 0.0001"], good["true 0.0001"]) == (1, 1)
    missed = convergence.read(result, result.gap / 2, deadline)
    label = f"{result.gap / 2:g}"
    assert (missed[f"solved {label}"], missed[f"true {label}"]) == (0, 0)
    stopped = dc.low_rank(X, nu, penalty, tol=1e-12, max_iter=10)
    assert convergence.read(stopped, 1e-12, deadline)["true 1e-12"] == 1


def test_a_deadline_stops_a_solver_that_would_go_on():
    instance = make_instance("correlated", 100, 100)
    result = convergence.solve("low_rank", instance, 1e-14, convergence.Deadline(0.1))
    assert result.status in (dc.Status.STOPPED, dc.Status.TIME_LIMIT)  # processor or wall-clock time
    assert result.gap > 1e-14


def test_an_incorrect_status_and_bounds_that_contradict_those_of_another_solver_fail_the_check():
    cells = [{"family": "planted", "n": 5, "d": 1, "method": name} for name in ("low_rank", "fista")]
    table = convergence.complete(pd.DataFrame([{**cell, **convergence.measure(**cell)} for cell in cells]))
    assert convergence.check(table).passed
    assert convergence.reached_fractions(table).loc["low_rank", ["instances", "to 1e-08"]].tolist() == [1, 1]
    assert convergence.by_family(table, 1e-4).loc["planted", "low_rank"] == "1 of 1"
    untrue = table.copy()
    untrue.loc[0, "true 0.0001"] = 0
    assert not convergence.check(untrue).passed
    lying = table.copy()
    lying.loc[lying["method"] == "low_rank", ["lower 0.0001", "lower 1e-08"]] += 0.1
    assert not convergence.check(convergence.complete(lying)).passed


# Tables larger than memory, as in ``make scale``: limits on time, memory and passes

LARGE = [{"kind": "rows", "n": 50_000, "d": 50}, {"kind": "words", "n": 2_000, "d": 200}]


def test_small_tables_are_solved_within_what_is_promised_and_what_was_measured_is_said(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small = pd.DataFrame([{**cell, **scale.measure(**cell)} for cell in LARGE])
    assert scale.check(small).passed
    for column, value, words in (
        ("gap", 2e-3, "the gap is 0.0021"),  # 2e-3 as a double is a little more
        ("memory", 3e9, "3.00 GB of memory"),
        ("passes", 61.0, "61 passes"),
    ):
        outcome = scale.check(small.assign(**{column: value}))
        assert not outcome.passed
        assert words in outcome.text
    (found,) = scale.findings(small)
    rows, words = (row for _, row in found.table.iterrows())
    assert (rows["n x d"], rows["selected words"]) == ("50,000 x 50", "none")
    assert words["n x d"] == "2,000 x 200"
    assert int(words["selected words"]) > 0


def test_the_tables_are_what_they_are_said_to_be(tmp_path):
    write_rows(tmp_path / "rows.npy", 3000, 5)
    X = np.load(tmp_path / "rows.npy", mmap_mode="r")
    assert X.dtype == np.float32
    np.testing.assert_array_equal(X, make_rows((2017, 14, 0), 3000, 5))
    words = make_words(1000, 300)
    assert words.shape == (1000, 300)
    assert words.has_canonical_format
    assert 8 < words.nnz / 1000 < 20
    assert dc.low_rank(X, tol=1e-4).value < 0.1


@pytest.mark.slow
@pytest.mark.parametrize("cell", [scale.cells_of("full")[k] for k in (2, -1)], ids=["a file of 4 GB", "words"])
def test_the_largest_tables_are_solved_within_what_is_promised(cell, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outcome = scale.check(pd.DataFrame([{**cell, **scale.measure(**cell)}]))
    assert outcome.passed, outcome.text
