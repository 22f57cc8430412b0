"""Several methods on the same data: one table, and every disagreement beyond the proved gaps."""

from diffrac_cvx.comparison.comparing import Comparison, compare
from diffrac_cvx.comparison.disagreements import find_disagreements, worst_disagreement
from diffrac_cvx.comparison.methods import (
    Found,
    Method,
    Task,
    attempt,
    attempt_apart,
    baseline_method,
    list_methods,
    relaxation_method,
    solver_method,
)
from diffrac_cvx.comparison.structure import NULLS, StructureTest, structure_test
from diffrac_cvx.comparison.table import Table, format_cell

__all__ = [
    "NULLS", "Comparison", "Found", "Method", "StructureTest", "Table", "Task", "attempt", "attempt_apart",
    "baseline_method", "compare", "find_disagreements", "format_cell", "list_methods", "relaxation_method",
    "solver_method", "structure_test", "worst_disagreement",
]  # fmt: skip
