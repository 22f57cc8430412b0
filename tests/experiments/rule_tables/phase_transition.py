"""Tables on which each rule on Figure 1 agrees, agrees in part, and differs."""

from rules import AGREES, DIFFERS, NOT_TESTED, PARTLY, frame, within

from experiments.harness.intervals import UNKNOWN, Interval
from experiments.phase_transition import findings as phase


def laws(ratio=0.9, **exponents):
    """The laws of some boundaries, by their keys below; those not named have an unknown exponent."""
    rows = {
        "rank": phase.AFFINE_RANK, "error": phase.AFFINE_ERROR, "one": phase.ONE_SPARSE_RANK,
        "interior": phase.INTERIOR_OVER_FAST, "fast": phase.ERROR_OVER_RANK["low_rank"],
        "inner": phase.ERROR_OVER_RANK["interior"],
    }  # fmt: skip
    found = [within(exponents[k] - 0.1, exponents[k] + 0.1) if k in exponents else UNKNOWN for k in rows]
    law = {phase.AFFINE_RANK: 1.85, phase.AFFINE_ERROR: 1.85, phase.ONE_SPARSE_RANK: 0.95}
    return frame(
        list(rows.values()), exponent=found, law=[law.get(row, "-") for row in rows.values()], **{"at d = 20": ratio}
    )


def both(low, high):
    return frame([phase.BOTH_FAST, phase.BOTH_INTERIOR], proportion=[Interval(low, low, high)])


def pair(rows, *lows, instances=100):
    return frame(list(rows), proportion=[Interval(low, low, 1.0) for low in lows], instances=instances)


SPIKED, ONE = (phase.BY_THRESHOLD, phase.BY_BOTH), (phase.ONE_EVERYWHERE, phase.ONE_ENOUGH)
TABLES = {
    "fig1-rank-affine": [
        (laws(rank=1.9), AGREES), (laws(rank=2.6), PARTLY), (laws(rank=3.2), DIFFERS), (laws(), NOT_TESTED),
    ],
    "fig1-rank-sparse": [
        (laws(one=1.0), AGREES), (laws(one=1.5), PARTLY), (laws(one=2.2), DIFFERS), (laws(), NOT_TESTED),
    ],
    "fig1-error-affine": [
        (laws(error=1.9, interior=0.0), AGREES), (laws(error=1.9, interior=-0.5), PARTLY),
        (laws(error=2.6, interior=0.0), PARTLY), (laws(error=3.2, interior=0.0), DIFFERS),
        (laws(error=1.9), NOT_TESTED),
    ],
    "fig1-same-scaling": [
        (laws(fast=0.0, inner=0.0), AGREES), (laws(5.0, fast=0.0, inner=0.0), PARTLY),
        (laws(fast=0.0, inner=-0.6), PARTLY), (laws(fast=0.6, inner=0.6), DIFFERS), (laws(fast=0.0), NOT_TESTED),
    ],
    "fig1-spiked": [
        (pair(SPIKED, 0.06, 0.5), AGREES), (pair(SPIKED, 0.01, 0.5), PARTLY), (pair(SPIKED, 0.01, 0.01), DIFFERS),
    ],
    "fig1-seldom-both": [(both(0.01, 0.02), AGREES), (both(0.06, 0.2), PARTLY), (both(0.2, 0.3), DIFFERS)],
    "one-sparse-rank-one": [
        (pair(ONE, 0.96, 0.96), AGREES), (pair(ONE, 0.7, 0.96), PARTLY), (pair(ONE, 0.7, 0.8), DIFFERS),
        (pair(ONE, 0.7, 0.8, instances=0), NOT_TESTED),
    ],
}  # fmt: skip
