"""Start-up: large packages are imported lazily."""

import subprocess
import sys

from diffrac_cvx.app.cli.program import COMMANDS


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
    large = {"cvxpy", "scs", "clarabel", "matplotlib", "pandas", "sklearn", "scipy", "numpy", "requests"}
    assert large.isdisjoint(first.split())
    assert place == "diffrac_cvx.solvers.fista_dual"
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


def test_the_help_names_every_command_in_80_columns_and_imports_nothing_that_is_large():
    code = (
        "import sys; from diffrac_cvx.app.cli.program import run_command_line; run_command_line([]); "
        "print(*sys.modules)"
    )
    *shown, loaded = run_python(code).splitlines()
    assert max(map(len, shown)) <= 80
    assert all(any(line.startswith(f"  {name} ") for line in shown) for name in COMMANDS)
    assert {"numpy", "scipy", "pandas", "sklearn", "matplotlib"}.isdisjoint(loaded.split())
