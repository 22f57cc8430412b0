"""The experiments of Figures 3 and 4: their grids, their measurements, and their fits."""

import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import diffrac_cvx as dc
from diffrac_cvx.problem.result import Status
from diffrac_cvx.solvers.reference import takes_long
from experiments import methods
from experiments.methods import solve_here
from experiments.robustness import cells as robustness_cells
from experiments.runtime import cells as runtime_cells
from experiments.runtime import findings

# The grids.


def test_without_pymanopt_its_curve_is_left_out_with_a_word(monkeypatch, capsys):
    max_cut = methods.METHODS[methods.MAX_CUT]._replace(package="no-such-package")
    monkeypatch.setitem(methods.METHODS, methods.MAX_CUT, max_cut)
    cells = runtime_cells.cells_of("smoke")
    assert "pip install no-such-package" in capsys.readouterr().out
    assert methods.MAX_CUT not in {cell["method"] for cell in cells}


# What is measured.


def planted(n=80, d=5):
    return dc.datasets.make_planted(n, d, 2, noise=0.3, rng=0)


@pytest.mark.parametrize("method", ["low_rank", "accelerated FISTA", "CVXPY + SCS", methods.MAX_CUT])
def test_a_method_climbs_to_both_relative_gaps_and_the_looser_one_comes_first(method):
    row = runtime_cells.reach_gaps(planted(), 0.0, method)
    assert 0.0 < row["time_to_1e-2"] <= row["time_to_1e-4"]
    assert row["gap"] <= 1e-4 * row["value"]
    assert row["reason"] == ""


def test_a_goal_that_is_not_reached_within_the_limit_has_no_time(monkeypatch):
    monkeypatch.setattr(runtime_cells, "LIMIT", 0.05)
    row = runtime_cells.reach_gaps(planted(300, 20), 0.0, methods.PUBLISHED)
    assert np.isnan(row["time_to_1e-2"])
    assert np.isnan(row["time_to_1e-4"])
    assert row["reason"].startswith("stopped")


def test_time_in_which_the_processor_does_something_else_does_not_count():
    def wait_and_solve():
        time.sleep(0.3)
        return replace(dc.low_rank(planted().X), seconds=0.4)

    result = methods.in_processor_time(wait_and_solve)
    assert 0.0 < result.seconds < 0.2
    assert all(line.seconds < 0.1 for line in result.history)


def test_the_solution_without_penalty_is_none_with_a_large_one_and_is_one_with_a_tiny_one():
    X = planted().X
    plain = dc.low_rank(X, tol=1e-8)  # that of the max-cut form
    for lam, other in ((0.1, True), (1e-12, False)):
        penalty = dc.Penalty.l1(lam)
        best = dc.low_rank(X, 1.0, penalty, tol=1e-7)
        excess, gaps = dc.certify_v(X, plain, 1.0, penalty).upper - best.upper, plain.gap + best.gap
        assert (excess > 10 * gaps) if other else (excess <= gaps + 1e-9)


def test_an_iteration_is_timed_without_the_set_up():
    row = runtime_cells.time_iterations(planted(500, 10), 0.001)
    assert row["iterations"] == runtime_cells.STEPS
    assert 0.0 < row["iteration_seconds"] < row["seconds"] / (runtime_cells.STEPS - 25)


# Fits.


def power_table(exponent):
    """Times of a power law of n with little noise."""
    n, rng = np.repeat([10, 100, 1000, 10_000], 3), np.random.default_rng(0)
    return pd.DataFrame({"n": n, "iteration_seconds": 1e-6 * n**exponent * np.exp(0.01 * rng.standard_normal(12))})


def test_the_fitted_exponent_is_that_of_a_power_law_and_its_interval_holds_it():
    found = findings.fit_exponent(power_table(1.2), "n", "iteration_seconds")
    assert found.within(1.15, 1.25)
    assert found.low < 1.2 < found.high
    assert not np.isfinite(findings.fit_exponent(power_table(1.2).query("n < 2000"), "n", "iteration_seconds").value)


def test_only_instances_that_both_finish_are_paired_and_the_quicker_of_a_group_counts():
    instances = {"lam": 0.0, "panel": "n", "n": 10, "d": 2, "replication": [0, 0, 0, 1]}
    table = pd.DataFrame({**instances, "method": ["a", "b", "c", "a"], "seconds": [4.0, 2.0, 1.0, 9.0]})
    assert [side.tolist() for side in findings.paired(table, ["a", "b"], ["c"], "seconds")] == [[2.0], [1.0]]


# Figure 4.


@pytest.mark.parametrize("method", robustness_cells.METHODS)
def test_every_method_clusters_two_clean_dimensions(method):
    row = robustness_cells.measure(method, 0.0, 2, 0)
    assert row["error"] < 0.05
    assert row["met"] == 1


def test_a_run_of_fista_that_uses_up_its_iterations_is_said_to(monkeypatch):
    monkeypatch.setattr(robustness_cells, "MOST_ITERATIONS", 100)
    assert robustness_cells.measure("FISTA, 1e-3", 0.001, 8, 0)["met"] == 0


# CVXPY's solvers are timed in the process that runs them.


@pytest.mark.parametrize("solver", ["SCS", pytest.param("CLARABEL", marks=pytest.mark.slow)])
def test_the_seconds_of_a_solve_through_cvxpy_are_those_of_the_processor_that_did_it(solver):
    X = planted(4000, 10).X  # large enough that `dc.solve` with a limit starts a process
    assert takes_long(dc.v_space(X, lam=0.01).size, solver)
    result = methods.in_processor_time(methods.OWN[f"CVXPY + {solver}"], X, 0.01, 0)
    assert result.seconds > 0.1
    assert result.gap < 1e-2


def test_a_solver_of_cvxpy_that_its_own_limit_ends_says_so():
    relaxation = dc.v_space(planted(200, 30).X, lam=0.01)
    result = solve_here(relaxation, "SCS", 1e-3, tol=1e-9, eps_abs=1e-12, eps_rel=1e-12)
    assert result.status is Status.USER_LIMIT
    assert result.lower <= result.upper
