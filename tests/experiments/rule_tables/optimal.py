"""Tables on which the rules on certified optimal labels agree, agree in part and differ."""

from rules import AGREES, DIFFERS, NOT_TESTED, PARTLY

from experiments.harness.findings import shares
from experiments.optimal import findings

MOSTLY = {rule.statement: rule for rule in findings.RULES[:6]}
ROWS = (
    findings.NEAR, findings.LITTLE, findings.TEN_TIMES, findings.ENUMERATED, findings.RESTARTED,
    findings.IMPROVED,
)  # fmt: skip


ROUNDED = findings.ROUNDED


def hits(row, count, n=40):
    return shares({row: [1] * count + [0] * (n - count)})


TABLES = {
    statement: [
        (hits(row, 40), AGREES), (hits(row, 34), PARTLY), (hits(row, 19), DIFFERS), (hits(row, 11, 11), NOT_TESTED),
        (hits("another", 40), NOT_TESTED),
    ]
    for statement, row in zip(MOSTLY, ROWS, strict=True)
} | {
    findings.PAPER_ROUNDING.statement: [
        (hits(ROUNDED, 40), AGREES), (hits(ROUNDED, 22), PARTLY), (hits(ROUNDED, 10), DIFFERS),
        (hits(ROUNDED, 11, 11), NOT_TESTED),
    ],
    findings.NEARER.statement: [
        (hits("real", 40), AGREES), (hits("real", 20), PARTLY), (hits("real", 5), DIFFERS),
        (hits("real", 5, 5), NOT_TESTED),
    ],
}  # fmt: skip
