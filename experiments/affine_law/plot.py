"""Draw the affine law from its table."""

from pathlib import Path

import numpy as np
import pandas as pd

from experiments.affine_law.cells import LAWS
from experiments.affine_law.claims import ratios
from experiments.harness.beyond import panels
from experiments.harness.style import ACCENT, GRAY, SECONDARY

LOOKS = dict(zip(LAWS, ((ACCENT, "o"), (SECONDARY, "s"), ("#8fa01d", "^")), strict=True))
NAMES = {"gaussian": "Gaussian", "uniform": "uniform", "student": "Student, 3 degrees"}


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Draw n over d + d(d-1)/4 with intervals for each law, and n over d^2 for Gaussian noise."""
    with panels(stem, 1, 2, 2.4) as (_, (left, right)):
        for law, (color, marker) in LOOKS.items():
            found = ratios(table, law)
            d, values = np.array(list(found)), np.array([[r.value, r.low, r.high] for r in found.values()])
            errors = [values[:, 0] - values[:, 1], values[:, 2] - values[:, 0]]
            look = {"color": color, "marker": marker, "ms": 3, "lw": 1, "capsize": 2, "label": NAMES[law]}
            left.errorbar(d, values[:, 0], errors, **look)
            if law == "gaussian":
                scale = (d + d * (d - 1) / 4) / d**2
                right.errorbar(d, values[:, 0] * scale, np.array(errors) * scale, **look)
                right.plot(d, scale, "--", color=GRAY, lw=1, label="d + d(d-1)/4")
        left.axhline(1.0, color=GRAY, ls="--", lw=1)
        right.axhline(0.25, color=GRAY, ls=":", lw=1, label="1/4, ellipsoid fitting")
        left.set(title="(a) points relative to d + d(d-1)/4", ylabel="ratio of the medians", ylim=(0, None))
        right.set(title="(b) points relative to d²", ylabel="n / d²", ylim=(0.2, None))
        for ax in (left, right):
            ax.set_xscale("log", base=2)
            ax.set_xticks([8, 16, 32, 64, 128], ["8", "16", "32", "64", "128"])
            ax.set_xlabel("d (log scale)")
            ax.legend(frameon=False, fontsize=6)
