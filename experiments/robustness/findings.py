"""Findings on Figure 4."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from experiments.harness.boundary import crossing, mean_known
from experiments.harness.findings import Finding, Rule, tabulate
from experiments.harness.intervals import DRAWS, Interval, interval_of, mean_of
from experiments.robustness.cells import FISTA, LAMBDAS, MOST_ITERATIONS, WITHOUT_LAMBDA, N

TITLE = "Figure 4: robustness to noise dimensions"
ABOUT = (
    f"n = {N}, two relevant dimensions, sigma = 0.1; twenty replications (ten for FISTA), the same data for all "
    f"methods. FISTA, as published, gets at most {MOST_ITERATIONS} iterations: a mark is open if one of the runs used "
    "all of them before its stopping rule was met. Bands are two standard errors on either side."
)
OURS = "low_rank"
CENSORED = "A method that does not fail within the grid counts with its largest d, so the gain is a lower bound."
NOTABLE = 0.02  # smallest difference of mean clustering errors that counts
PLAIN, SPARSE = "gain, lambda = 0", f"gain, lambda = {max(LAMBDAS):g}"

BASELINES = Rule(
    "fig4-baselines",
    "agrees if both baselines fail (mean error 1/2) within the grid and at fewer dimensions than the relaxation with and without the "
    "sparse regulariser, by the intervals of the gains; in part if this holds for the sparse one alone",
    lambda t: t["fails"].all() and all(gain.low > 0 for gain in (*t[PLAIN], *t[SPARSE])),
    lambda t: t["fails"].all() and all(gain.low > 0 for gain in t[SPARSE]),
)
SPARSITY = Rule(
    "fig4-sparse",
    "agrees if at both penalties the interval of the gain in dimensions lies above 0, in part if at one; not tested if the relaxation "
    "without a penalty does not fail within the grid",
    lambda t: all(gain.low > 0 for gain in t["gain"].iloc[1:]),
    lambda t: any(gain.low > 0 for gain in t["gain"].iloc[1:]),
    tested=lambda t: bool(t["fails"].iloc[0]),
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
    reaches = Reaches(table)
    return [
        Finding(
            "d at which the mean error of the baselines crosses 1/2, and gain of the relaxation",
            few_dimensions(reaches),
            [BASELINES],
            CENSORED,
        ),
        Finding(
            "d at which the mean error of the relaxation crosses 1/2, and gain over lambda = 0",
            sparsity_helps(reaches),
            [SPARSITY],
            CENSORED,
        ),
        Finding(
            "FISTA as published, from 1e-2/log d to 1e-3/log d, on the pairs of runs in which this gave a smaller certified gap",
            sensitive(table),
            [EPSILON],
        ),
    ]


class Reaches:
    """Dimensions at which the mean errors of methods cross 1/2, with bootstrap intervals over replications.

    At each dimension the same replications are resampled for all methods, so differences of two methods are paired.
    The crossing is that of the increasing fit of the mean error, or the last dimension if the fit stays below 1/2.
    """

    def __init__(self, table: pd.DataFrame) -> None:
        rng = np.random.default_rng([2017, 4])
        wide = table.pivot_table(index=["d", "replication"], columns=["method", "lam"], values="error")
        self.columns = list(wide.columns)
        self.d = np.unique(wide.index.get_level_values("d")).astype(float)
        means, draws = [], []
        for _, block in wide.groupby(level="d"):
            errors = block.to_numpy(float)
            chosen = rng.integers(len(errors), size=(DRAWS, len(errors)))
            means.append(mean_known(errors[None])[0])
            draws.append(mean_known(errors[chosen]))
        self.means, self.draws = np.array(means), np.array(draws)  # (d, column), (d, draw, column)

    def of(self, function: Callable[..., float], *columns: tuple[str, float]) -> Interval:
        """Return a function of the crossings of some (method, lambda), with its interval."""
        places = [self.columns.index(column) for column in columns]
        value = function(*(crossing(self.d, self.means[:, k])[0] for k in places))
        draws = [function(*(crossing(self.d, self.draws[:, m, k])[0] for k in places)) for m in range(DRAWS)]
        return interval_of(value, np.array(draws))

    def fails(self, method: str, lam: float = 0.0) -> bool:
        """Return whether the mean error crosses 1/2 within the grid."""
        return crossing(self.d, self.means[:, self.columns.index((method, lam))])[1] != 1


def crossing_of(reaches: Reaches, method: str, lam: float = 0.0) -> Interval | str:
    """Return the dimension at which the mean error crosses 1/2, or that it does not."""
    return reaches.of(lambda d: d, (method, lam)) if reaches.fails(method, lam) else f"above {reaches.d.max():.0f}"


def few_dimensions(reaches: Reaches) -> pd.DataFrame:
    """Return where k-means and alternating optimisation fail, and how much further the relaxation reaches."""
    rows = {
        rival: {
            "crosses at": crossing_of(reaches, rival),
            "fails": reaches.fails(rival),
            **{
                column: reaches.of(lambda ours, theirs: ours - theirs, (OURS, lam), (rival, 0.0))
                for column, lam in ((PLAIN, 0.0), (SPARSE, max(LAMBDAS)))
            },
        }
        for rival in WITHOUT_LAMBDA
    }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("method")


def sparsity_helps(reaches: Reaches) -> pd.DataFrame:
    """Return where the relaxation fails at each lambda, and the gain in dimensions over lambda = 0."""
    rows = {
        lam: {
            "crosses at": crossing_of(reaches, OURS, lam),
            "fails": reaches.fails(OURS, lam),
            "gain": reaches.of(lambda sparse, plain: sparse - plain, (OURS, lam), (OURS, 0.0)),
        }
        for lam in LAMBDAS
    }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("lambda")


def sensitive(table: pd.DataFrame) -> pd.DataFrame:
    """Return the fall of the error with epsilon, on runs in which the smaller epsilon gave the smaller gap."""
    keys = ["lam", "d", "replication"]
    first, second = (table[table["method"] == name].set_index(keys) for name in FISTA)
    both = first.add_suffix("_first").join(second.add_suffix("_second"), how="inner").reset_index()
    both["difference"] = both["error_first"] - both["error_second"]
    columns: dict[str, Callable[[pd.DataFrame], Any]] = {
        "pairs": len,
        "smaller gap": lambda rows: int((rows["gap_second"] < rows["gap_first"]).sum()),
        "error falls by": lambda rows: mean_of(rows.loc[rows["gap_second"] < rows["gap_first"], "difference"]),
    }
    return tabulate(both.rename(columns={"lam": "lambda"}), ["lambda"], columns)
