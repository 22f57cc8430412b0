"""Tables on which each rule on section 5 agrees, agrees in part, and differs."""

from rules import AGREES, DIFFERS, NOT_TESTED, PARTLY, frame, within

from experiments.harness.intervals import Interval
from experiments.theory import findings as theory


def share(low, high=1.0):
    return Interval(high, low, high)


def own(*rows, low=0.98, instances=100, several=0):
    entry = {"holds in": [share(low)] * len(rows), "instances": instances, "several solutions": several}
    return frame(list(rows), **entry)


def of_proportion(*rows):
    return [(own(*rows), AGREES), (own(*rows, low=0.8), PARTLY), (own(*rows, low=0.3), DIFFERS),
            (own(*rows, instances=74), NOT_TESTED)]  # fmt: skip


def of_all_solutions(row):
    return [(own(row, several=80), AGREES), (own(row), PARTLY), (own(row, low=0.8, several=80), PARTLY),
            (own(row, low=0.3, several=80), DIFFERS), (own(row, instances=74), NOT_TESTED)]  # fmt: skip


def beta(exact, near, instances=260):
    return frame([1.0, 1.1], unique=[Interval(0.0, 0.0, exact), share(near)], instances=instances)


def several(*lows, ratio=0.1, instances=300):
    right = [share(low) for low in lows]
    return frame(**{"eigenvector right": right}, ratio=[within(ratio, ratio)], instances=instances)


def spectrum(every=1e-12, two=1e-12, below=0):
    return frame(**{"any eigenvalue": every, "two smallest": two, "below the bound": below})


def c_min(above, below, cases=10):
    return frame(["at most 1", "above 1"], **{"cases": cases, "holds in": [below, above]})


def hessian(*lows, instances=100):
    return frame(theory.HESSIAN_ROWS, **{"holds in": [share(low) for low in lows], "instances": instances})


def equivalence(row, exceptions, true=50, instances=100):
    return frame([row], exceptions=exceptions, true=true, instances=instances)


def of_equivalence(row):
    return [(equivalence(row, 0), AGREES), (equivalence(row, 2), PARTLY), (equivalence(row, 20), DIFFERS),
            (equivalence(row, 0, true=98), NOT_TESTED)]  # fmt: skip


def mixture(value="6.6e-13", rank=True, distance=1e-3, unique=33):
    return frame(**{"largest value": value, "rank 2": rank, "distance if unique": distance, "unique": unique})


def sizes(symbol, quotient=1.3, exponent=1.7, always=True):
    rows = {"over the balanced n": ["-", within(quotient - 0.1, quotient + 0.1)], "in every instance": [True, always]}
    rows["exponent of d"] = [within(1.6, 1.8), within(exponent, exponent + 0.1)]
    return frame(["balanced", f"{symbol} 2"], **rows)


def of_sizes(symbol):
    return [(sizes(symbol), AGREES), (sizes(symbol, quotient=2.5), PARTLY), (sizes(symbol, quotient=0.4), PARTLY),
            (sizes(symbol, exponent=2.5), PARTLY), (sizes(symbol, always=False), DIFFERS)]  # fmt: skip


def gain(high, instances=60):
    return frame(**{"gain beyond 1": [within(0.0, high)], "instances": instances})


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
    "prop2-a": of_proportion(theory.PROPOSITION_2A, theory.SOLVED_2A),
    "prop1-b": of_all_solutions(theory.PROPOSITION_1B),
    "prop2-b": of_all_solutions(theory.PROPOSITION_2B),
    "prop1-kurtosis": [
        (beta(0.02, 0.8), AGREES), (beta(0.4, 0.8), PARTLY), (beta(0.02, 0.2), PARTLY), (beta(0.3, 0.1), DIFFERS),
        (beta(0.9, 0.95), DIFFERS), (beta(0.02, 0.8, 70), NOT_TESTED),
    ],
    "prop1-spiked": [
        (several(0.97, 0.1), AGREES), (several(0.97, 0.97, ratio=0.6), PARTLY), (several(0.6, 0.1), PARTLY),
        (several(0.12, 0.14), DIFFERS), (several(0.97, 0.97, instances=70), NOT_TESTED),
    ],
    "spectrum": [
        (spectrum(), AGREES), (spectrum(below=1), PARTLY), (spectrum(two=0.1), PARTLY), (spectrum(every=0.1), PARTLY),
        (spectrum(0.1, 0.1), DIFFERS),
    ],
    "c-min": [
        (c_min(10, 10), AGREES), (c_min(10, 2), PARTLY), (c_min(9, 10), DIFFERS), (c_min(10, 10, [0, 10]), NOT_TESTED),
    ],
    "hessian": [
        (hessian(0.98, 0.98, 0.98), AGREES), (hessian(0.98, 0.98, 0.6), PARTLY), (hessian(0.8, 0.98, 0.98), DIFFERS),
        (hessian(0.98, 0.98, 0.98, instances=70), NOT_TESTED),
    ],
    "one-dimension": of_equivalence("one dimension"),
    "multi-label-diagonal": of_equivalence("diagonal"),
    "rank-two": [
        (mixture(), AGREES), (mixture(distance=0.2), PARTLY), (mixture(rank=False), PARTLY),
        (mixture("0.001"), DIFFERS),
        (mixture(unique=0), NOT_TESTED),
    ],
    "rank-two-unique": of_sizes("alpha* ="),
    "multi-label-support": of_sizes("k ="),
    "nu-range": [(gain(0.009), AGREES), (gain(0.03), PARTLY), (gain(0.2), DIFFERS), (gain(0.0, 19), NOT_TESTED)],
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
