"""Removing any single rounding term makes a test of the rounding errors fail."""

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parents[1]
FORGET = """
import sys
from importlib import import_module
import numpy as np
import pytest
place = import_module("diffrac_cvx.{module}")
{patch}
print("left out")  # whatever went wrong before is no test that failed
sys.exit(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *{files!r}]))
"""
BUDGETS, BLOCKS = ("certificates/test_rounding_budget.py",), ("certificates/test_block_budget.py",)
VALUES, PROOF = ("certificates/test_value_budget.py",), ("certificates/test_one_proof.py",)
LINKED, EXACT = ("solvers/test_chunklets.py",), ("solvers/test_exact.py",)
COLUMNS = ("points/test_many_columns.py",)
CERTIFICATES, CUTS = ("certificates/test_cut_certificate.py",), ("solvers/test_cuts.py",)

# What is forgotten: in which module, by which statement, and where that has to be noticed.
TERMS = {
    "what whitened coordinates may be off": (
        "problem.direction_problem",
        "place.whitening_error_of_rows = lambda *_: place.WhiteningErrorBounds(0.0, 0.0)",
        BUDGETS,
    ),
    "the rounding of the box": (
        "problem.penalties.base",
        "place.PairPenalty.half_width = property("
        "lambda self: np.outer(self.c, self.c) * (1.0 + 1e-15) * (1.0 - np.eye(len(self.c))))",
        BUDGETS,
    ),
    "the rounding of a bound": ("certificates.proof", "place.round_up = lambda x, k=4: x", BUDGETS),
    "the row that is added to sparse columns": (
        "points.sparse", "place.SparseColumns.absolute_sum_bound = lambda self, squares, *_: squares", PROOF
    ),
    "what a sum of all errors is": ("certificates.proof", "place.sum_error = lambda k: 0.0", PROOF),
    "what single precision may change of pairs": (
        "certificates.screening", "place.single_precision_error = lambda *_: 0.0", (*BLOCKS, *COLUMNS)
    ),
    "the rounding of sums of linked points": (
        "problem.direction_problem", "place.with_chunklet_error = lambda found, *_: found", LINKED
    ),
    "the rounding of the value of linked points": ("points.floating_point", "place.sum_error = lambda k: 0.0", LINKED),
    "what labels that are proved optimal rest on": (
        "solvers.exact.tree",
        "place.grouped_bounds = lambda problem, M, sums, top: 1.0 - "
        "np.linalg.eigvalsh(M)[:, -1] * sums * (1.0 - 1e-10)",
        EXACT,
    ),
    "what products with rows may be off": ("points.floating_point", "place.sum_error = lambda k: 0.0", VALUES),
    "the rounding of a value": ("certificates.values", "place.sum_error = lambda k: 0.0", VALUES),
    "what the objective of labels may be off": (
        "certificates.label_space", "place.objective_error = lambda *_: 0.0", VALUES
    ),
    "the rounding of a mean": (
        "certificates.label_space", "place.lower_bound_of_mean = lambda x: float(np.mean(x))", VALUES
    ),
    "the roundings of a certificate of labels": (
        "certificates.cut_certificate", "place.relative = lambda k: 0.0", CERTIFICATES
    ),
    "what the rows of a certificate of labels may be off": (
        "certificates.cut_certificate", "place.centering_errors = lambda X: np.zeros(X.shape[1])", CERTIFICATES
    ),
    "what a factorisation hides": (
        "certificates.cut_certificate", "place.factorization_error = lambda M: 0.0", CERTIFICATES
    ),
    "the right side of inequalities on five points": (
        "certificates.cut_certificate", "place.Cliques.right = property(lambda self: 1.0)", CUTS
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("term", TERMS)
def test_a_term_that_is_left_out_is_noticed(term):
    module, patch, names = TERMS[term]
    program = FORGET.format(module=module, patch=patch, files=[str(HERE / name) for name in names])
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=HERE, timeout=600)
    assert found.stdout.startswith("left out"), found.stderr[-2000:]
    assert "short test summary info" in found.stdout
    assert "ERROR" not in found.stdout.partition("short test summary info")[2]
    assert found.returncode == pytest.ExitCode.TESTS_FAILED, found.stdout[-2000:] + found.stderr[-2000:]
