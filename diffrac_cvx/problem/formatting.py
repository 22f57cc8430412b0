"""How proved numbers are printed: a lower bound is rounded down, an upper bound, a cost and a gap are rounded up.

What is rounded is the exact value of the double, so what is printed is proved too: no optimum is below a printed lower
bound, none above a printed upper bound, and no gap is wider than the one that is printed.  A number has four decimals
and from two to six digits, more where it is an end of a narrow bracket, so that both ends are told apart; one that is
printed without loss, such as 0 or 0.5, has no zeros at its end.
"""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Self

DECIMALS = 4
MIN_DIGITS, MAX_DIGITS = 2, 6  # digits of a number on its own
MAX_DIGITS_IN_BRACKET = 12  # digits at most, however narrow the bracket is
FIXED_NOTATION_EXPONENTS = range(
    -3, 6
)  # powers of ten of the first digit of a number that is printed without an exponent


def width_of(lower: float, upper: float) -> float:
    """Return upper - lower, rounded up where it is no double."""
    width = upper - lower
    part = width - upper  # what the subtraction lost is found without rounding, by Knuth's sum of two numbers
    error = (upper - (width - part)) - (lower + part)
    return math.nextafter(width, math.inf) if error > 0.0 else width


def sum_rounded_up(lower: float, gap: float) -> float:
    """Return lower + gap, rounded up where it is no double."""
    return width_of(-lower, gap)


def format_lower(number: float, width: float = math.inf) -> str:
    """Return a lower bound, rounded down.

    Parameters
    ----------
    number : float
        The bound; what is infinite or not a number is named so.
    width : float
        Of the bracket that it is an end of, or its distance from another number that it is printed beside: at most a
        tenth of it is lost.
    """
    return format_rounded(number, width, ROUND_FLOOR)


def format_upper(number: float, width: float = math.inf) -> str:
    """Return an upper bound, a cost or a gap, rounded up; the parameters are those of `format_lower`."""
    return format_rounded(number, width, ROUND_CEILING)


def format_gap(lower: float, upper: float) -> str:
    """Return upper - lower, rounded up."""
    return format_upper(width_of(lower, upper))


def format_ends(lower: float, upper: float) -> tuple[str, str]:
    """Return both ends of a bracket, told apart where they differ."""
    width = width_of(lower, upper)
    return format_lower(lower, width), format_upper(upper, width)


def format_bracket(lower: float, upper: float) -> str:
    """Return a bracket as "[lower, upper]"."""
    return f"[{', '.join(format_ends(lower, upper))}]"


class FormattedBound(float):
    """A proved number in a table: a float in all but the text by which the table prints it."""

    text: str

    def __new__(cls, number: float, text: str) -> Self:
        """Keep the text with the number."""
        made = super().__new__(cls, number)
        made.text = text
        return made

    def __getnewargs__(self) -> tuple[float, str]:  # type: ignore[override]  # a float has one argument
        return float(self), self.text


def formatted_lower(number: float, width: float = math.inf) -> FormattedBound:
    """Return a lower bound for a table."""
    return FormattedBound(number, format_lower(number, width))


def formatted_upper(number: float, width: float = math.inf) -> FormattedBound:
    """Return an upper bound, a cost or a gap for a table."""
    return FormattedBound(number, format_upper(number, width))


def format_rounded(number: float, width: float, rounding: str) -> str:
    """Return a number, rounded down or up to as many digits as it is printed with."""
    if not math.isfinite(number):
        return str(float(number))
    exact = Decimal(float(number) + 0.0)  # of -0, 0
    first = exact.adjusted()
    last = max(min(-DECIMALS, first - MIN_DIGITS + 1), first - MAX_DIGITS + 1) if exact else -DECIMALS
    if math.isfinite(width):
        narrow = first - MAX_DIGITS_IN_BRACKET + 1
        last = min(last, max(Decimal(abs(width)).adjusted() - MIN_DIGITS + 1, narrow) if width else narrow)
    quantized = exact.quantize(Decimal((0, (1,), last)), rounding)
    return decimal_string(quantized.normalize() if quantized == exact else quantized)


def decimal_string(number: Decimal) -> str:
    """Return a decimal number with all of its digits, with an exponent where it is small or large."""
    if not number or number.adjusted() in FIXED_NOTATION_EXPONENTS:
        return f"{number:f}"
    digits, _, exponent = f"{number:.{len(number.as_tuple().digits) - 1}e}".partition("e")
    return f"{digits}e{int(exponent):+03d}"  # as floats are written
