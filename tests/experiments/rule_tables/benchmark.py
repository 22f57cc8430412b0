"""Tables on which the rule on the times of the solvers agrees, agrees in part and differs."""

from rules import AGREES, DIFFERS, NOT_TESTED, PARTLY, frame

from experiments.benchmark.findings import FASTEST


def ratios(median, smallest, both=3):
    return frame(median=median, smallest=smallest, both=both).astype(float)


TABLES = {
    FASTEST.statement: [
        (ratios([5.0, 2.0], [1.5, 1.0]), AGREES), (ratios([5.0, 2.0], [1.5, 0.5]), PARTLY),
        (ratios([5.0, 0.9], [1.5, 0.5]), DIFFERS), (ratios([float("nan")], [float("nan")], 0), NOT_TESTED),
    ],
}  # fmt: skip
