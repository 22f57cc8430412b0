"""Several methods on the same data: one table, and every disagreement beyond the proved gaps."""

from diffrac_cvx.comparison.comparing import Comparison, compare

__all__ = ["Comparison", "compare"]
