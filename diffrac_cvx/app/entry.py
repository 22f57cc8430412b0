"""Entry point of the program ``diffrac-cvx``."""

from diffrac_cvx.app.cli.program import run_and_exit as entry

__all__ = ["entry"]
