"""The rules on the structure test can agree, agree in part, and differ."""

import pandas as pd
import pytest

from experiments.harness.findings import Verdict
from experiments.harness.intervals import proportion_of
from experiments.structure.families import WITH, WITHOUT
from experiments.structure.findings import CLEAR, FEW_REFUSED, NO_FALSE_GAP


def shares(names, column, values):
    return pd.DataFrame({column: [proportion_of([1] * k + [0] * (40 - k)) for k in values]}, index=list(names))


@pytest.mark.parametrize(
    ("counts", "verdict"),
    [((0, 4), Verdict.AGREES), ((0, 9), Verdict.PARTLY), ((9, 0), Verdict.DIFFERS)],
    ids=["agrees", "in part", "differs"],
)
def test_a_family_that_is_called_separated_too_often_changes_the_verdict(counts, verdict):
    most, one = counts
    assert NO_FALSE_GAP(shares(WITHOUT, "separated", [most] * (len(WITHOUT) - 1) + [one])) is verdict
    assert NO_FALSE_GAP(shares(list(WITHOUT)[:3], "separated", [0] * 3)) is Verdict.NOT_TESTED


@pytest.mark.parametrize(("count", "verdict"), [(4, Verdict.AGREES), (8, Verdict.PARTLY), (9, Verdict.DIFFERS)])
def test_clear_groups_that_are_refused_change_the_verdict(count, verdict):
    assert FEW_REFUSED(shares(WITH, "none", [count if name in CLEAR else 40 for name in WITH])) is verdict
    assert FEW_REFUSED(shares(CLEAR[:2], "none", [0, 0])) is Verdict.NOT_TESTED
