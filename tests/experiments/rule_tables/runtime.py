"""Tables on which each rule on Figure 3 agrees, agrees in part, and differs."""

from rules import AGREES, DIFFERS, NOT_TESTED, PARTLY, frame, within

from experiments.harness.intervals import UNKNOWN
from experiments.runtime.findings import COST_ROWS, COUNT_ROWS, CVX_ROWS, MAX_CUT_ROWS


def exponents(rows, *found):
    made = [UNKNOWN if one is None else within(one - 0.05, one + 0.05) for one in found]
    paper = dict(zip([*COST_ROWS, *COUNT_ROWS], (1, 2, 1, 0, 0), strict=True))
    return frame(rows, exponent=made, paper=[paper[row] for row in rows])


def sizes(*first):
    return frame(**{"first n not reached": list(first)})


def pairs(rows, times, errors=(0.0, 0.0), instances=20, labels=2000):
    made = {"ratio of times": [within(0.9 * t, 1.1 * t) for t in times]}
    made["difference of errors"] = [within(e - 0.01, e + 0.01) for e in errors]
    return frame(rows, **made, instances=instances, **{"n x n up to": labels})


def smaller(gap=0.1, iterations=10.0, time=10.0, fall=0.1, instances=20):
    made = {"gap": gap, "iterations": iterations, "time": time, "fall of the error": fall}
    return frame(**{name: [within(one - 0.05, one + 0.05)] for name, one in made.items()}, instances=instances)


def sparse(lead=0.2, reduction=0.1, instances=20):
    return frame(
        **{"lead of CVXPY": [within(lead - 0.05, lead + 0.05)], "instances": instances},
        reduction=[within(reduction - 0.05, reduction + 0.05)],
    )


TABLES = {
    "cost": [
        (exponents(COST_ROWS, 0.9, 2.0), AGREES), (exponents(COST_ROWS, 1.3, 2.0), PARTLY),
        (exponents(COST_ROWS, 0.9, 2.5), PARTLY), (exponents(COST_ROWS, 1.3, 2.5), DIFFERS),
        (exponents(COST_ROWS, 1.0, None), NOT_TESTED),
    ],
    "iterations": [
        (exponents(COUNT_ROWS, 0.7, -1.0, 0.0), AGREES), (exponents(COUNT_ROWS, 1.0, 1.0, 0.0), PARTLY),
        (exponents(COUNT_ROWS, 1.0, 0.0, 0.4), PARTLY), (exponents(COUNT_ROWS, 1.3, 0.0, 0.0), DIFFERS),
        (exponents(COUNT_ROWS, 1.0, 0.0, None), NOT_TESTED),
    ],
    "fig3-breakdown": [
        (sizes(500.0, 1000.0), AGREES), (sizes(1000.0, 2000.0), PARTLY), (sizes(10_000.0, 2000.0), DIFFERS),
        (sizes(float("nan"), float("nan")), DIFFERS), (sizes(), NOT_TESTED),
    ],
    "fig3-cvx": [
        (pairs(CVX_ROWS, (10.0, 1.0)), AGREES), (pairs(CVX_ROWS, (10.0, 0.1)), PARTLY),
        (pairs(CVX_ROWS, (1.0, 1.0)), PARTLY), (pairs(CVX_ROWS, (0.1, 0.1)), DIFFERS),
        (pairs(CVX_ROWS, (0.1, 0.1), labels=155), PARTLY), (pairs(CVX_ROWS, (10.0, 1.0), instances=5), NOT_TESTED),
    ],
    "fig3-max-cut": [
        (pairs(MAX_CUT_ROWS, (1.5, 30.0), (0.0, 0.2)), AGREES), (pairs(MAX_CUT_ROWS, (1.5, 30.0), (0.2, 0.0)), PARTLY),
        (pairs(MAX_CUT_ROWS, (20.0, 30.0)), PARTLY), (pairs(MAX_CUT_ROWS, (20.0, 30.0), (0.2, 0.2)), DIFFERS),
        (pairs(MAX_CUT_ROWS, (1.5, 30.0), instances=5), NOT_TESTED),
    ],
    "fig3-epsilon": [
        (smaller(), AGREES), (smaller(fall=0.0), PARTLY), (smaller(gap=1.0), DIFFERS),
        (smaller(iterations=1.0), DIFFERS),
        (smaller(time=0.5), DIFFERS), (smaller(instances=5), NOT_TESTED),
    ],
    "fig3-sparse": [
        (sparse(), AGREES), (sparse(reduction=0.0), PARTLY), (sparse(lead=0.0), DIFFERS), (sparse(lead=-0.2), DIFFERS),
        (sparse(instances=5), NOT_TESTED),
    ],
}  # fmt: skip
