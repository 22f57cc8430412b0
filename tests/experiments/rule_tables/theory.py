"""Tables on which each rule on section 5 agrees, agrees in part, and differs."""

from rules import AGREES, DIFFERS, NOT_TESTED, PARTLY, STRONGER, frame, within

from experiments.harness.intervals import Interval
from experiments.theory import findings as theory


def share(low, high=1.0):
    return Interval(high, low, high)


def own(*rows, low=0.98, instances=100):
    return frame(list(rows), **{"holds in": [share(low)] * len(rows), "instances": instances})


def of_proportion(*rows):
    return [(own(*rows), AGREES), (own(*rows, low=0.8), PARTLY), (own(*rows, low=0.3), DIFFERS),
            (own(*rows, instances=74), NOT_TESTED)]  # fmt: skip


def beta(exact, near, instances=260):
    return frame([1.0, 1.1], unique=[Interval(0.0, 0.0, exact), share(near)], instances=instances)


def several(*lows, ratio=0.1, instances=300, unique=0.5):
    columns = {"eigenvector right": [share(low) for low in lows], "unique at 1 (b)": [share(unique)] * len(lows)}
    return frame(**columns, ratio=[within(ratio, ratio)], instances=instances)


def sizes(symbol, quotient=1.3, exponent=1.7, always=True):
    rows = {"over the balanced n": ["-", within(quotient - 0.1, quotient + 0.1)], "in every instance": [True, always]}
    rows["exponent of d"] = [within(1.6, 1.8), within(exponent, exponent + 0.1)]
    return frame(["balanced", f"{symbol} 2"], **rows)


def of_sizes(symbol):
    return [(sizes(symbol), AGREES), (sizes(symbol, quotient=2.5), PARTLY), (sizes(symbol, quotient=0.4), PARTLY),
            (sizes(symbol, exponent=2.5), PARTLY), (sizes(symbol, always=False), DIFFERS)]  # fmt: skip


def alternation(few, right, instances=100):
    starts = {"few, random": [share(few)], "few, eigenvectors": [share(0.3)], "20 starts to the end": [share(right)]}
    return frame(**starts, instances=instances)


def noisy(ratios=(0.02, 0.1), errors=(0.0, 0.0), rank=0.95, instances=60, kept=True):
    values = {"ratio": [0.0, *ratios, 0.9, 0.9], "error": [0.0, *errors, 0.9, 0.9]}
    columns = {name: [within(value - 0.01, value + 0.01) for value in found] for name, found in values.items()}
    columns |= {"rank above one": [share(rank)] * 5, "signs kept": [True, kept, kept, False, False]}
    columns["instances"] = instances
    return frame(["0", "0.02", "0.1", "0.5", theory.NO_CLUSTERS_ROW], **columns)


def rivals(alone=(0.2, 0.4), relaxed=(0.6, 0.8), nonzeros=3, instances=100):
    columns = {"alone": [within(*alone)], "relaxation": [within(*relaxed)]}
    return frame(**columns, nonzeros=nonzeros, d=20, instances=instances)


TABLES = {
    "prop1-a": of_proportion(theory.PROPOSITION_1A),
    "prop1-small-variance": of_proportion(theory.SMALL_VARIANCE),
    "prop1-b": of_proportion(theory.PROPOSITION_1B),
    "prop1-kurtosis": [
        (beta(0.02, 0.8), AGREES), (beta(0.4, 0.8), PARTLY), (beta(0.02, 0.2), PARTLY), (beta(0.3, 0.1), DIFFERS),
        (beta(0.9, 0.95), DIFFERS), (beta(0.02, 0.8, 70), NOT_TESTED),
    ],
    "prop1-spiked": [
        (several(0.97, 0.1), AGREES), (several(0.97, 0.97, ratio=0.6), PARTLY), (several(0.6, 0.1), PARTLY),
        (several(0.12, 0.14), DIFFERS), (several(0.12, 0.14, unique=0.98), STRONGER),
        (several(0.97, 0.97, instances=70), NOT_TESTED),
    ],
    "rank-two-unique": of_sizes("alpha* ="),
    "multi-label-support": of_sizes("k ="),
    "procrustes-few": [
        (alternation(0.97, 0.99), AGREES), (alternation(0.6, 0.97), PARTLY), (alternation(0.5, 0.6), DIFFERS),
        (alternation(0.97, 0.99, 74), NOT_TESTED),
    ],
    "perturbed": [
        (noisy(), AGREES), (noisy((0.02, 0.6)), PARTLY), (noisy(errors=(0.0, 0.6)), PARTLY), (noisy(rank=0.5), PARTLY),
        (noisy((0.6, 0.6)), DIFFERS), (noisy(errors=(0.6, 0.6)), DIFFERS), (noisy(instances=30), NOT_TESTED),
        (noisy(kept=False), NOT_TESTED),
    ],
    "sparse-direction-alone": [
        (rivals(), AGREES), (rivals((0.2, 0.7)), PARTLY), (rivals(nonzeros=18), PARTLY), (rivals((0.7, 0.9)), DIFFERS),
        (rivals((0.0, 0.0), (0.0, 0.0)), NOT_TESTED), (rivals(instances=70), NOT_TESTED),
    ],
}  # fmt: skip
