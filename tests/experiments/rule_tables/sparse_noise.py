"""Tables on which the rules on Figure 1 (b) and the conjecture, by variance, agree, agree in part, and differ."""

import pandas as pd
from rules import AGREES, DIFFERS, NOT_TESTED, PARTLY, frame, within

from experiments.harness.intervals import UNKNOWN
from experiments.sparse_noise.findings import OTHER, PAPERS
from experiments.sparse_regime.models import FASTER, LINEAR, LOGARITHM, OPEN


def growths(*by_variance, rotated=None):
    """The growth at each variance at the paper's weight, of flat and of rotated directions; at the other, linear."""
    index = pd.MultiIndex.from_product(
        [["raw"], ["flat", "rotated"], range(len(by_variance))], names=["columns", "direction", "m"]
    )
    rows = [*by_variance, *(rotated or by_variance)]
    return frame(index, **{f"growth, {PAPERS}": rows, f"growth, {OTHER}": LINEAR})


def entries(papers, other=(False, False), known=True):
    """Whether the growth in d and l is linear at two variances, at each weight."""
    index = pd.MultiIndex.from_product([[PAPERS, OTHER], [0.3, 1.0]], names=["weight", "m"])
    exponents = [within(0.9, 1.1) if known else UNKNOWN] * 4
    return frame(index, holds=[*papers, *other], **{"exponent of l": exponents})


TABLES = {
    "fig1-error-sparse": [
        (growths(LINEAR, LINEAR), AGREES), (growths(LINEAR, LOGARITHM), PARTLY), (growths(LINEAR, FASTER), PARTLY),
        (growths(LOGARITHM, LOGARITHM), PARTLY), (growths(FASTER, OPEN), DIFFERS),
        (growths(LINEAR, LINEAR, rotated=(FASTER, FASTER)), DIFFERS), (growths(OPEN, OPEN), NOT_TESTED),
    ],
    "conjecture": [
        (entries((True, True)), AGREES), (entries((False, False), (True, True)), AGREES),
        (entries((True, False), (False, True)), PARTLY), (entries((True, False)), PARTLY),
        (entries((False, False)), DIFFERS), (entries((False, False), known=False), NOT_TESTED),
    ],
}  # fmt: skip
