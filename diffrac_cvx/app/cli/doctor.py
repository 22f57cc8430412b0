"""``diffrac-cvx doctor``: report and self-test of the installation."""

import os
import platform
import sys
from importlib import metadata
from typing import Any

import numpy as np
import threadpoolctl

from diffrac_cvx import datasets, metrics, rounding
from diffrac_cvx.app.cli import options
from diffrac_cvx.app.cli.console import Console
from diffrac_cvx.problem.penalty import Penalty
from diffrac_cvx.relaxations import v_space
from diffrac_cvx.solvers import fista, low_rank, solve
from diffrac_cvx.solvers.reference import installed_solvers

CORE = ("diffrac-cvx", "numpy", "scipy", "cvxpy", "scs", "clarabel", "threadpoolctl", "matplotlib")
OPTIONAL = {
    "typer": "command line", "scikit-learn": "estimators, cluster", "pandas": "cluster, compare",
    "pyarrow": "Parquet files", "openpyxl": "Excel files", "jinja2": "reports", "marimo": "explore",
    "pymanopt": "a baseline of the runtime experiment",
}  # fmt: skip


def version(package: str) -> str | None:
    """Return the version of a package, None if it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def doctor(as_json: options.Json = False, quiet: options.Quiet = False) -> None:
    """Report and test the installation; the exit status is 1 if a check fails."""
    console = Console(as_json, quiet)
    findings = examine()
    all_passed = all(findings["checks"].values()) and all(findings["packages"].values())
    print_findings(findings, console)
    console.echo("All checks passed." if all_passed else "Some checks failed, see above.")
    console.finish(findings, has_warnings=not all_passed)


def examine() -> dict[str, Any]:
    """Return the installed versions and the results of the self-test."""
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: version(name) for name in CORE},
        "optional": {name: version(name) for name in OPTIONAL},
        "solvers": installed_solvers(),
        "blas": [
            {"library": pool["internal_api"], "version": pool.get("version"), "threads": pool["num_threads"]}
            for pool in threadpoolctl.ThreadpoolController().select(user_api="blas").info()
        ],
        "cores": os.cpu_count(),
        "data_home": os.environ.get("DIFFRAC_DATA_HOME"),
        "checks": self_test(),
    }


def self_test() -> dict[str, bool]:
    """Solve a small problem by CVXPY and the fast solvers: bounds must overlap and labels must be the planted ones."""
    planted = datasets.make_planted(80, 5, noise=0.1, rng=0)
    problem = (planted.X, 0.9, Penalty(c=0.05))
    results = {solver: solve(v_space(*problem), solver, tol=1e-4) for solver in ("CLARABEL", "SCS")}
    checks = {f"{solver} solves the reference problem": result.gap <= 1e-4 for solver, result in results.items()}
    reference = results["CLARABEL"]
    for name, result in (("low_rank", low_rank(*problem, tol=1e-6)), ("fista", fista(*problem, tol=1e-3))):
        overlaps = result.lower <= reference.upper + 1e-9 and reference.lower <= result.upper + 1e-9
        checks[f"bounds of {name} are consistent with the reference"] = bool(overlaps)
        labels = rounding.kmeans_centered(result.F)
        checks[f"{name} recovers the planted labels"] = metrics.clustering_error(planted.y, labels) == 0.0
    shipped = [name for name in datasets.names() if datasets.describe(name).shipped]
    checks["shipped data sets are intact"] = all(np.isfinite(datasets.load(name)[0]).all() for name in shipped)
    return checks


def print_findings(found: dict[str, Any], console: Console) -> None:
    """Print the findings as text."""
    console.echo(f"Python {found['python']} at {sys.executable}, {found['platform']}, {found['cores']} cores")
    for name, number in found["packages"].items():
        console.echo(f"  {name:16} {number or 'MISSING'}")
    for name, number in found["optional"].items():
        console.echo(f"  {name:16} {number or '-'}  (optional: {OPTIONAL[name]})")
    console.echo(f"CVXPY solvers: {', '.join(found['solvers'])}")
    for pool in found["blas"]:
        name = f"{pool['library']} {pool['version'] or ''}"
        console.echo(f"BLAS: {name}, {pool['threads']} threads; the fast solvers use one")
    console.echo(f"DIFFRAC_DATA_HOME: {found['data_home'] or 'not set'}")
    for check, passed in found["checks"].items():
        console.echo(f"[{'ok' if passed else 'FAILED'}] {check}")
