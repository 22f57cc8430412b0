"""Tables on which the rule on the conjecture agrees, agrees in part, and differs."""

import pandas as pd
from rules import AGREES, DIFFERS, NOT_TESTED, PARTLY, frame, within

from experiments.harness.intervals import UNKNOWN


def growth(best, other=(1.9, 1.9, 1.9, 1.9), width=0.05):
    """The exponents of d for three l and that of l, for two choices of the weight; None is not determined."""
    index = pd.MultiIndex.from_product([["best weight", "another"], ["d, l = 2", "d, l = 4", "d, l = 8", "l"]])
    found = [UNKNOWN if one is None else within(one - width, one + width) for one in (*best, *other)]
    return frame(index, exponent=found)


TABLES = {
    "conjecture": [
        (growth((1.0, 1.0, 1.0, 1.0)), AGREES),
        (growth((0.5, 0.5, 0.5, 1.0)), AGREES),  # an upper bound
        (growth((1.9, 1.9, 1.9, 1.9), (1.0, 1.0, 1.0, 1.0)), AGREES),
        (growth((1.0, 1.0, 1.0, 2.0)), PARTLY),  # linear in d, not in l
        (growth((1.0, 1.5, 1.5, 1.0)), PARTLY),  # at l = 2 alone
        (growth((1.5, 1.5, 1.5, 1.0)), DIFFERS),
        (growth((2.1, 2.1, 2.1, 1.0)), DIFFERS),
        (growth((1.5, 1.5, 1.5, 1.0), (1.5, 1.5, 1.5, 1.0), width=0.6), NOT_TESTED),  # both 1 and 2 in the intervals
        (growth((None, 1.0, 1.0, 1.0), (None, 1.0, 1.0, 1.0)), NOT_TESTED),
    ]
}
