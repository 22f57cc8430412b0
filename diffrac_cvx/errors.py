"""Exceptions and warnings."""


def sentence(text: object) -> str:
    """Return the text of an error as the last sentence of another message, with one full stop."""
    words = str(text).rstrip(". ")
    return words if words.endswith("?") else f"{words}."


class DataError(ValueError):
    """The data cannot be used as given; the message names the offending entry and the remedy.

    Attributes
    ----------
    remedies : tuple of str
        Parameters of `datasets.read_table` that may resolve the error, such as "drop" or "missing".
    columns : tuple of pairs of str
        Values for these parameters: the name of a column and "drop", a text and "na_values", lines and "skip_rows".
    bracket : tuple of two floats, or None
        Bounds certified before the data changed, or became unreadable, during a solve.  They are valid for the data
        as first read.
    """

    def __init__(
        self,
        message: str,
        *,
        remedies: tuple[str, ...] = (),
        columns: tuple[tuple[str, str], ...] = (),
        bracket: tuple[float, float] | None = None,
    ) -> None:
        super().__init__(message)
        self.remedies, self.columns, self.bracket = remedies, columns, bracket


class DataTypeError(DataError, TypeError):
    """An entry of the data is of a type that cannot be converted to a number."""


class ParameterError(ValueError):
    """A parameter is outside its range; the message names the value and the range."""


class ResourceError(MemoryError):
    """The problem does not fit in memory; the message names a remedy, such as a smaller formulation."""


class InvalidBoundError(RuntimeError):
    """An objective value is below its lower bound, so that the bound is invalid.

    Attributes
    ----------
    lower : float
        Lower bound.
    objective : float
        Objective value, rounded up.
    """

    def __init__(self, message: str, lower: float = float("nan"), objective: float = float("nan")) -> None:
        super().__init__(message)
        self.lower, self.objective = lower, objective

    def __reduce__(self) -> tuple[type, tuple[str, float, float]]:
        return type(self), (str(self), self.lower, self.objective)


class DegenerateDataWarning(UserWarning):
    """The data are degenerate (for example, a constant column): the result is valid but may not be the intended one."""
