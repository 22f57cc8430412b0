"""Tables on which each rule on wide tables agrees, agrees in part, and differs."""

from rules import AGREES, DIFFERS, NOT_TESTED, PARTLY, frame, on_share

from experiments.wide_law import findings as law


def theorem(less, bounds=41):
    return frame(**{"V found": 144, "less": less, "bounds above 0": bounds})


def formula(error, tables=24):
    return frame(**{"largest error": error, "tables": tables})


TABLES = {
    law.INEQUALITY.statement: [
        (theorem(0), AGREES), (theorem(1), PARTLY), (theorem(5), DIFFERS), (theorem(0, bounds=11), NOT_TESTED),
    ],
    law.FOUND_BELOW.statement: on_share(law.BELOW, 40, 36, 16),  # of 36 the interval is too wide
    law.LOST_ABOVE.statement: on_share(law.ABOVE, 40, 34, 16),
    law.NO_CLUSTERS.statement: on_share(law.HIDDEN, 40, 24, 16),
    law.FORMULA.statement: [
        (formula(0.06), AGREES), (formula(0.15), PARTLY), (formula(0.3), DIFFERS), (formula(0.06, 4), NOT_TESTED),
    ],
}  # fmt: skip
