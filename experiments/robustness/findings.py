"""Findings on Figure 4."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from diffrac_cvx.typing import Array
from experiments.harness.boundary import crossing, mean_known
from experiments.harness.findings import Finding, Rule, tabulate
from experiments.harness.intervals import DRAWS, Interval, interval_of, mean_of
from experiments.robustness.cells import FISTA, FISTA_MOST, LAMBDAS, MOST_ITERATIONS, WITHOUT_LAMBDA, N

TITLE = "Figure 4: robustness to noise dimensions"
ABOUT = (
    f"n = {N}, two relevant dimensions, sigma = 0.1; twenty replications (ten for FISTA, up to d = {FISTA_MOST}). FISTA, "
    f"as published, gets at most {MOST_ITERATIONS} iterations: a mark is open if a run used all. Bands are two standard errors."
)
OURS = "low_rank"
NOTABLE = 0.02  # smallest difference of mean clustering errors that counts
PLAIN, GAINS = "gain over lambda = 0", [f"gain over {rival}" for rival in WITHOUT_LAMBDA]


def above(table: pd.DataFrame, lam: float) -> bool:
    """Return whether the relaxation reaches more dimensions than both baselines, which fail, by the intervals."""
    gains = table.loc[f"relaxation, lambda = {lam:g}", GAINS]
    return bool(table.loc[list(WITHOUT_LAMBDA), "fails"].all()) and all(gain.low > 0 for gain in gains)


BASELINES = Rule(
    "fig4-baselines",
    "agrees if both baselines fail (mean error 1/2) within the grid and at fewer dimensions than the relaxation with and without the "
    "sparse regulariser, by the intervals of the gains; in part if this holds for the sparse one alone",
    lambda t: above(t, 0.0) and above(t, max(LAMBDAS)),
    lambda t: above(t, max(LAMBDAS)),
)
SPARSITY = Rule(
    "fig4-sparse",
    "agrees if at both penalties the interval of the gain in dimensions lies above 0, in part if at one; not tested if the relaxation "
    "without a penalty does not fail within the grid",
    lambda t: all(gain.low > 0 for gain in t[PLAIN].iloc[-2:]),
    lambda t: any(gain.low > 0 for gain in t[PLAIN].iloc[-2:]),
    tested=lambda t: bool(t.loc["relaxation, lambda = 0", "fails"]),
)
EPSILON = Rule(
    "fig4-epsilon",
    f"agrees if at two of the three lambdas the mean is at least {NOTABLE:g} in either direction and its interval excludes 0, in part "
    "if at one; paired on the data, on the pairs in which the smaller epsilon gave the smaller certified gap; not tested with fewer "
    "than 10 such pairs",
    lambda t: sum(map(is_notable, t["error falls by"])) >= 2,
    lambda t: any(map(is_notable, t["error falls by"])),
    tested=lambda t: t["smaller gap"].sum() >= 10,
)
RULES = (BASELINES, SPARSITY, EPSILON)


def is_notable(fall: Interval) -> bool:
    """Return whether a mean difference is at least `NOTABLE` in either direction and its interval excludes 0."""
    return abs(fall.value) >= NOTABLE and not fall.meets(0.0, 0.0)


def findings(table: pd.DataFrame) -> list[Finding]:
    """Return the dimensions at which methods fail, and the effect of a smaller gap."""
    return [
        Finding(
            "d at which the mean error crosses 1/2, and gain of the relaxation in dimensions",
            where_they_fail(crossings(table)),
            [BASELINES, SPARSITY],
            "A method that does not fail within the grid counts with its largest d.",
        ),
        Finding(
            "FISTA as published, from 1e-2/log d to 1e-3/log d, on the pairs of runs in which this gave a smaller certified gap",
            sensitive(table),
            [EPSILON],
        ),
    ]


class Crossing(NamedTuple):
    """The dimension at which the mean error of a method crosses 1/2, or the last one, and those of bootstrap samples."""

    d: float
    draws: Array
    fails: bool  # whether it crosses 1/2 within the grid

    def over(self, other: "Crossing") -> Interval:
        """Return the gain in dimensions over another method."""
        return interval_of(self.d - other.d, self.draws - other.draws)


def crossings(table: pd.DataFrame) -> dict[tuple[str, float], Crossing]:
    """Return the crossing of each (method, lambda), from the increasing fit of the mean error.

    At each dimension the same replications are resampled for all methods, so differences of two methods are paired.
    """
    rng = np.random.default_rng([2017, 4])
    wide = table.pivot_table(index=["d", "replication"], columns=["method", "lam"], values="error")
    blocks = {float(str(d)): block.to_numpy(float) for d, block in wide.groupby(level="d")}
    chosen = [errors[rng.integers(len(errors), size=(DRAWS, len(errors)))] for errors in blocks.values()]
    means = np.array([mean_known(errors[None])[0] for errors in blocks.values()])  # (d, column)
    drawn = np.array([mean_known(errors) for errors in chosen])  # (d, draw, column)
    d, found = np.array(list(blocks)), {}
    for k, column in enumerate(wide.columns):
        at, side = crossing(d, means[:, k])
        draws = np.array([crossing(d, drawn[:, m, k])[0] for m in range(DRAWS)])
        found[column] = Crossing(at, draws, side != 1)
    return found


def where_they_fail(found: Mapping[tuple[str, float], Crossing]) -> pd.DataFrame:
    """Return where each method fails, and how much further the relaxation reaches than the baselines and at lambda = 0."""
    rivals = {rival: found[rival, 0.0] for rival in WITHOUT_LAMBDA}
    ours = {f"relaxation, lambda = {lam:g}": found[OURS, lam] for lam in LAMBDAS}
    rows = {
        name: {
            "crosses at": interval_of(one.d, one.draws) if one.fails else f"above {one.d:.0f}",
            "fails": one.fails,
            **{f"gain over {rival}": one.over(theirs) if name in ours else np.nan for rival, theirs in rivals.items()},
            PLAIN: one.over(found[OURS, 0.0]) if name in ours else np.nan,
        }
        for name, one in (rivals | ours).items()
    }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("method")


def sensitive(table: pd.DataFrame) -> pd.DataFrame:
    """Return the fall of the error with epsilon, on runs in which the smaller epsilon gave the smaller gap."""
    keys = ["lam", "d", "replication"]
    first, second = (table[table["method"] == name].set_index(keys) for name in FISTA)
    both = first.merge(second, left_index=True, right_index=True, suffixes=("_first", "_second"))
    both = both.reset_index(names=["lambda", *keys[1:]])
    both["fall"] = (both["error_first"] - both["error_second"]).where(both["gap_second"] < both["gap_first"])
    return tabulate(
        both,
        ["lambda"],
        {
            "pairs": len,
            "smaller gap": lambda rows: int(rows["fall"].notna().sum()),
            "error falls by": lambda rows: mean_of(rows["fall"].dropna()),
        },
    )
