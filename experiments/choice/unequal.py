"""Unequal clusters without being told: the split at the gap of the structure test, compared with the default.

The tables were named by the rule below before the method was run on any of them.
"""

import warnings
import zlib
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn import datasets as sklearn_sets
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

import diffrac_cvx as dc
from diffrac_cvx.points.linear_algebra import standardize_columns
from experiments.choice.sets import Labeled, labeled, read_own, read_pair
from experiments.harness.findings import Finding, Rule
from experiments.harness.intervals import mean_of
from experiments.harness.style import ACCENT, SECONDARY, panels
from experiments.harness.sweep import Cell, Row, cross

SEED = 41
METHODS = ("default", "unequal", "kmeans", "mixture")
DIGIT_SHARES = (0.25, 0.15)  # of the rows in the second digit
RATIOS = {"1/2": (0.5, 1), "1/4": (0.25, 1), "1/9": (1.0 / 9.0, 0)}  # of class sizes, and the smaller class
DIGITS = {f"digits {k} or {k + 5}": partial(read_pair, sklearn_sets.load_digits, k, k + 5) for k in range(5)}
SETS = {
    **{name: partial(read_own, name) for name in ("breast_cancer", "diabetes", "heart", "liver_disorders", "sonar")},
    "wdbc": partial(read_pair, sklearn_sets.load_breast_cancer, 0, 1),
}
WINES = {f"wine {k} or {k + 1}": partial(read_pair, sklearn_sets.load_wine, k, k + 1) for k in range(2)}
BETTER, WORSE, MAX_WORSE = 0.03, 0.05, 0.1  # mean gain, and a loss that at most a tenth of the tables may have
MIN_TABLES = 20
SETTINGS = {"seed": SEED}
TITLE = "Unequal clusters without being told"
ABOUT = (
    "Thirty two-class tables made unequal, named before the method was run on them: digits k and k + 5 with 25 and "
    "15 % of the rows in the second, six shipped or public tables with class sizes 1/2, 1/4 and 1/9, and two pairs of "
    "wines with 1/4. `DiffracClustering(test_structure=True)` returns the sides of the gap of the structure test if "
    "only another split shows it and 8 to 35 % of the rows are on one side. Adjusted Rand index."
)


def ratio_of(share: float) -> float:
    """Return the ratio of class sizes for a share of the smaller class."""
    return share / (1.0 - share)


TABLES = {
    **{f"{name}, {share:.0%}": (load, ratio_of(share), 1) for name, load in DIGITS.items() for share in DIGIT_SHARES},
    **{f"{name}, {text}": (load, *ratio) for name, load in SETS.items() for text, ratio in RATIOS.items()},
    **{f"{name}, 1/4": (load, *RATIOS["1/4"]) for name, load in WINES.items()},
}


def cells_of(grid: str) -> list[Cell]:
    """Return the cells of a grid."""
    return cross(name=list(TABLES) if grid == "full" else list(TABLES)[:2])


def unequal_table(name: str) -> Labeled:
    """Return a table with a random subset of the smaller class, as large as its ratio to the other demands."""
    load, ratio, smaller = TABLES[name]
    X, y = load()
    rows = np.flatnonzero(y == smaller)
    rng = np.random.default_rng([SEED, zlib.crc32(name.encode())])
    size = min(len(rows), max(4, round(ratio * np.sum(y != smaller))))
    kept = np.sort(np.append(np.flatnonzero(y != smaller), rng.choice(rows, size, replace=False)))
    return labeled(X[kept], y[kept])


