"""Tables on which the rules on the structure test agree, agree in part and differ."""

import pandas as pd
from rules import AGREES, DIFFERS, NOT_TESTED, PARTLY

from experiments.harness.intervals import proportion_of
from experiments.structure.families import WITHOUT
from experiments.structure.findings import CLEAR, FOUND, NO_FALSE_GAP


def shares(names, column, counts):
    """Shares of 40 tables of each family."""
    return pd.DataFrame({column: [proportion_of([1] * k + [0] * (40 - k)) for k in counts]}, index=list(names))


def separated(most, last):
    return shares(WITHOUT, "separated", [most] * (len(WITHOUT) - 1) + [last])


def found(least, others=40):
    return shares(CLEAR, "separated", [least] + [others] * (len(CLEAR) - 1))


TABLES = {
    NO_FALSE_GAP.statement: [
        (separated(0, 4), AGREES), (separated(0, 9), PARTLY), (separated(9, 0), DIFFERS),
        (shares(list(WITHOUT)[:3], "separated", [0] * 3), NOT_TESTED),
    ],
    FOUND.statement: [
        (found(32, 32), AGREES), (found(20), PARTLY), (found(0, 35), DIFFERS),
        (shares(CLEAR[:2], "separated", [40, 40]), NOT_TESTED),
    ],
}  # fmt: skip
