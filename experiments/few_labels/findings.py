"""Findings of `make few-labels`, each table with its rule."""

import pandas as pd

from diffrac_cvx.problem.formatting import format_upper
from experiments.few_labels.cells import KNOWN, MOST_POINTS, NEIGHBORS, REPLICATIONS, RIVALS
from experiments.harness.findings import Finding, Rule, tabulate
from experiments.harness.intervals import Interval, mean_of

TITLE = "Few known labels"
ABOUT = (
    f"`DiffracClassifier` with its defaults, given all points (of large sets {MOST_POINTS}; standardised columns) and "
    f"the labels of {', '.join(map(str, KNOWN[:-1]))} or {KNOWN[-1]}, balanced over the classes "
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
    tested=lambda t: (HELD_OUT, JUDGED) in t.index and t.loc[(HELD_OUT, JUDGED), "sets"] >= LEAST,
)
BEST = Rule(
    f"with {JUDGED} known labels it has the highest mean of all methods over the held-out sets",
    f"agrees if the interval of its gain over the best of the other methods is above 0, in part if the gain is; not tested with fewer "
    f"than {LEAST} sets",
    lambda t: over_second(t).low > 0.0,
    lambda t: over_second(t).value > 0.0,
    tested=lambda t: len(t) > 0 and t["sets"].iloc[0] >= LEAST,
)
RULES = (TARGET, BEST)


def wins(table: pd.DataFrame) -> float:
    """Return the fraction of the held-out sets on which the classifier is better."""
    return float(table.loc[(HELD_OUT, JUDGED), "better"] / table.loc[(HELD_OUT, JUDGED), "sets"])


def over_second(table: pd.DataFrame) -> Interval:
    """Return the gain over the method with the highest mean among the others."""
    gain: Interval = table.loc[table["accuracy"].drop("relaxation").astype(float).idxmax(), "gain"]
    return gain


def findings(table: pd.DataFrame) -> list[Finding]:
    """Return the gains over ridge regression, all methods, and proofs."""
    return [
        Finding(
            "Gain in accuracy over ridge regression on the same labels, balanced over the classes; better and worse by "
            "their intervals over replications",
            over_ridge(table),
            [TARGET],
        ),
        Finding(
            f"Mean accuracy over the held-out sets, {JUDGED} labels, and gain of the relaxation",
            all_methods(table),
            [BEST],
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


def gains(table: pd.DataFrame, known: int, kind: str, over: str = "ridge") -> pd.DataFrame:
    """Return the gain of the classifier over a method on each set of a kind, with its interval over replications."""
    rows = table[(table["known"] == known) & (table["kind"] == kind)]
    found = {name: mean_of(part["relaxation"] - part[over]) for name, part in rows.groupby("name", sort=False)}
    return pd.DataFrame.from_dict(found, orient="index", columns=["value", "low", "high"]).sort_values("value")


def over_ridge(table: pd.DataFrame) -> pd.DataFrame:
    """Return the gains over ridge regression for each kind of sets and number of labels."""
    found = {(kind, known): gains(table, known, kind) for kind in KINDS for known in KNOWN}
    rows = {
        key: {
            "sets": len(gain),
            "better": int((gain["value"] > 0.0).sum()),
            "mean gain": mean_of(gain["value"]),
            "smallest": gain["value"].min(),
            "on": gain.index[0],
            "better by interval": int((gain["low"] > 0.0).sum()),
            "worse by interval": int((gain["high"] < 0.0).sum()),
        }
        for key, gain in found.items()
        if len(gain)
    }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis(["kind", "labels"])


def all_methods(table: pd.DataFrame) -> pd.DataFrame:
    """Return the mean accuracy of each method, and the gain of the relaxation over it."""
    rows = table[(table["known"] == JUDGED) & (table["kind"] == HELD_OUT)]
    means = rows.groupby("name")[["relaxation", *RIVALS]].mean().mean().sort_values(ascending=False)
    over = {method: gains(table, JUDGED, HELD_OUT, over=method)["value"] for method in means.index.drop("relaxation")}
    gain = pd.Series({method: mean_of(values) for method, values in over.items()}, dtype=object)
    return (
        pd.DataFrame({"sets": rows["name"].nunique(), "accuracy": means, "gain": gain})
        .loc[means.index]
        .rename_axis("method")
    )
