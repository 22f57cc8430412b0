"""Tables on which the rules on certified optimal labels agree, agree in part and differ."""

from rules import on_share

from experiments.optimal import findings

ROWS = {
    findings.SMALL_ROOT: findings.NEAR, findings.HARDNESS: findings.LITTLE, findings.PROGRAM: findings.TEN_TIMES,
    findings.DIRECTIONS: findings.ENUMERATED, findings.ALTERNATION: findings.RESTARTED,
    findings.IMPROVEMENT: findings.IMPROVED,
}  # fmt: skip
TABLES = {rule.statement: on_share(row, 40, 34, 19) for rule, row in ROWS.items()} | {
    findings.PAPER_ROUNDING.statement: on_share(findings.ROUNDED, 40, 22, 10),
    findings.NEARER.statement: on_share("real", 40, 22, 20),
}
