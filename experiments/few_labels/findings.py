"""Findings of `make few-labels`, each table with its rule."""

import numpy as np
import pandas as pd

from diffrac_cvx.problem.formatting import format_upper
from experiments.few_labels.cells import AT_RANDOM, KNOWN, MOST_POINTS, REPLICATIONS
from experiments.few_labels.methods import NEIGHBORS, RIVALS
from experiments.harness.findings import Finding, Rule, one_row, tabulate
from experiments.harness.intervals import Interval, mean_of

TITLE = "Few known labels"
ABOUT = (
    f"`DiffracClassifier` with its defaults, given all points (of large sets {MOST_POINTS}; standardised columns) and "
    f"the labels of {', '.join(map(str, KNOWN[:-1]))} or {KNOWN[-1]}, balanced over the classes or drawn at random "
    f"({REPLICATIONS} replications); accuracy on the unlabelled points. The decision to choose the ridge and the "
    "weight of the labelled points by the known labels was made on the design sets. The held-out sets, and ten of the "
    "others, were used once before, for a version with a fixed ridge of 0.3 that was better than ridge regression on 5 "
    "of these 20. Compared with ridge and logistic regression on the known labels alone (weights by cross-validation), "
    f"label spreading and propagation over {NEIGHBORS} neighbours, self-training and seeded k-means."
)
JUDGED = 20  # known labels
LEAST, SHARE, WORST = 10, 0.8, -0.03  # sets required by the rule, fraction of them to be won, and largest loss allowed
KINDS = ("held-out", "design")
HELD_OUT = "held-out"

TARGET = Rule(
    f"with {JUDGED} known labels, balanced over the classes, it is better than ridge regression on the same labels",
    f"agrees if it is better on {100 * SHARE:.0f} % of the held-out sets and never more than {-WORST:g} worse; in part if it is better "
    f"on {100 * SHARE:.0f} %, or on half and never more than {-WORST:g} worse; not tested with fewer than {LEAST} sets",
    lambda t: wins(t) >= SHARE and t.loc[(HELD_OUT, JUDGED), "smallest"] >= WORST,
    lambda t: wins(t) >= SHARE or (wins(t) > 0.5 and t.loc[(HELD_OUT, JUDGED), "smallest"] >= WORST),
    tested=lambda t: sets_in(t, JUDGED) >= LEAST,
)
GROWS = Rule(
    "the gain over ridge regression increases as fewer labels are known",
    f"agrees if the interval at {KNOWN[1]} labels of held-out sets is above that at {KNOWN[-1]}, in part if the mean is; not tested with "
    f"fewer than {LEAST} sets with {KNOWN[-1]} labels",
    lambda t: t.loc[(HELD_OUT, KNOWN[1]), "mean gain"].low > t.loc[(HELD_OUT, KNOWN[-1]), "mean gain"].high,
    lambda t: t.loc[(HELD_OUT, KNOWN[1]), "mean gain"].value > t.loc[(HELD_OUT, KNOWN[-1]), "mean gain"].value,
    tested=lambda t: sets_in(t, KNOWN[-1]) >= LEAST,
)
BEST = Rule(
    f"with {JUDGED} known labels it has the highest mean of all methods over the held-out sets",
    f"agrees if the interval of its gain over the best of the other methods is above 0, in part if the gain is; not tested with fewer "
    f"than {LEAST} sets",
    lambda t: over_second(t).low > 0.0,
    lambda t: over_second(t).value > 0.0,
    tested=lambda t: len(t) > 0 and t["sets"].iloc[0] >= LEAST,
)
WEIGHTS = Rule(
    "the weight of the labelled points chosen by cross-validation improves on equal weights",
    f"agrees if the interval over sets is above 0, in part if the mean is; not tested with fewer than {LEAST} sets",
    lambda t: t["mean gain"].iloc[0].low > 0.0,
    lambda t: t["mean gain"].iloc[0].value > 0.0,
    tested=lambda t: t["sets"].iloc[0] >= LEAST,
)
RULES = (TARGET, GROWS, BEST, WEIGHTS)


def sets_in(table: pd.DataFrame, known: int) -> int:
    """Return the number of held-out sets with so many known labels."""
    return int(table.loc[(HELD_OUT, known), "sets"]) if (HELD_OUT, known) in table.index else 0


def wins(table: pd.DataFrame) -> float:
    """Return the fraction of the held-out sets on which the classifier is better."""
    return float(table.loc[(HELD_OUT, JUDGED), "better"] / table.loc[(HELD_OUT, JUDGED), "sets"])


def over_second(table: pd.DataFrame) -> Interval:
    """Return the gain over the method with the highest mean among the others."""
    gain: Interval = table.loc[table["accuracy"].drop("relaxation").astype(float).idxmax(), "gain"]
    return gain


