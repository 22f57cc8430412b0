"""Tables on which the rules on the structure test agree, agree in part and differ."""

import pandas as pd
from rules import AGREES, DIFFERS, NOT_TESTED, PARTLY

from experiments.harness.intervals import proportion_of
from experiments.structure.families import WITH, WITHOUT
from experiments.structure.findings import CLEAR, FEW_REFUSED, NO_FALSE_GAP


def shares(names, column, counts):
    """Shares of 40 tables of each family."""
    return pd.DataFrame({column: [proportion_of([1] * k + [0] * (40 - k)) for k in counts]}, index=list(names))


def separated(most, last):
    return shares(WITHOUT, "separated", [most] * (len(WITHOUT) - 1) + [last])


def refused(count):
    return shares(WITH, "none", [count if name in CLEAR else 40 for name in WITH])


TABLES = {
    NO_FALSE_GAP.statement: [
        (separated(0, 4), AGREES), (separated(0, 9), PARTLY), (separated(9, 0), DIFFERS),
        (shares(list(WITHOUT)[:3], "separated", [0] * 3), NOT_TESTED),
    ],
    FEW_REFUSED.statement: [
        (refused(4), AGREES), (refused(8), PARTLY), (refused(9), DIFFERS),
        (shares(CLEAR[:2], "none", [0, 0]), NOT_TESTED),
    ],
}  # fmt: skip
