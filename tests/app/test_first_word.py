"""Start-up: large packages are imported lazily, and a command reports its first step at once."""

import subprocess
import sys

import pytest

from diffrac_cvx.app.cli.program import first_line


def run_python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120).stdout


def test_importing_the_package_and_solving_import_nothing_that_is_large_and_every_name_is_there():
    code = (
        "import sys, diffrac_cvx as dc; print(*sys.modules); print(dc.fista.__module__); "
        "dc.low_rank(dc.datasets.make_planted(30, 3, rng=0).X); print(*sys.modules); "
        "from diffrac_cvx import lifted; assert set(dc.__all__) <= set(dir(dc)); "
        "assert all(hasattr(dc, name) for name in dir(dc)); print(*sys.modules)"
    )
    first, place, solved, then = run_python(code).splitlines()
    large = {"cvxpy", "scs", "clarabel", "matplotlib", "pandas", "sklearn", "scipy", "numpy"}
    assert large.isdisjoint(first.split())
    assert place == "diffrac_cvx.solvers.smoothed_dual.solver"
    assert {"marimo", *large}.difference({"numpy", "scipy"}).isdisjoint(solved.split())
    assert {"cvxpy", "scs", "clarabel", "matplotlib"}.isdisjoint(then.split())


def test_clusters_are_found_without_cvxpy_and_reported_without_pyplot(tmp_path):
    code = (
        "import sys; from diffrac_cvx.app.cli.program import run_command_line as run; "
        "how = ['cluster', 'heart', '-q', '--no-structure']; "
        f"print(run(how), *sys.modules); print(run([*how, '--report', {str(tmp_path / 'r.html')!r}]), *sys.modules)"
    )
    plain, reported = (line.split() for line in run_python(code).splitlines())
    assert plain[0] == reported[0] == "0"
    assert "diffrac_cvx.estimators.clustering" in plain
    assert {"cvxpy", "scs", "clarabel", "matplotlib", "jinja2"}.isdisjoint(plain)
    assert "matplotlib.figure" in reported
    assert {"cvxpy", "matplotlib.pyplot"}.isdisjoint(reported)


def test_a_command_says_what_it_does_before_it_imports_anything_large():
    code = """
import io, sys
class Terminal(io.StringIO):
    def write(self, text):
        print(repr(text), *sys.modules)
        sys.exit(0)
sys.stderr, sys.argv = Terminal(), ["diffrac-cvx", "cluster", "heart", "--label", "x"]
from diffrac_cvx.app.entry import entry
entry()
"""
    said, loaded = run_python(code).split("\\n' ")
    assert said == "'reading heart ..."
    assert {"numpy", "typer", "rich", "sklearn"}.isdisjoint(loaded.split())


@pytest.mark.parametrize(
    ("arguments", "said"),
    {
        "compare table.csv -l 0.1": "reading table.csv ...",
        "path --over nu table.csv": "reading the table ...",
        "explore": "",
        "cluster table.csv --quiet": "",
        "cluster table.csv -qo out.csv": "",
        "compare table.csv --json": "",
        "cluster --help": "",
        "--help": "",
        "dance table.csv": "",
        "": "",
    }.items(),
)
def test_the_first_line_says_what_is_begun_unless_the_command_is_to_be_silent(arguments, said):
    assert first_line(arguments.split()) == said
