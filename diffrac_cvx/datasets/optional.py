"""pandas, which readers of tables need, or an error that says how to install it."""

from typing import Any

from diffrac_cvx.errors import DataError


def pandas_or_error() -> Any:
    """Return pandas, or raise an error that says how to install it."""
    try:
        import pandas
    except ImportError:
        raise DataError("a table needs pandas: pip install 'diffrac-cvx[app]'") from None
    return pandas
