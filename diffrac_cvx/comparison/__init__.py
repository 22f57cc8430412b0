"""Comparison of methods on the same data: one table, and every disagreement beyond the certified gaps."""

from diffrac_cvx.comparison.comparing import Comparison, compare
from diffrac_cvx.comparison.disagreements import find_disagreements, worst_disagreement
from diffrac_cvx.comparison.methods import MethodResult, list_methods, relaxation_method, run_method, solver_method
from diffrac_cvx.comparison.rendered_table import ReportTable, format_cell
from diffrac_cvx.comparison.structure import StructureTest, structure_test
from diffrac_cvx.comparison.validation import Validation, validate
from diffrac_cvx.registry import ComparisonTask, Method

__all__ = [
    "Comparison", "ComparisonTask", "Method", "MethodResult", "ReportTable", "StructureTest", "Validation",
    "compare", "find_disagreements", "format_cell", "list_methods", "relaxation_method", "run_method", "solver_method",
    "structure_test", "validate", "worst_disagreement",
]  # fmt: skip
