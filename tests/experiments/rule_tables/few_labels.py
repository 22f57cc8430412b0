"""Tables on which each rule on few known labels agrees, agrees in part, and differs."""

import pandas as pd
from rules import AGREES, DIFFERS, NOT_TESTED, PARTLY, frame, within

from experiments.few_labels.findings import BEST, TARGET

ABOVE, POSITIVE, BELOW = within(0.01, 0.03), within(-0.01, 0.03), within(-0.03, 0.01)


def over_ridge(better=10, smallest=0.01, sets=10):
    return frame(pd.MultiIndex.from_tuples([("held-out", 20)]), sets=sets, better=better, smallest=smallest)


def methods(gain, sets=10):
    accuracies = {"relaxation": 0.9, "ridge": 0.88, "logistic": 0.85}
    return frame(list(accuracies), **{"sets": sets, "accuracy": [*accuracies.values()], "gain": [0.0, gain, ABOVE]})


TABLES = {
    TARGET.statement: [
        (over_ridge(), AGREES), (over_ridge(better=8), AGREES), (over_ridge(better=7), PARTLY),
        (over_ridge(smallest=-0.05), PARTLY), (over_ridge(better=7, smallest=-0.05), DIFFERS),
        (over_ridge(better=5), DIFFERS), (over_ridge(sets=9), NOT_TESTED),
    ],
    BEST.statement: [
        (methods(ABOVE), AGREES), (methods(POSITIVE), PARTLY), (methods(BELOW), DIFFERS),
        (methods(ABOVE, 9), NOT_TESTED),
    ],
}  # fmt: skip
