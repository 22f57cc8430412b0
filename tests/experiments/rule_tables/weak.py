"""Tables on which each rule on weak supervision agrees, agrees in part, and differs."""

import pandas as pd
from rules import AGREES, DIFFERS, NOT_TESTED, PARTLY, frame, on_share, within

from experiments.weak import findings
from experiments.weak.cells import FEW, MANY, PROGRAM


def gain(method, interval, instances=12):
    table = frame(pd.MultiIndex.from_tuples([("bags", method)]), instances=instances)
    return table.assign(**{"gain of the optimum": pd.Series([interval], dtype=object, index=table.index)})


def over(method):
    return [
        (gain(method, within(0.01, 0.03)), AGREES), (gain(method, within(-0.01, 0.03)), PARTLY),
        (gain(method, within(0.0, 0.0)), PARTLY), (gain(method, within(-0.03, 0.01)), DIFFERS),
        (gain(method, within(0.01, 0.03), 11), NOT_TESTED), (gain("another", within(0.01, 0.03)), NOT_TESTED),
    ]  # fmt: skip


TABLES = {
    findings.PROVED.statement: on_share(findings.ALL, 40, 34, 19),
    findings.PRACTICE.statement: on_share(findings.WEAK, 40, 34, 19),
    findings.ENOUGH.statement: on_share(findings.REACHED, 40, 34, 19),
    findings.OVER_FEW.statement: over(FEW),
    findings.OVER_MANY.statement: over(MANY),
    findings.OVER_PROGRAM.statement: over(PROGRAM),
}
