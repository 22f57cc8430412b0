"""Libraries that only some readers of tables need, or an error that says how to install them."""

from typing import Any

from diffrac_cvx.errors import DataError


def pandas_or_error() -> Any:
    """Return pandas, or raise an error that says how to install it."""
    try:
        import pandas
    except ImportError:
        raise DataError("a table needs pandas: pip install 'diffrac-cvx[app]'") from None
    return pandas


def require_openpyxl() -> None:
    """Raise an error that says how to install openpyxl, unless it is there."""
    try:
        import openpyxl  # noqa: F401
    except ImportError:
        raise DataError(
            "Excel files need openpyxl: pip install 'diffrac-cvx[excel]', or save the sheet as CSV"
        ) from None
