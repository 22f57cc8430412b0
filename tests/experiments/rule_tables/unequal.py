"""Tables on which the rule on unequal clusters agrees, agrees in part and differs."""

import pandas as pd
from rules import AGREES, DIFFERS, NOT_TESTED, PARTLY

from experiments.choice.unequal import GAINS
from experiments.harness.intervals import Interval


def summary(gain, worse, number=30):
    return pd.DataFrame({"gain": [Interval(gain, 0.0, 1.0)], "worse": [worse], "number": [number]}, index=["all"])


TABLES = {
    GAINS.statement: [
        (summary(0.03, 3), AGREES), (summary(0.03, 4), PARTLY), (summary(0.02, 0), DIFFERS),
        (summary(0.5, 0, number=5), NOT_TESTED),
    ],
}  # fmt: skip
