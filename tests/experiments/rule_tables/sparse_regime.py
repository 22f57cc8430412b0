"""Tables on which the rule on the law 1 + delta agrees, agrees in part, and differs."""

import numpy as np
import pandas as pd
from rules import AGREES, DIFFERS, NOT_TESTED, PARTLY, frame, within

from experiments.harness.intervals import UNKNOWN
from experiments.sparse_regime.findings import LAW_HOLDS

LAW = (1.2, 1.5, 1.9, np.nan)


def growth(*found, width=0.05):
    """The exponents of d for three l and that of l, for two choices of the weight; None is not determined."""
    index = pd.MultiIndex.from_product([["best weight", "another"], ["d, l = 2", "d, l = 4", "d, l = 8", "l"]])
    exponents = [UNKNOWN if one is None else within(one - width, one + width) for one in (*found, 1.7) * 2]
    return frame(index, exponent=exponents, law=list(LAW) * 2)


TABLES = {
    LAW_HOLDS.statement: [
        (growth(1.2, 1.5, 1.9), AGREES),
        (growth(1.33, 1.63, 1.77), AGREES),
        (growth(1.2, 1.7, 1.9), PARTLY),
        (growth(1.0, 1.0, 1.0), DIFFERS),  # linear
        (growth(2.1, 2.1, 2.1), DIFFERS),
        (growth(None, 1.5, 1.9), NOT_TESTED),
    ]
}