def measure(name: str) -> Row:
    """Cluster one table by the default, at the gap, and by two other methods."""
    X, y = unequal_table(name)
    Z = standardize_columns(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = dc.DiffracClustering(test_structure=True).fit(X)
        found = {
            "default": dc.DiffracClustering().fit(X).labels_,
            "unequal": model.labels_,
            "kmeans": KMeans(2, n_init=10, random_state=0).fit_predict(Z),
            "mixture": GaussianMixture(2, n_init=5, reg_covar=1e-3, random_state=0).fit_predict(Z),
        }
    indices = {method: float(adjusted_rand_score(y, labels)) for method, labels in found.items()}
    row: Row = {"n": len(X), "d": X.shape[1], "smaller": float(min(np.mean(y), 1.0 - np.mean(y)))}
    row |= {"verdict": model.structure_.verdict, "acted": int(model.is_cut_at_gap_)}
    return row | indices


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Draw the index with the structure test against that of the default and of k-means, one point per table."""
    caption = (
        "Each mark is one table with unequal classes: adjusted Rand index with the true classes if the sides of a gap "
        "that the structure test finds may replace the clusters. Line: equal indices."
    )
    with panels(stem, 1, 2, 3.2, caption=caption, sharey=True) as (_, axes):
        for ax, column, label in zip(axes, ("default", "kmeans"), ("the default", "k-means"), strict=True):
            ax.plot([-0.15, 1.0], [-0.15, 1.0], color="0.7", lw=0.8, zorder=0)
            for acted, color, name in ((0, SECONDARY, "as the default"), (1, ACCENT, "sides of the gap")):
                part = table[table["acted"] == acted]
                ax.plot(part[column], part["unequal"], "o", color=color, ms=4.5, alpha=0.8, label=name)
            ax.set(xlabel=f"index of {label}", xlim=(-0.15, 1.05), ylim=(-0.15, 1.05), aspect="equal")
        for letter, ax, title in zip("ab", axes, ("the default", "k-means"), strict=True):
            ax.set_title(f"({letter}) against {title}")
        axes[0].set_ylabel("adjusted Rand index\nwith the structure test")
        axes[0].legend(frameon=False, loc="lower right")


GAINS = Rule(
    "the split at the gap of the structure test is better on unequal tables, and rarely worse",
    f"agrees if its mean index is higher by {BETTER:g} and at most a tenth of the tables are worse by {WORSE:g}, in "
    f"part if only the former; not tested with fewer than {MIN_TABLES} tables",
    lambda t: t.loc["all", "gain"].value >= BETTER and t.loc["all", "worse"] <= MAX_WORSE * t.loc["all", "number"],
    lambda t: t.loc["all", "gain"].value >= BETTER,
    tested=lambda t: t.loc["all", "number"] >= MIN_TABLES,
)
RULES = (GAINS,)


def findings(table: pd.DataFrame) -> list[Finding]:
    """Return the mean index of each method, where the option acted and on all tables."""
    gains = table.assign(gain=table["unequal"] - table["default"])
    acted = gains[gains["acted"] == 1]
    named = ", ".join(f"{name} {gain:+.2f}" for name, gain in zip(acted["name"], acted["gain"], strict=True))
    rows = {"all": summary(gains), "where it acted": summary(acted)}
    means = pd.DataFrame.from_dict(rows, orient="index").rename_axis("tables")
    return [Finding("Mean adjusted Rand index", means, [GAINS], comment=f"Gains where it acted: {named or 'nowhere'}.")]


def summary(table: pd.DataFrame) -> dict[str, Any]:
    """Return the mean index of each method, and how many tables are better and worse."""
    means: dict[str, Any] = {name: mean_of(table[name]) for name in (*METHODS, "gain")}
    better, worse = (table["gain"] >= WORSE).sum(), (table["gain"] <= -WORSE).sum()
    return {"number": len(table), **means, "better": int(better), "worse": int(worse)}


def passage(table: pd.DataFrame) -> str:
    """Return the README passage on unequal clusters."""
    gain, acted = table["unequal"] - table["default"], table["acted"].sum()
    means = {name: f"{table[name].mean():.2f}" for name in METHODS}
    better, worse = (gain >= WORSE).sum(), (gain <= -WORSE).sum()
    return (
        f"On {len(table)} tables with unequal classes, named before the method was run on them, this happens on "
        f"{acted}. The mean adjusted Rand index is {means['unequal']} instead of {means['default']} (k-means "
        f"{means['kmeans']}); {better} tables are better by {WORSE:g} and {worse} worse.\n"
    )
