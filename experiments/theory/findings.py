"""Findings on the propositions, lemmas and conjectures of the theory."""

from typing import Any

import numpy as np
import pandas as pd

from diffrac_cvx.typing import Array
from experiments.harness.findings import Finding, Rule, one_row, tabulate
from experiments.harness.intervals import Interval, bootstrap, mean_of, median_of, proportion_of
from experiments.harness.tables import split_parts
from experiments.theory.label_recovery import FEW_ROUNDS, NO_CLUSTERS, STARTS
from experiments.theory.noise_columns import MOST_POINTS
from experiments.theory.noise_columns import small_variance as largest_small
from experiments.theory.sparse_direction import GRID
from experiments.theory.unique_solution import statistical_dimension

TITLE = "The propositions, lemmas and conjectures of section 5"
ABOUT = (
    "Uniqueness is decided by one small semidefinite program for each instance, whose optimal value is 0 or positive."
)
MIN_INSTANCES = 75  # with fewer instances, the interval of a proportion of 1 reaches below 95 %
MIN_NOISY = 40  # the same for each level of noise
EXCEPTIONS = 0.05
MOST, HALF = 0.95, 0.5  # lower ends of proportions for agreement and for partial agreement
NO_CLUSTERS_ROW = "no clusters"


def proportion_rule(statement: str, row: str) -> Rule:
    """Return a rule on the proportion in a row: at least 95 % at the lower end, in part at least half."""
    return Rule(
        statement,
        f"agrees if the proportion is at least {100 * MOST:.0f} %, in part if at least half (lower ends); not "
        f"tested with fewer than {MIN_INSTANCES} instances",
        lambda t: t.loc[row, "holds in"].low >= MOST,
        lambda t: t.loc[row, "holds in"].low >= HALF,
        tested=lambda t: t.loc[row, "instances"] >= MIN_INSTANCES,
    )


PROPOSITION_1A, PROPOSITION_1B, SMALL_VARIANCE = "1 (a): unique", "1 (b): eigenvector", "small variance: unique"
OWN_POINTS = (
    proportion_rule("prop1-a", PROPOSITION_1A),
    proportion_rule("prop1-small-variance", SMALL_VARIANCE),
    proportion_rule("prop1-b", PROPOSITION_1B),
)
KURTOSIS = Rule(
    "prop1-kurtosis",
    "agrees if at beta = 1 at most 5 % (upper end) are unique at all n, and at beta = 1.1 more than half (lower end) "
    "at the largest n; in part if at most half and fewer than at 1.1",
    lambda t: t.loc[1.0, "unique"].high <= EXCEPTIONS and t.loc[1.1, "unique"].low > HALF,
    lambda t: t.loc[1.0, "unique"].high <= HALF and t.loc[1.1, "unique"].low > t.loc[1.0, "unique"].high,
    tested=lambda t: t.loc[1.1, "instances"] > 0 and t.loc[1.0, "instances"] >= MIN_INSTANCES,
)
SPIKED = Rule(
    "prop1-spiked",
    "stronger than stated if at the n of 1 (b), of order d^2, the solution is unique in 95 % (lower end); otherwise "
    "agrees if by one of the solvers the principal eigenvector is right in 95 % and the ratio of the second to the "
    "first eigenvalue of Y is closer to 0 than to 1, in part if it is right in half (lower ends); not tested with "
    f"fewer than {MIN_INSTANCES} instances that have several solutions",
    lambda t: max(share.low for share in t["eigenvector right"]) >= MOST and (t["ratio"].iloc[0].high < HALF),
    lambda t: max(share.low for share in t["eigenvector right"]) >= HALF,
    tested=lambda t: len(t) > 0 and t["instances"].min() >= MIN_INSTANCES,
    stronger=lambda t: all(share.low >= MOST for share in t["unique at 1 (b)"]),
)