def findings(table: pd.DataFrame) -> list[Finding]:
    """Return the gains over ridge regression, all methods, the choice of the weight, random draws and proofs."""
    return [
        Finding(
            "Gain in accuracy over ridge regression on the same labels, balanced over the classes; better and worse by "
            "their intervals over replications",
            over_ridge(table),
            [TARGET, GROWS],
            f"Worse, by the interval, on: {worse_sets(table) or 'none'}.",
        ),
        Finding(
            f"Mean accuracy over the held-out sets, {JUDGED} labels, and gain of the relaxation",
            all_methods(table),
            [BEST],
        ),
        Finding(
            f"Gain from choosing the weight of the labelled points, held-out sets, {JUDGED} labels",
            chosen_weight(table),
            [WEIGHTS],
        ),
        Finding(
            "Gain over ridge regression on held-out sets, labels drawn at random",
            pd.concat([summary(gains(table, known, HELD_OUT, "random")).assign(labels=known) for known in AT_RANDOM]),
        ),
        Finding(
            "Median certified optimality gap of its labels in Eq. (9), among labels that agree with the known ones",
            tabulate(
                table.rename(columns={"known": "labels"}),
                ["labels"],
                {
                    "gap": lambda rows: format_upper(rows["label gap"].median()),
                    "median seconds": lambda rows: rows["seconds"].median(),
                    "largest seconds": lambda rows: rows["seconds"].max(),
                },
            ),
        ),
    ]


def gains(table: pd.DataFrame, known: int, kind: str, draw: str = "balanced", over: str = "ridge") -> pd.DataFrame:
    """Return the gain of the classifier over a method on each set of a kind, with its interval over replications."""
    rows = table[(table["known"] == known) & (table["kind"] == kind) & (table["draw"] == draw)]
    found = {
        name: mean_of((part["relaxation"] - part[over]).to_numpy()) for name, part in rows.groupby("name", sort=False)
    }
    return pd.DataFrame.from_dict(found, orient="index", columns=["value", "low", "high"]).sort_values("value")


def mean_gain(found: pd.DataFrame) -> Interval:
    """Return the mean over sets with its interval over sets."""
    return mean_of(found["value"].to_numpy())


def summary(found: pd.DataFrame) -> pd.DataFrame:
    """Return the number of sets, how often the gain is positive, its mean and its smallest value."""
    return one_row(
        sets=len(found),
        better=int((found["value"] > 0.0).sum()),
        mean_gain=mean_gain(found),
        smallest=float(found["value"].min()),
        on=str(found.index[0]) if len(found) else "none",
        better_by_interval=int((found["low"] > 0.0).sum()),
        worse_by_interval=int((found["high"] < 0.0).sum()),
    )


def over_ridge(table: pd.DataFrame) -> pd.DataFrame:
    """Return the gains over ridge regression for each kind of sets and number of labels."""
    found = {
        (kind, known): summary(gains(table, known, kind))
        for kind in KINDS
        for known in KNOWN
        if len(gains(table, known, kind))
    }
    return pd.concat(found, names=["kind", "labels"]).droplevel(2) if found else summary(gains(table, 0, ""))


def worse_sets(table: pd.DataFrame) -> str:
    """Return the sets on which ridge regression is better by the interval, with the loss."""
    words = []
    for known in sorted(table["known"].unique()):
        found = pd.concat([gains(table, known, kind) for kind in KINDS])
        lost = found[found["high"] < 0.0].sort_values("value")
        if len(lost):
            words.append(f"{known} labels: " + ", ".join(f"{name} {row['value']:.3f}" for name, row in lost.iterrows()))
    return "; ".join(words)


def all_methods(table: pd.DataFrame) -> pd.DataFrame:
    """Return the mean accuracy of each method, and the gain of the relaxation over it."""
    rows = held_out(table, JUDGED)
    means = rows.groupby("name")[["relaxation", *RIVALS]].mean().mean().sort_values(ascending=False)
    entries = {
        method: {
            "sets": rows["name"].nunique(),
            "accuracy": mean,
            "gain": np.nan if method == "relaxation" else mean_gain(gains(table, JUDGED, HELD_OUT, over=str(method))),
        }
        for method, mean in means.items()
        if len(rows)
    }
    return pd.DataFrame.from_dict(entries, orient="index").rename_axis("method")


def held_out(table: pd.DataFrame, known: int) -> pd.DataFrame:
    """Return the rows of held-out sets with this number of labels, balanced over the classes."""
    return table[(table["known"] == known) & (table["kind"] == "held-out") & (table["draw"] == "balanced")]


def chosen_weight(table: pd.DataFrame) -> pd.DataFrame:
    """Return the gain over equal weights, and how often a large weight is chosen."""
    found, rows = gains(table, JUDGED, HELD_OUT, over="of equal weights"), held_out(table, JUDGED)
    return one_row(
        sets=len(found),
        mean_gain=mean_gain(found),
        smallest=float(found["value"].min()),
        largest=float(found["value"].max()),
        large_weight_chosen=float((rows["share"] > 0.0).mean()) if len(rows) else np.nan,
    )
