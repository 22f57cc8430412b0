"""Tables on which the rules on wide tables agree, agree in part and differ."""

import numpy as np
from rules import AGREES, DIFFERS, NOT_TESTED, PARTLY, frame, within

from experiments.wide import findings
from experiments.wide.findings import GAIN, GAIN_TUNED, OWN

NOTHING = frame([])


def gains(column, *lows):
    """Gains over rivals, each from a lower end to 0.5."""
    return frame(**{column: [np.nan, *(within(low, 0.5) for low in lows)]})


def selected(top, low):
    return frame([OWN, "IF-PCA"], **{"top": [top, 0.1], GAIN: [np.nan, within(low, 0.9)]})


def pairs(median_gain, best):
    """Means of the relaxation, 0.5, of a fixed weight, which does not count, and of k-means."""
    gain = [np.nan, np.nan, within(median_gain - 0.3, median_gain + 0.3)]
    return frame([OWN, "lambda 0.2", "k-means"], **{"mean": [0.5, 0.9, best], "median gain over it": gain})


ON_PAIRS = [
    (pairs(0.0, 0.4), AGREES), (pairs(-0.1, 0.4), PARTLY), (pairs(0.0, 0.6), PARTLY), (pairs(-0.1, 0.6), DIFFERS),
    (NOTHING, NOT_TESTED),
]  # fmt: skip
CLOSE = [
    (frame(below=[0.1, -0.2]), AGREES), (frame(below=[0.1, 0.2]), PARTLY), (frame(below=[0.11, 0.2]), DIFFERS),
]  # fmt: skip
TABLES = {
    findings.BETTER.statement: [
        (gains(GAIN, 0.3, 0.25), AGREES), (gains(GAIN, 0.3, 0.1), PARTLY), (gains(GAIN, 0.3, -0.1), DIFFERS),
        (NOTHING, NOT_TESTED),
    ],
    findings.BETTER_TUNED.statement: [
        (gains(GAIN_TUNED, 0.3, 0.01), AGREES), (gains(GAIN_TUNED, 0.3, -0.1), PARTLY),
        (gains(GAIN_TUNED, 0.3, -0.6), DIFFERS),
    ],
    **{rule.statement: CLOSE for rule in (findings.FACTORS, findings.INDEPENDENT)},
    findings.IN_VARIANTS.statement: [
        (gains("gain", 0.3, 0.3).iloc[1:], AGREES), (gains("gain", 0.3, 0.1).iloc[1:], PARTLY),
        (gains("gain", 0.1, 0.1).iloc[1:], DIFFERS),
    ],
    findings.COLUMNS.statement: [
        (selected(0.8, 0.1), AGREES), (selected(0.7, 0.1), PARTLY), (selected(0.8, -0.1), PARTLY),
        (selected(0.7, -0.1), DIFFERS),
    ],
    findings.SUGGESTED.statement: [
        (frame(**{"gain of the best fixed weight": within(0.0, 0.1)}), AGREES),
        (frame(**{"gain of the best fixed weight": within(0.0, 0.2)}), PARTLY),
        (frame(**{"gain of the best fixed weight": within(0.1, 0.2)}), DIFFERS),
    ],
    **{rule.statement: ON_PAIRS for rule in findings.ON_PAIRS.values()},
}  # fmt: skip
