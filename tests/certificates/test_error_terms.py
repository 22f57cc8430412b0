"""Each term that covers rounding is left out in turn, and a test of what rounding may change has to fail."""

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parents[1]
FORGET = """
import sys
import numpy as np
import pytest
{patch}
print("left out")  # whatever went wrong before is no test that failed
sys.exit(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *{files!r}]))
"""
BUDGETS = ("certificates/test_rounding_budget.py", "problem/test_floating_point.py")
BLOCKS = ("certificates/test_block_budget.py",)
VALUES = ("certificates/test_value_budget.py",)
WIDE = ("solvers/test_wide.py",)
LINKED = ("solvers/test_linked.py",)
BRANCHING = ("solvers/test_branching.py",)
PIECES = ("certificates/test_certificate_pieces.py",)

# What is forgotten, as a program, and where that has to be noticed.
TERMS = {
    "what a moment may be off": (
        "from diffrac_cvx.problem.direction_problem import DirectionProblem as P; P.moment_error = lambda *_: 0.0",
        BUDGETS,
    ),
    "what whitened coordinates may be off": (
        "from diffrac_cvx.problem import direction_problem as p; "
        "p.rounding_of_whitening = lambda *_: p.Whitening(0.0, 0.0)",
        BUDGETS,
    ),
    "what a multiplier in whitened coordinates may be off": (
        "from diffrac_cvx.certificates import direction_bounds as d; old = d.multiplier_in_box; "
        "d.multiplier_in_box = lambda *given: old(*given)._replace(error=0.0)",
        BUDGETS,
    ),
    "the rounding of the box": (
        "from diffrac_cvx.problem.penalties.absolute import Absolute; "
        "Absolute.box = property(lambda self: np.outer(self.c, self.c) * (1.0 + 1e-15) * (1.0 - np.eye(len(self.c))))",
        BUDGETS,
    ),
    "the slack of a factorisation": (
        "from diffrac_cvx.certificates import proof; proof.proved_ratio = lambda pencil, t, least: t * (1.0 - 1e-12)",
        BUDGETS,
    ),
    "the rounding of a bound": (
        "from diffrac_cvx.certificates import proof; proof.round_up = lambda x, k=4: x",
        (*BUDGETS, *PIECES),
    ),
    "what the moment of a block may be off": (
        "from diffrac_cvx.certificates.block_problem import BlockProblem as P; P.moment_error = lambda *_: 0.0",
        BLOCKS,
    ),
    "what the columns of a block may be off": (
        "from diffrac_cvx.certificates.block_problem import BlockProblem as P; "
        "P.data_error = lambda self, columns: np.zeros(len(self.c))[columns]",
        BLOCKS,
    ),
    "what a coordinate alone may be off": (
        "from diffrac_cvx.certificates import block_proof; block_proof.sum_error = lambda k: 0.0",
        BLOCKS,
    ),
    "what pairs may be off": (
        "from diffrac_cvx.certificates import block_proof; old = block_proof.with_rounding; "
        "block_proof.with_rounding = lambda *given: old(*given)._replace(box=0.0)",
        BLOCKS,
    ),
    "what single precision may change of pairs": (
        "from diffrac_cvx.certificates import screening; screening.single_rounding = lambda *_: 0.0",
        (*BLOCKS, "points/test_many_columns.py"),
    ),
    "what pairs that are proved to be apart may be off": (
        "from diffrac_cvx.certificates import screening; old = screening.eliminate; "
        "screening.eliminate = lambda *given: (lambda at: None if at is None else at._replace(box=0.0))(old(*given))",
        PIECES,
    ),
    "the row that is added to sparse columns": (
        "from diffrac_cvx.points.sparse import SparseColumns as S; S.terms = lambda self, squares, *_: squares",
        BLOCKS,
    ),
    "what a core may be off": (
        "from diffrac_cvx.certificates.core_proof import Core; Core.masses = lambda *_: (0.0, 0.0)",
        WIDE,
    ),
    "the rounding of sums of linked points": (
        "from diffrac_cvx.problem import direction_problem as p; p.with_sums = lambda found, *_: found",
        LINKED,
    ),
    "the rounding of the value of linked points": (
        "from diffrac_cvx.points import proved_sums; proved_sums.sum_error = lambda k: 0.0",
        LINKED,
    ),
    "what labels that are proved optimal rest on": (
        "from diffrac_cvx.solvers.branching import tree as b; b.bounds_of_groups = lambda problem, M, sums, top: 1.0 - "
        "np.linalg.eigvalsh(M)[:, -1] * sums * (1.0 - 1e-10)",
        BRANCHING,
    ),
    "what products with rows may be off": (
        "from diffrac_cvx.points import proved_sums; proved_sums.sum_error = lambda k: 0.0",
        VALUES,
    ),
    "the rounding of a value": (
        "from diffrac_cvx.certificates import values; values.sum_error = lambda k: 0.0",
        VALUES,
    ),
    "what the objective of labels may be off": (
        "from diffrac_cvx.certificates import label_proof; label_proof.of_values = lambda *_: 0.0",
        VALUES,
    ),
    "the rounding of a mean": (
        "from diffrac_cvx.certificates import label_proof; "
        "label_proof.lower_bound_of_mean = lambda x: float(np.mean(x))",
        VALUES,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("term", TERMS)
def test_a_term_that_is_left_out_is_noticed(term):
    patch, names = TERMS[term]
    program = FORGET.format(patch=patch, files=[str(HERE / name) for name in names])
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=HERE, timeout=600)
    assert found.stdout.startswith("left out"), found.stderr[-2000:]
    assert "short test summary info" in found.stdout
    assert "ERROR" not in found.stdout.partition("short test summary info")[2]
    assert found.returncode == pytest.ExitCode.TESTS_FAILED, found.stdout[-2000:] + found.stderr[-2000:]
