"""Tables on which each rule on Figure 2 agrees, agrees in part, and differs."""

from rules import AGREES, DIFFERS, NOT_TESTED, PARTLY, frame, within

from experiments.unbalanced.findings import RANKS


def alphas(one=15, projection=15, first=0.6, second=0.65, count=15):
    counts = {"alphas": count, "by exactly one": one, "by the projection": projection}
    return frame(**counts, **{"first up to": first, "second from": second})


def nus(both=9, least=True, second=0.0, small=9):
    return frame(**{"small nu": small, "by both": both, "at the smallest": least, "second recovers": second})


def ranks(*proportions, solved=10):
    shares = [within(share, share) for share in proportions]
    return frame(list(RANKS), **{"as stated": shares, "solved": solved, "instances": 10})


def noisy(*lows):
    return frame(**{"rank above 2": [within(low, 1.0) for low in lows]})


TABLES = {
    "fig2-constrained": [
        (alphas(), AGREES), (alphas(one=14), PARTLY), (alphas(projection=14), DIFFERS),
        (alphas(first=0.9), DIFFERS), (alphas(first=float("nan")), DIFFERS), (alphas(count=1), NOT_TESTED),
    ],
    "fig2-penalised": [
        (nus(), AGREES), (nus(both=8), PARTLY), (nus(both=8, least=False), DIFFERS), (nus(second=0.1), DIFFERS),
        (nus(small=0), NOT_TESTED),
    ],
    "fig2-rank": [
        (ranks(1, 1, 1, 1), AGREES), (ranks(1, 1, 0.9, 1), PARTLY), (ranks(1, 0.8, 1, 1), DIFFERS),
        (ranks(1, 1, 1, 1, solved=9), NOT_TESTED),
    ],
    "fig2-rank-noise": [(noisy(0.6, 0.7), AGREES), (noisy(0.4, 0.7), PARTLY), (noisy(0.4, 0.4), DIFFERS)],
}  # fmt: skip
