"""Tables on which each rule on Figure 4 agrees, agrees in part, and differs."""

from rules import AGREES, DIFFERS, NOT_TESTED, PARTLY, frame, within

from experiments.robustness.findings import GAINS, PLAIN

GAIN, NONE = within(2.0, 9.0), within(-3.0, 4.0)


def methods(plain=GAIN, sparse=GAIN, fails=True, ours_fails=True, small=GAIN, large=GAIN):
    """Two baselines and three lambdas: gains over the second baseline, and over lambda = 0."""
    rows = ["k-means", "alternating", *(f"relaxation, lambda = {lam:g}" for lam in (0.0, 0.001, 0.01))]
    columns = {"fails": [True, fails, ours_fails, False, False], GAINS[0]: GAIN}
    return frame(rows, **columns, **{GAINS[1]: [0.0, 0.0, plain, GAIN, sparse], PLAIN: [0.0, 0.0, 0.0, small, large]})


def epsilons(*falls, pairs=40):
    return frame([0.0, 0.001, 0.01], **{"error falls by": list(falls), "smaller gap": pairs})


FALLS, RISES, SLIGHT, UNCLEAR = within(0.05, 0.15), within(-0.15, -0.05), within(0.004, 0.006), within(-0.1, 0.3)

TABLES = {
    "fig4-baselines": [
        (methods(), AGREES), (methods(plain=NONE), PARTLY), (methods(NONE, NONE), DIFFERS),
        (methods(fails=False), DIFFERS),
    ],
    "fig4-sparse": [
        (methods(), AGREES), (methods(small=NONE), PARTLY), (methods(small=NONE, large=NONE), DIFFERS),
        (methods(ours_fails=False), NOT_TESTED),
    ],
    "fig4-epsilon": [
        (epsilons(FALLS, FALLS, SLIGHT), AGREES), (epsilons(RISES, RISES, RISES), AGREES),
        (epsilons(FALLS, UNCLEAR, SLIGHT), PARTLY), (epsilons(SLIGHT, UNCLEAR, SLIGHT), DIFFERS),
        (epsilons(FALLS, FALLS, FALLS, pairs=3), NOT_TESTED),
    ],
}  # fmt: skip
