"""Number of points for a unique solution without a penalty, compared with d + d(d-1)/4, for several noise laws."""

from pathlib import Path

import numpy as np
import pandas as pd

from diffrac_cvx.typing import Array
from experiments.harness.command import Experiment
from experiments.harness.findings import Finding, Rule, one_row
from experiments.harness.intervals import Interval, median_of
from experiments.harness.style import ACCENT, GRAY, SECONDARY, panels
from experiments.harness.sweep import Cell, Row, cross
from experiments.theory.only_solution import is_only_solution
from experiments.theory.unique_solution import statistical_dimension

REPLICATIONS = 30
STREAM = 1.6  # length of the stream of points, relative to d + d(d-1)/4
PRECISION = 0.002  # relative, of the number of points
FREEDOM = 3  # degrees of freedom of Student's law: no fourth moment
LAWS = {  # noise distributions of variance one, with their names, colours and markers
    "gaussian": ("Gaussian", ACCENT, "o"),
    "uniform": ("uniform", SECONDARY, "s"),
    "student": (f"Student, {FREEDOM} degrees", "#8fa01d", "^"),
}
SETTINGS = {"stream": STREAM, "precision": PRECISION, "freedom": FREEDOM}

TITLE = "Without a penalty: a unique solution from d + d(d-1)/4 points"
ABOUT = (
    "Noiseless labels and d - 1 columns of independent noise of variance one. The smallest number of points with a "
    "unique solution is bracketed by bisection on one stream of points per replication (30 replications); the median "
    "over them is the number at which half of the instances have a unique solution. Nothing is fitted."
)
FROM_D = 32
CLOSE = (0.97, 1.03)
HOLDS = Rule(
    "with Gaussian noise, half of the instances have a unique solution at n = d + d(d-1)/4",
    f"agrees if the interval lies within {CLOSE[0]:g} to {CLOSE[1]:g} at every d from {FROM_D} on, in part if it overlaps this range",
    lambda t: all(ratio.within(*CLOSE) for ratio in ratios_of(t, "gaussian", FROM_D)),
    lambda t: all(ratio.meets(*CLOSE) for ratio in ratios_of(t, "gaussian", FROM_D)),
    tested=lambda t: len(ratios_of(t, "gaussian", FROM_D)) >= 2,
)
DEPENDS = Rule(
    "the law depends on the noise distribution",
    f"agrees if for uniform or Student noise the interval at the largest d lies outside {CLOSE[0]:g} to {CLOSE[1]:g}, in part if the "
    "ratio is below it",
    lambda t: any(not end.meets(*CLOSE) for end in last_of(t)),
    lambda t: any(end.value < CLOSE[0] for end in last_of(t)),
    tested=lambda t: len(last_of(t)) == len(LAWS) - 1,
)
RULES = (HOLDS, DEPENDS)


def cells_of(grid: str) -> list[Cell]:
    """Return the cells of a grid."""
    if grid != "full":
        return cross(law=LAWS, d=(6, 10), replication=range(2))
    wide = cross(law=["gaussian"], d=(8, 12, 16, 24, 32, 48, 64, 100, 150), replication=range(REPLICATIONS))
    return wide + cross(law=("uniform", "student"), d=(8, 16, 32, 64), replication=range(REPLICATIONS))


def stream_of(law: str, d: int, replication: int) -> tuple[Array, Array]:
    """Return labels (n,) and noise (n, d - 1); a problem uses the first points."""
    n = int(np.ceil(STREAM * statistical_dimension(float(d))))
    rng = np.random.default_rng([2017, 78, list(LAWS).index(law), d, replication])
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    size = (n, d - 1)
    if law == "gaussian":
        return y, rng.standard_normal(size)
    if law == "uniform":
        return y, rng.uniform(-(3**0.5), 3**0.5, size)
    return y, rng.standard_t(FREEDOM, size) / (FREEDOM / (FREEDOM - 2)) ** 0.5


def measure(law: str, d: int, replication: int) -> Row:
    """Bracket the smallest number of points with a unique solution; more points only help, so bisection is valid."""
    y, Z = stream_of(law, d, replication)
    low, high = d, len(y) + 1
    while high - low > max(1.0, PRECISION * high):
        middle = (low + high) // 2
        only = is_only_solution(y[:middle], Z[:middle])
        if only is None:
            break
        low, high = (low, middle) if only else (middle, high)
    return {"other": low, "only": high, "expected": statistical_dimension(float(d))}


def findings(table: pd.DataFrame) -> list[Finding]:
    """Return the ratios for all laws, and the constant of ellipsoid fitting."""
    return [
        Finding("Median of n over d + d(d-1)/4", ratios(table), [HOLDS, DEPENDS]),
        Finding(
            "n over d^2 with Gaussian noise, compared with 1/4, the threshold of ellipsoid fitting",
            limit(table),
            comment="Maillard and Kunisky (2024) predict that the threshold of ellipsoid fitting is 1/4; Maillard and "
            "Bandeira (2023) prove an approximate version.",
        ),
    ]


def ratios(table: pd.DataFrame) -> pd.DataFrame:
    """Return the median of n over d + d(d-1)/4, one row per dimension and one column per law."""
    ratio = (table["other"] + table["only"]) / 2 / table["expected"]
    found = ratio.groupby([table["d"], table["law"]]).agg(lambda values: [median_of(values.to_numpy())]).unstack("law")
    found = found.map(lambda one: one[0] if isinstance(one, list) else np.nan)
    return found[[law for law in LAWS if law in found]].rename(columns={law: name for law, (name, *_) in LAWS.items()})


def ratios_of(found: pd.DataFrame, law: str, from_d: int = 0) -> list[Interval]:
    """Return the ratios of a law that were measured, from some dimension on."""
    name = LAWS[law][0]
    return list(found.loc[found.index >= from_d, name].dropna()) if name in found else []


def last_of(found: pd.DataFrame) -> list[Interval]:
    """Return the ratio at the largest dimension for each law but the Gaussian one."""
    return [ratios_of(found, law)[-1] for law in LAWS if law != "gaussian" and ratios_of(found, law)]


def limit(table: pd.DataFrame) -> pd.DataFrame:
    """Return n over d^2 at the largest dimension with Gaussian noise, and the same of d + d(d-1)/4."""
    found = ratios(table[table["law"] == "gaussian"])
    d = int(found.index.max())
    scale = 1 / 4 + 3 / (4 * d)
    return one_row(d=d, n_over_d2=Interval(*(scale * end for end in found.iloc[-1, 0])), expected=scale)


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Draw n over d + d(d-1)/4 with intervals for each law, and n over d^2 for Gaussian noise."""
    with panels(stem, 1, 2, 2.4) as (_, (left, right)):
        for law, (name, color, marker) in LAWS.items():
            found = ratios(table)[name].dropna()
            d, values = found.index.to_numpy(), np.array([list(ratio) for ratio in found])
            errors = [values[:, 0] - values[:, 1], values[:, 2] - values[:, 0]]
            look = {"color": color, "marker": marker, "ms": 3, "lw": 1, "capsize": 2, "label": name}
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


EXPERIMENT = Experiment("affine_law", cells_of, measure, draw, findings, SETTINGS)