def size_rule(statement: str, symbol: str) -> Rule:
    """Return a rule on the number of points from which a set of solutions is as small as stated."""

    def kinds(table: pd.DataFrame) -> pd.DataFrame:
        return table[[str(row).startswith(symbol) for row in table.index]]

    def agrees(table: pd.DataFrame) -> bool:
        mine, own = kinds(table), table.loc["balanced", "exponent of d"]
        near = all(quotient.within(0.5, 2.0) for quotient in mine["over the balanced n"])
        alike = all(exponent.meets(own.low, own.high) for exponent in mine["exponent of d"])
        return bool(mine["in every instance"].all() and near and alike)

    return Rule(
        statement,
        "agrees if it holds in every instance from some n on, between half and twice the balanced one (whole "
        "interval), and the intervals of the exponents overlap; in part if only the first",
        agrees,
        lambda t: kinds(t)["in every instance"].all(),
        tested=lambda t: len(kinds(t)) > 0,
    )


SIZES = (size_rule("rank-two-unique", "alpha*"), size_rule("multi-label-support", "k ="))
PROCRUSTES = Rule(
    "procrustes-few",
    f"agrees if {FEW_ROUNDS} alternations from one start recover all labels in 95 % (lower end), in part if 20 starts "
    f"run to the end do; not tested with fewer than {MIN_INSTANCES} instances",
    lambda t: max(t[name].iloc[0].low for name in ("few, random", "few, eigenvectors")) >= MOST,
    lambda t: t["20 starts to the end"].iloc[0].low >= MOST,
    tested=lambda t: (t["instances"] >= MIN_INSTANCES).all(),
)


