"""What goes wrong, by name: the data, a parameter, or the size of the problem."""


class DataError(ValueError):
    """The data cannot be used as given; the message names the entry and the remedy."""


class ParameterError(ValueError):
    """A parameter is outside its range; the message names the value and the range."""


class ResourceError(MemoryError):
    """The problem would not fit in memory; the message says which formulation would."""


class DegenerateDataWarning(UserWarning):
    """The data are degenerate (a constant column, say): the answer is right but may not be what was meant."""
