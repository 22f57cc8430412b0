"""What the library warns of, and advises in Python's words, does not reach the terminal as it is."""

import re
import warnings
from dataclasses import replace

import numpy as np
import pytest

from diffrac_cvx import registry
from diffrac_cvx.app.cli.program import run
from diffrac_cvx.problem.result import Status


@pytest.fixture
def ugly(tmp_path):
    """A table with a constant column."""
    X = np.random.default_rng(0).standard_normal((40, 4))
    X[:, 0] += 3.0 * (np.arange(40) % 2)
    X[:, 3] = 7.0
    np.savetxt(tmp_path / "ugly.csv", X, delimiter=",", header="a,b,c,flat", comments="")
    return str(tmp_path / "ugly.csv")


@pytest.mark.parametrize(
    "command",
    [
        ("path", "--points", "3"),
        ("path", "--over", "alpha", "--points", "2"),
        ("compare", "-m", "low_rank"),
        ("compare", "-m", "k-means"),
        ("cluster",),
    ],
    ids=" ".join,
)
def test_a_warning_of_the_library_is_a_note_and_does_not_reach_the_terminal(command, ugly, capsys):
    with warnings.catch_warnings(record=True) as leaked:
        warnings.simplefilter("always")
        run([command[0], ugly, *command[1:]])
    printed = capsys.readouterr()
    assert not [one for one in leaked if not issubclass(one.category, ResourceWarning)]
    assert "Warning" not in printed.err
    assert len(re.findall("constant", printed.out)) == 1


def test_an_overflow_is_no_warning_in_the_terminal(tmp_path, capsys):
    np.savetxt(tmp_path / "huge.csv", np.random.default_rng(0).standard_normal((20, 2)) * [1.0, 1e200], delimiter=",")
    with warnings.catch_warnings(record=True) as leaked:
        warnings.simplefilter("always")
        run(["path", str(tmp_path / "huge.csv"), "--points", "2"])
    assert not leaked


@pytest.mark.parametrize("status", [Status.MAX_ITER, Status.TIME_LIMIT, Status.PUBLISHED, Status.STALLED])
def test_the_program_gives_no_advice_on_what_is_no_option_of_it(status, monkeypatch, capsys):
    right = registry.SOLVERS["low_rank"]

    def ended(*arguments, **options):
        return replace(right.function(*arguments, **options), status=status)

    monkeypatch.setitem(registry.SOLVERS, "low_rank", replace(right, function=ended))
    run(["compare", "heart", "-m", "low_rank"])
    (said,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("low_rank: ")]
    assert re.search(r"max_iter|(?<!-)\btime_limit|epsilon|larger tol", said) is None
    assert "the bracket is valid" in said or "double precision" in said


def test_the_help_names_every_solver_that_a_mistake_in_its_name_lists(capsys):
    run(["cluster", "--help"])
    said = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert all(name in said for name in registry.SOLVERS)
