"""Tables on which each rule on Figures 5 and 6 agrees, agrees in part, and differs."""

from rules import AGREES, DIFFERS, NOT_COMPARABLE, PARTLY, frame


def traces(*ahead, centred=True, n=2000):
    """The traces on some sets, on each of which the relaxation is ahead or not, and on a smaller set."""
    ours = [3.0 if one else 1.0 for one in (*ahead, False)]
    columns = {
        "n": [n] * len(ahead) + [500],
        "labels": 80,
        "relaxation": ours,
        "k-means": 2.0,
        "relaxation, centred": ours if centred else 1.0,
        "k-means, centred": 2.0,
    }
    return frame([f"set {k}" for k in range(len(ours))], **columns)


def labels(count, d=1000):
    return frame(**{"n": 2000, "d": d, "labels": 80, "above twice chance": count})


TABLES = {
    "fig5-trace": [
        (traces(True, True), AGREES), (traces(True, False), PARTLY), (traces(True, False, False), DIFFERS),
        (traces(True, True, centred=False), DIFFERS), (traces(True, True, n=500), NOT_COMPARABLE),
    ],
    "fig6-labels": [
        (labels(10), AGREES), (labels(9), PARTLY), (labels(0), DIFFERS), (labels(80, d=499), NOT_COMPARABLE),
    ],
}  # fmt: skip
