"""Tables on which the rule on the choice of parameters agrees, agrees in part, and differs."""

import pandas as pd
from rules import AGREES, DIFFERS, NOT_TESTED, PARTLY

from experiments.choice.findings import METHODS, NEAR


def means(kmeans, best, kind="held-out", choice=0.5):
    """Mean indices of three methods on one kind of sets."""
    found = {"choice": choice, "kmeans": kmeans, "best": best}
    return pd.DataFrame({f"20 {kind} sets": {METHODS[name]: mean for name, mean in found.items()}})


TABLES = {
    NEAR.statement: [
        (means(0.54, 0.59), AGREES), (means(0.2, 0.5), AGREES), (means(0.54, 0.61), PARTLY),
        (means(0.56, 0.59), PARTLY),
        (means(0.56, 0.61), DIFFERS), (means(0.54, 0.59, "design"), NOT_TESTED),
    ],
}  # fmt: skip
