"""The former place of `datasets.read_table`, for scripts that import it from here."""

from diffrac_cvx.datasets import Table, read_table

__all__ = ["Table", "read_table"]
