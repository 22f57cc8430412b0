"""Tables on which each rule on wide tables agrees, agrees in part, and differs."""

from rules import AGREES, DIFFERS, NOT_TESTED, PARTLY, frame

from experiments.harness.intervals import Interval
from experiments.wide_law import findings as law


def theorem(less, bounds=41):
    return frame(**{"V found": 144, "less": less, "bounds above 0": bounds})


def share(row, value, low, instances=40):
    return frame([row], share=[Interval(value, low, 1.0)], instances=instances)


def of_share(row, partly=0.85):
    return [(share(row, 0.95, 0.85), AGREES), (share(row, 0.95, 0.7), PARTLY), (share(row, partly, 0.3), PARTLY),
            (share(row, 0.4, 0.2), DIFFERS), (share(row, 1.0, 0.9, instances=11), NOT_TESTED)]  # fmt: skip


def formula(error, tables=24):
    return frame(**{"largest error": error, "tables": tables})


TABLES = {
    law.INEQUALITY.statement: [
        (theorem(0), AGREES), (theorem(1), PARTLY), (theorem(5), DIFFERS), (theorem(0, bounds=11), NOT_TESTED),
    ],
    law.FOUND_BELOW.statement: of_share(law.BELOW),
    law.LOST_ABOVE.statement: of_share(law.ABOVE),
    law.NO_CLUSTERS.statement: of_share(law.HIDDEN, partly=0.6),
    law.FORMULA.statement: [
        (formula(0.06), AGREES), (formula(0.15), PARTLY), (formula(0.3), DIFFERS), (formula(0.06, 4), NOT_TESTED),
    ],
}  # fmt: skip
