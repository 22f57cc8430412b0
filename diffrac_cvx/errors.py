"""What goes wrong, by name: the data, a parameter, the size of the problem, a proof, or a cluster."""


class DataError(ValueError):
    """The data cannot be used as given; the message names the entry and the remedy.

    Attributes
    ----------
    column : str or None
        The column of a table that it is about.
    row : int or None
        The row, the first row of data being 0.
    remedies : tuple of str
        What would help, as parameters of `datasets.read_table`: "label", "one_hot" or "drop" of that column, "missing",
        "transpose".
    columns : tuple of pairs of str
        All columns that it is about, each with what would help: "label", "one_hot" or "drop".
    bracket : tuple of two floats, or None
        The bounds proved until then, where the data changed or could not be read any more while a solver ran: of the
        data as they were when they were read first.
    """

    def __init__(
        self,
        message: str,
        *,
        column: str | None = None,
        row: int | None = None,
        remedies: tuple[str, ...] = (),
        columns: tuple[tuple[str, str], ...] = (),
        bracket: tuple[float, float] | None = None,
    ) -> None:
        super().__init__(message)
        self.column, self.row, self.remedies, self.columns, self.bracket = column, row, remedies, columns, bracket


class ParameterError(ValueError):
    """A parameter is outside its range; the message names the value and the range."""


class ResourceError(MemoryError):
    """The problem would not fit in memory; the message says which formulation would."""


class InvalidBoundError(RuntimeError):
    """Something costs less than a lower bound on its cost: the bound is not valid.

    Attributes
    ----------
    lower : float
        The bound.
    objective : float
        The cost, not below the exact one.
    """

    def __init__(self, message: str, lower: float = float("nan"), objective: float = float("nan")) -> None:
        super().__init__(message)
        self.lower, self.objective = lower, objective

    def __reduce__(self) -> tuple[type, tuple[str, float, float]]:
        return type(self), (str(self), self.lower, self.objective)


class ClusterConnectionError(RuntimeError):
    """A cluster was lost before the data were read; the message says what is proved until then.

    Attributes
    ----------
    bracket : tuple of two floats, or None
        The bounds proved until then.
    """

    def __init__(self, message: str, bracket: tuple[float, float] | None = None) -> None:
        super().__init__(message)
        self.bracket = bracket

    def __reduce__(self) -> tuple[type, tuple[str, tuple[float, float] | None]]:
        return type(self), (str(self), self.bracket)


class DegenerateDataWarning(UserWarning):
    """The data are degenerate (for example, a constant column): the answer is right but may not be what was meant."""
