"""Tables on which each rule on Figure 4 agrees, agrees in part, and differs."""

from rules import AGREES, DIFFERS, NOT_TESTED, PARTLY, frame, within

from experiments.robustness.findings import PLAIN, SPARSE

GAIN, NONE = within(2.0, 9.0), within(-3.0, 4.0)


def baselines(plain=GAIN, sparse=GAIN, fails=True):
    return frame(["k-means", "alternating"], **{"fails": [True, fails], PLAIN: [GAIN, plain], SPARSE: [GAIN, sparse]})


def penalties(small=GAIN, large=GAIN, fails=True):
    return frame([0.0, 0.001, 0.01], **{"fails": fails, "gain": [within(0.0, 0.0), small, large]})


def epsilons(*falls, pairs=40):
    return frame([0.0, 0.001, 0.01], **{"error falls by": list(falls), "smaller gap": pairs})


FALLS, RISES, SLIGHT, UNCLEAR = within(0.05, 0.15), within(-0.15, -0.05), within(0.004, 0.006), within(-0.1, 0.3)

TABLES = {
    "fig4-baselines": [
        (baselines(), AGREES), (baselines(plain=NONE), PARTLY), (baselines(NONE, NONE), DIFFERS),
        (baselines(fails=False), DIFFERS),
    ],
    "fig4-sparse": [
        (penalties(), AGREES), (penalties(small=NONE), PARTLY), (penalties(NONE, NONE), DIFFERS),
        (penalties(fails=False), NOT_TESTED),
    ],
    "fig4-epsilon": [
        (epsilons(FALLS, FALLS, SLIGHT), AGREES), (epsilons(RISES, RISES, RISES), AGREES),
        (epsilons(FALLS, UNCLEAR, SLIGHT), PARTLY), (epsilons(SLIGHT, UNCLEAR, SLIGHT), DIFFERS),
        (epsilons(FALLS, FALLS, FALLS, pairs=3), NOT_TESTED),
    ],
}  # fmt: skip
