"""Tables on which each rule on the affine law agrees, agrees in part, and differs."""

import numpy as np
import pandas as pd
from rules import AGREES, DIFFERS, NOT_TESTED, PARTLY, within

from experiments.theory.affine_law import DEPENDS, HOLDS, LAWS


def ratios(gaussian=(0.98, 1.02), uniform=(0.98, 1.02), student=(0.98, 1.02), dimensions=(8, 32, 64)):
    """The same intervals at every dimension but the smallest, where they are far from 1; no interval for None."""
    columns = {}
    for law, ends in (("gaussian", gaussian), ("uniform", uniform), ("student", student)):
        rest = [np.nan if ends is None else within(*ends)] * (len(dimensions) - 1)
        columns[LAWS[law][0]] = pd.Series([within(2.0, 2.1), *rest] if ends else [np.nan, *rest], dtype=object)
    return pd.DataFrame(columns).set_axis(list(dimensions))


TABLES = {
    HOLDS.statement: [
        (ratios(), AGREES), (ratios((0.96, 1.02)), PARTLY), (ratios((0.9, 0.96)), DIFFERS),
        (ratios(dimensions=(8, 32)), NOT_TESTED),
    ],
    DEPENDS.statement: [
        (ratios(student=(0.4, 0.5)), AGREES), (ratios(uniform=(1.1, 1.2)), AGREES),
        (ratios(student=(0.9, 0.98)), PARTLY),
        (ratios(), DIFFERS), (ratios(student=None), NOT_TESTED),
    ],
}  # fmt: skip