def slight(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of slight noise: in all instances y with its noise has the signs of y, as 5.1.3 asks."""
    noisy = table.drop(index=NO_CLUSTERS_ROW)
    return noisy[noisy["signs kept"].astype(bool) & (noisy.index.astype(float) > 0.0)]


def is_near(table: pd.DataFrame) -> list[bool]:
    """Return at each slight noise whether ratio and error are closer to 0 than to those without clusters."""
    without = table.loc[NO_CLUSTERS_ROW]
    return [all(row[c].high < without[c].low / 2 for c in ("ratio", "error")) for _, row in slight(table).iterrows()]


PERTURBED = Rule(
    "perturbed",
    "noise is slight if no sign of y changes: agrees if at each slight noise the rank is above one in 90 % (lower "
    "end), and ratio and error are closer to 0 than to those without clusters, by the closer ends; in part if at the "
    f"smallest; not tested with fewer than {MIN_NOISY} instances",
    lambda t: all(is_near(t)) and all(share.low >= 0.9 for share in slight(t)["rank above one"]),
    lambda t: is_near(t)[0],
    tested=lambda t: t["instances"].min() >= MIN_NOISY and len(slight(t)) > 0,
)
ALONE = Rule(
    "sparse-direction-alone",
    "each at its best weight: agrees if the intervals are disjoint, the relaxation's is above, and the direction has "
    "at most d/2 nonzeros (median); in part if only the proportions are in this order; not tested if the relaxation "
    f"never recovers or with fewer than {MIN_INSTANCES} instances",
    lambda t: t["alone"].iloc[0].high < t["relaxation"].iloc[0].low and (t["nonzeros"] <= t["d"] / 2).all(),
    lambda t: t["alone"].iloc[0].value < t["relaxation"].iloc[0].value,
    tested=lambda t: t["relaxation"].iloc[0].value > 0 and (t["instances"] >= MIN_INSTANCES).all(),
)
RULES = (*OWN_POINTS, KURTOSIS, SPIKED, *SIZES, PROCRUSTES, PERTURBED, ALONE)


def findings(table: pd.DataFrame) -> list[Finding]:
    """Return what the table decides of sections 2 to 5."""
    part = split_parts(table)
    sizes, recovery = part["sample size"], part["recovery"]
    return [
        Finding(
            "Statements at their own numbers of points, R as printed; 'n / needed': ratio to the number that suffices",
            own_points(of_the_proposition(sizes), sizes[sizes["small"] == 1]),
            OWN_POINTS,
            "At the n of 1 (b), at least 4 d^2, the solution is unique, more than it states.",
        ),
        Finding(
            "Unique solutions at d = 10, beta = 1 at all n and beta = 1.1 at the largest",
            kurtosis(recovery),
            [KURTOSIS],
        ),
        Finding(
            "Instances with several solutions, beta > 1, n from the statistical dimension on, of order d^2",
            spiked(recovery, of_the_proposition(sizes)),
            [SPIKED],
            "These n are below that of 1 (b).",
        ),
        Finding(
            "Number of points from which the solutions are those stated (d = 6 to 14)",
            solution_sizes(part["balanced"], part["rank two"], part["many labels"]),
            SIZES,
        ),
        Finding(
            "Labels recovered by alternation from mixtures of random weights",
            procrustes(part["procrustes"]),
            [PROCRUSTES],
        ),
        Finding(
            "Noise on y, n twice the statistical dimension, d = 6, 12, 24: median ratio of the second to the first "
            "eigenvalue of Y, mean error of its principal eigenvector",
            perturbed(part["perturbed"]),
            [PERTURBED],
        ),
        Finding(
            "Labels recovered by alternation with lambda |v|_1 alone (best objective of ten starts) and by the "
            "relaxation",
            direction_alone(part["sparse direction"]),
            [ALONE],
        ),
    ]


def of_the_proposition(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that satisfy the proposition's own assumption on m^2."""
    least = [largest_small(int(d), float(beta)) for d, beta in zip(table["d"], table["beta"], strict=True)]
    return table[(table["small"] == 0) & (table["variance"] ** 2 >= least)]


def own_points(sizes: pd.DataFrame, small: pd.DataFrame) -> pd.DataFrame:
    """Return in how many instances each statement holds at its own number of points."""
    entries = {
        PROPOSITION_1A: (sizes["unique"], sizes["n_paper"] / sizes["n_measured"]),
        PROPOSITION_1B: (sizes["unique_b"], sizes["n_paper_b"] / sizes["n_measured"]),
        SMALL_VARIANCE: (small["unique"], small["n_paper"] / small["n_measured"]),
    }
    records = {
        name: {
            "holds in": proportion_of(unique),
            "instances": len(unique),
            "several solutions": int((unique == 0).sum()),
            "n / needed": f"{slack.median():.0f} ({slack.min():.1f} to {slack.max():.0f})",
        }
        for name, (unique, slack) in entries.items()
    }
    return pd.DataFrame.from_dict(records, orient="index").rename_axis("proposition")


def kurtosis(table: pd.DataFrame) -> pd.DataFrame:
    """Return the proportion of unique solutions where noise columns are clusterings, and where they nearly are."""
    rows = table[(table["beta"] == 1.0) | (table["beta"] == 1.1) & (table["n"] == table["n"].max())]
    columns: dict[str, Any] = {"unique": lambda part: proportion_of(part["unique"]), "instances": len}
    return tabulate(rows, ["beta"], columns).reindex([1.0, 1.1]).fillna({"instances": 0}).rename_axis("beta")


def spiked(table: pd.DataFrame, sizes: pd.DataFrame) -> pd.DataFrame:
    """Return how often the principal eigenvector is right if there are several solutions, and where there is one."""
    needed = statistical_dimension(float(table["d"].iloc[0]))
    others = table[(table["unique"] == 0) & (table["beta"] > 1) & (table["n"] >= needed)]
    solvers = {"interior point": "right_interior", "low_rank": "right_low_rank"}
    records = {
        name: {
            "eigenvector right": proportion_of(others[column]),
            "ratio": median_of(others["eigenvalue_ratio"]),
            "instances": len(others),
            "unique at 1 (b)": proportion_of(sizes["unique_b"]),
        }
        for name, column in solvers.items()
    }
    return pd.DataFrame.from_dict(records, orient="index").rename_axis("solution of")


def solution_sizes(balanced: pd.DataFrame, rank_two: pd.DataFrame, many: pd.DataFrame) -> pd.DataFrame:
    """Return the number of points from which each set of solutions is the stated one, relative to the balanced one."""
    kinds = {"balanced": balanced}
    kinds |= {f"alpha* = {float(str(key)):g}": mine for key, mine in rank_two.groupby("imbalance")}
    kinds |= {f"k = {float(str(key)):g}": mine for key, mine in many.groupby("k")}
    points = {name: mine.pivot(index="replication", columns="d", values="n_measured") for name, mine in kinds.items()}
    pairs = {name: np.stack([mine, points["balanced"]], axis=-1) for name, mine in points.items()}
    log_d = np.log(points["balanced"].columns.to_numpy(float))
    weights = (log_d - log_d.mean()) / np.sum((log_d - log_d.mean()) ** 2)  # of the slope by least squares
    records = {
        name: {
            "over the balanced n": "-" if name == "balanced" else bootstrap(pairs[name], mean_quotient),
            "exponent of d": bootstrap(mine, lambda n, axis: np.log(n.mean(axis=axis)) @ weights),
            "in every instance": bool((mine <= MOST_POINTS).all(axis=None)),
            "instances": mine.size,
        }
        for name, mine in points.items()
    }
    return pd.DataFrame.from_dict(records, orient="index").rename_axis("problem")


def mean_quotient(pairs: Array, axis: int) -> Array:
    """Return the mean over d of the quotient of two mean numbers of points."""
    means = pairs.mean(axis=axis)
    return np.asarray((means[..., 0] / means[..., 1]).mean(axis=-1))


def procrustes(table: pd.DataFrame) -> pd.DataFrame:
    """Return how often few alternations recover the labels, from several starts."""
    few = {name: proportion_of(table[f"few_{column}"]) for name, column in (
        ("few, random", "random"), ("few, eigenvectors", "eigenvectors"), (f"few, best of {STARTS}", "best"),
    )}  # fmt: skip
    rounds = table["rounds"].dropna()
    return one_row(
        instances=len(table), **few, **{"20 starts to the end": proportion_of(table["right"])},
        median_rounds=rounds.median(), **{"95 % of rounds": rounds.quantile(0.95)},
    )  # fmt: skip


def perturbed(table: pd.DataFrame) -> pd.DataFrame:
    """Return spectrum and error by the noise on y, and those of data without clusters."""
    names = table["noise"].map(lambda noise: NO_CLUSTERS_ROW if noise == NO_CLUSTERS else f"{noise:g}")
    columns: dict[str, Any] = {
        "ratio": lambda rows: median_of(rows["eigenvalue_ratio"]),
        "error": lambda rows: mean_of(rows["error"]),
        "rank above one": lambda rows: proportion_of(rows["rank"] > 1),
        "signs kept": lambda rows: bool((rows["error_signal"] == 0.0).all()),
        "instances": len,
    }
    return tabulate(table.sort_values("noise", kind="stable").assign(sigma=names), ["sigma"], columns)


def recovery_of(table: pd.DataFrame, method: str) -> tuple[float, Interval]:
    """Return the weight at which a method recovers most often, and its recovery rate there."""
    proportions = {lam: proportion_of(table[f"{method}_{k}"]) for k, lam in enumerate(GRID)}
    lam = max(proportions, key=lambda key: proportions[key].value)
    return lam, proportions[lam]


def direction_alone(table: pd.DataFrame) -> pd.DataFrame:
    """Compare a sparse regulariser of v alone with the relaxation, each at its best weight."""
    (lam, alone), (relaxed_lam, relaxed) = recovery_of(table, "alone"), recovery_of(table, "relaxed")
    k = GRID.index(lam)
    return one_row(
        instances=len(table), d=int(table["d"].max()), alone=alone, its_weight=lam,
        nonzeros=table[f"nonzeros_{k}"].median(), relaxation=relaxed, its_own_weight=relaxed_lam,
        planted_objective_lower_if_alone_fails=proportion_of(table.loc[table[f"alone_{k}"] == 0, f"missed_{k}"]),
    )  # fmt: skip
