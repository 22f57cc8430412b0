"""One record registers a relaxation, solver or baseline everywhere: a toy is added, found and removed."""

import inspect
from dataclasses import replace

import numpy as np
import pytest

import diffrac_cvx as dc
from diffrac_cvx import registry
from diffrac_cvx.app.cli.program import run_command_line
from diffrac_cvx.comparison import list_methods
from diffrac_cvx.registry import ComparisonTask, RelaxationRecord, SolverRecord, baseline_method

PLANTED = dc.datasets.make_planted(20, 3, noise=0.1, rng=0)


def toy(X, nu=1.0):
    """Relax as Eq. (8) does."""
    return replace(dc.penalized_nu(X, nu), name="toy")


def toy_solver(X, nu=1.0, penalty=dc.Penalty(), *, tol=1e-4, time_limit=None, callback=None, max_iter=1000):  # noqa: B008
    """Solve as low_rank does."""
    found = dc.low_rank(X, nu, penalty, tol=tol, time_limit=time_limit, callback=callback, max_iter=max_iter)
    return replace(found, solver="toy_solver")


def toy_baseline(X, *, rng):
    """Return labels without looking at the data."""
    return np.random.default_rng(rng).choice([-1.0, 1.0], size=len(X))


@pytest.fixture
def toys(monkeypatch):
    """One record of each kind, while a test lasts."""
    record = RelaxationRecord(toy, ("toy (8)",), "penalised imbalance, again", takes=("nu",), penalty=())
    monkeypatch.setitem(registry.RELAXATIONS, "toy", record)
    monkeypatch.setitem(registry.SOLVERS, "toy_solver", SolverRecord(toy_solver, penalty=("ridge",)))
    monkeypatch.setitem(registry.BASELINES, "coin", baseline_method(toy_baseline, "nothing"))


def test_compare_runs_a_toy_and_leaves_it_out_where_its_record_says_so(toys):
    methods = ["low_rank", "toy/SCS", "toy/CLARABEL", "toy_solver", "coin"]
    found = dc.compare(PLANTED.X, methods=methods, nu=0.7)
    assert list(found.method_results) == methods
    assert not any(one.reason for one in found.method_results.values())
    assert found.disagreements == ()
    assert found.method_results["toy/SCS"].problem == "toy (8)"
    assert {"toy/SCS", "toy_solver", "coin"} <= set(list_methods())
    found = dc.compare(PLANTED.X, methods=["toy/SCS", "toy_solver"], penalty=dc.Penalty(c=0.1))
    assert found.method_results == {}
    assert "toy/SCS, toy_solver were skipped: it takes no l1 penalty" in found.notes
    assert len(found.table) == 0
    assert "skipped" in str(found)
    assert "skipped" in found._repr_html_()


def test_the_command_line_lists_and_runs_a_toy(toys, tmp_path, capsys):
    table = tmp_path / "table.csv"
    np.savetxt(table, PLANTED.X, delimiter=",", header="a,b,c", comments="")
    assert run_command_line(["compare", str(table), "-m", "magic"]) == 2
    assert "toy/SCS" in capsys.readouterr().err
    assert run_command_line(["compare", str(table), "--ridge", "0", "-m", "toy/SCS", "-m", "toy_solver"]) == 0
    assert "toy (8)" in capsys.readouterr().out


def test_every_relaxation_has_one_record_with_the_parameters_of_its_builder():
    functions = {name: found for name in dc.__all__ if inspect.isfunction(found := getattr(dc, name))}
    builders = {  # `triangles` takes a relaxation
        name
        for name, f in functions.items()
        if inspect.signature(f).return_annotation in ("Relaxation", dc.Relaxation)
        and "X" in inspect.signature(f).parameters
    }
    assert set(registry.RELAXATIONS) == builders  # no toy is left
    assert len({record.equation for record in registry.RELAXATIONS.values()}) == len(builders)
    for name, record in registry.RELAXATIONS.items():
        assert record.builder is getattr(dc, name)
        shared = {"lam", "ridge", "sample_weight", "products"}  # weights of a penalty and of points, and an option
        parameters = [name for name in inspect.signature(record.builder).parameters if name not in shared]
        assert record.takes == tuple(parameters)[1:]
        built = record.build(ComparisonTask(X=PLANTED.X, alpha=0.2))
        assert built.name == name
        with pytest.raises(dc.DataError, match="row 3, column 1"):
            record.build(ComparisonTask(X=np.where(PLANTED.X == PLANTED.X[3, 1], np.nan, PLANTED.X), alpha=0.2))
        assert built.size.side <= record.side(*PLANTED.X.shape)
        for equation in record.equations:
            assert equation.strip("()") in inspect.getdoc(record.builder), equation


@pytest.mark.parametrize("name", registry.RELAXATIONS)
def test_a_record_takes_the_penalties_that_its_builder_takes(name):
    record = registry.RELAXATIONS[name]
    for part, penalty in (("ridge", dc.Penalty(a=0.1)), ("l1", dc.Penalty(c=0.1))):
        if part in record.penalty:
            record.build(ComparisonTask(X=PLANTED.X, penalty=penalty, alpha=0.5))
        elif "penalty" in record.takes:
            with pytest.raises(dc.ParameterError):
                record.build(ComparisonTask(X=PLANTED.X, penalty=penalty, alpha=0.5))
