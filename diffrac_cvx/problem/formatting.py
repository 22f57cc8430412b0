"""Formatting of certified numbers: lower bounds are rounded down; upper bounds, objectives and gaps are rounded up.

The exact value of the double is rounded, so the printed number is certified too: no optimum is below a printed lower
bound or above a printed upper bound, and no gap exceeds the printed one.  Numbers have four decimals and two to six
digits, with more digits if two bounds are so close that they would look equal.  Numbers that are printed exactly, such
as 0 or 0.5, have no trailing zeros.
"""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Self


def width_of(lower: float, upper: float) -> float:
    """Return upper - lower, rounded up if it is not a double."""
    width = upper - lower
    part = width - upper  # the rounding error is exact, by Knuth's TwoSum
    error = (upper - (width - part)) - (lower + part)
    return math.nextafter(width, math.inf) if error > 0.0 else width


def sum_rounded_up(lower: float, gap: float) -> float:
    """Return lower + gap, rounded up if it is not a double."""
    return width_of(-lower, gap)


def format_lower(number: float, width: float = math.inf) -> str:
    """Format a lower bound, rounded down.

    Parameters
    ----------
    number : float
        The bound; may be infinite or NaN.
    width : float
        Distance to the upper bound, or to the number printed next to it; rounding changes the number by at most a tenth
        of this.
    """
    return format_rounded(number, width, ROUND_FLOOR)


def format_upper(number: float, width: float = math.inf) -> str:
    """Format an upper bound, an objective or a gap, rounded up; parameters as in `format_lower`."""
    return format_rounded(number, width, ROUND_CEILING)


def format_gap(lower: float, upper: float) -> str:
    """Format upper - lower, rounded up."""
    return format_upper(width_of(lower, upper))


def format_ends(lower: float, upper: float) -> tuple[str, str]:
    """Format a lower and an upper bound, with enough digits to tell them apart."""
    width = width_of(lower, upper)
    return format_lower(lower, width), format_upper(upper, width)


def format_bracket(lower: float, upper: float) -> str:
    """Format bounds as "[lower, upper]"."""
    return f"[{', '.join(format_ends(lower, upper))}]"


class FormattedBound(float):
    """Certified number in a table: a float with the text that the table prints for it."""

    text: str

    def __new__(cls, number: float, text: str) -> Self:
        """Create the float and attach its text."""
        made = super().__new__(cls, number)
        made.text = text
        return made

    def __getnewargs__(self) -> tuple[float, str]:  # type: ignore[override]  # float takes one argument
        return float(self), self.text


def formatted_lower(number: float, width: float = math.inf) -> FormattedBound:
    """Return a lower bound with its text, for a table."""
    return FormattedBound(number, format_lower(number, width))


def formatted_upper(number: float, width: float = math.inf) -> FormattedBound:
    """Return an upper bound, an objective or a gap with its text, for a table."""
    return FormattedBound(number, format_upper(number, width))


def format_rounded(number: float, width: float, rounding: str) -> str:
    """Format a number, rounded down or up to the printed number of digits."""
    if not math.isfinite(number):
        return str(float(number))
    exact = Decimal(float(number) + 0.0)  # -0 becomes 0
    first = exact.adjusted()
    last = max(min(-4, first - 1), first - 5) if exact else -4  # four decimals, with two to six digits
    if math.isfinite(width):
        narrow = first - 11  # twelve digits, for arbitrarily close bounds
        last = min(last, max(Decimal(abs(width)).adjusted() - 1, narrow) if width else narrow)
    rounded = exact.quantize(Decimal((0, (1,), last)), rounding)
    rounded = rounded.normalize() if rounded == exact else rounded
    if not rounded or -3 <= rounded.adjusted() <= 5:
        return f"{rounded:f}"
    digits, _, exponent = f"{rounded:.{len(rounded.as_tuple().digits) - 1}e}".partition("e")
    return f"{digits}e{int(exponent):+03d}"  # in the notation of floats
