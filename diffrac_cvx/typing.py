"""Public types for annotations in code that uses the package."""

from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.factors import Factor
from diffrac_cvx.points.table import Table
from diffrac_cvx.problem.penalty import Weight
from diffrac_cvx.problem.result import Labels

__all__ = ["Array", "Factor", "Labels", "Table", "Weight"]
