"""Findings of `make few-labels`, each with its rule and the verdict of the rule."""

import numpy as np
import pandas as pd

from diffrac_cvx.problem.formatting import format_upper
from experiments.few_labels.cells import AT_RANDOM, KNOWN, MOST_POINTS, REPLICATIONS
from experiments.few_labels.methods import NEIGHBORS, RIVALS
from experiments.harness import Finding, judge
from experiments.harness.beyond import ruled
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


def claims(table: pd.DataFrame) -> list[Finding]:
    """Return the findings."""
    rules = (target, gain_by_number, best_of_all, where_it_loses, automatic_share, random_draws, proofs)
    return [rule(table) for rule in rules]


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


def target(table: pd.DataFrame) -> Finding:
    """Classifier compared with ridge regression, with 20 labels."""
    words = []
    for kind in KINDS:
        found = gains(table, JUDGED, kind)
        if len(found):
            above, least = int((found["value"] > 0.0).sum()), found.iloc[0]
            words.append(
                f"{kind} sets: better on {above} of {len(found)}, mean gain {mean_gain(found):.3f}, smallest "
                f"{least['value']:.3f} ({found.index[0]})"
            )
    held_out = gains(table, JUDGED, "held-out")
    wins = float((held_out["value"] > 0.0).mean()) if len(held_out) else 0.0
    bounded = bool((held_out["value"] >= WORST).all())
    return ruled(
        f"with {JUDGED} known labels, balanced over the classes, it is better than ridge regression on the same labels",
        "; ".join(words) + "." if words else f"0 sets with {JUDGED} labels.",
        judge(wins >= SHARE and bounded, wins >= SHARE or (wins > 0.5 and bounded), tested=len(held_out) >= LEAST),
        f"agrees if it is better on {100 * SHARE:.0f} % of the held-out sets and never more than {-WORST:g} worse; in part if it is "
        f"better on {100 * SHARE:.0f} %, or on half and never more than {-WORST:g} worse; not tested with fewer than {LEAST} sets.",
    )


def gain_by_number(table: pd.DataFrame) -> Finding:
    """Gain over ridge regression by the number of known labels."""
    by_known = {known: mean_gain(gains(table, known, "held-out")) for known in KNOWN}
    few, many = by_known[KNOWN[1]], by_known[KNOWN[-1]]
    words = [f"{known} labels {gain:.3f}" for known, gain in by_known.items()]
    return ruled(
        "the gain over ridge regression increases as fewer labels are known",
        f"Mean gain on the held-out sets: {', '.join(words)}.",
        judge(few.low > many.high, few.value > many.value, tested=len(gains(table, KNOWN[-1], "held-out")) >= LEAST),
        f"agrees if the interval at {KNOWN[1]} labels is above that at {KNOWN[-1]}, in part if the mean is; not tested "
        f"with fewer than {LEAST} sets with {KNOWN[-1]} labels.",
    )


def best_of_all(table: pd.DataFrame) -> Finding:
    """All methods with 20 labels."""
    rows = held_out(table, JUDGED)
    words, ahead = f"0 sets with {JUDGED} labels.", Interval(np.nan, np.nan, np.nan)
    if len(rows):
        means = rows.groupby("name")[["relaxation", *RIVALS]].mean().mean().sort_values(ascending=False)
        following = str(means[list(RIVALS)].idxmax())
        ahead = mean_gain(gains(table, JUDGED, "held-out", over=following))
        words = ", ".join(f"{method} {value:.3f}" for method, value in means.items())
        words += f"; gain over {following} {ahead:.3f}."
    return ruled(
        f"with {JUDGED} known labels it has the highest mean of all methods over the held-out sets",
        words,
        judge(ahead.low > 0.0, ahead.value > 0.0, tested=rows["name"].nunique() >= LEAST),
        "agrees if the interval of the difference from the second-best is above 0, in part if the difference is.",
    )


def held_out(table: pd.DataFrame, known: int) -> pd.DataFrame:
    """Return the rows of held-out sets with this number of labels, balanced over the classes."""
    return table[(table["known"] == known) & (table["kind"] == "held-out") & (table["draw"] == "balanced")]


def where_it_loses(table: pd.DataFrame) -> Finding:
    """Sets on which it differs from ridge regression beyond chance."""
    words = []
    for known in sorted(table["known"].unique()):
        found = pd.concat([gains(table, known, kind) for kind in KINDS])
        lost, won = found[found["high"] < 0.0], found[found["low"] > 0.0]
        names = ", ".join(f"{name} {row['value']:.3f}" for name, row in lost.sort_values("value").iterrows())
        words.append(
            f"{known} labels: better on {len(won)} of {len(found)} sets, worse on {len(lost)}{f' ({names})' if names else ''}"
        )
    return Finding(
        "sets on which it is better or worse than ridge regression, by intervals over replications",
        "; ".join(words) + ".",
    )


def automatic_share(table: pd.DataFrame) -> Finding:
    """Gain from choosing the weight of the labelled points, compared with equal weights."""
    found = gains(table, JUDGED, "held-out", over="of equal weights")
    gain = mean_gain(found)
    rows = held_out(table, JUDGED)
    ends = f"{found['value'].min():.3f} to {found['value'].max():.3f}" if len(found) else "none"
    return ruled(
        "the weight of the labelled points chosen by cross-validation improves on equal weights",
        f"{JUDGED} labels: mean gain {gain:.3f} over {len(found)} held-out sets, {ends}; a large weight is chosen in "
        f"{100 * (rows['share'] > 0.0).mean() if len(rows) else 0:.0f} % of the fits.",
        judge(gain.low > 0.0, gain.value > 0.0, tested=len(found) >= LEAST),
        "agrees if the interval over sets is above 0, in part if the mean is.",
    )


def random_draws(table: pd.DataFrame) -> Finding:
    """Labels drawn at random."""
    words = []
    for known in AT_RANDOM:
        found = gains(table, known, "held-out", draw="random")
        above = f"better on {(found['value'] > 0.0).sum()} of {len(found)} held-out sets"
        words.append(f"{known} labels: {above}, mean gain {mean_gain(found):.3f}")
    return Finding("comparison with ridge regression, labels drawn at random", "; ".join(words) + ".")


def proofs(table: pd.DataFrame) -> Finding:
    """Certified gaps and run times."""
    words = [
        f"{known} labels {format_upper(gap)}" for known, gap in table.groupby("known")["label gap"].median().items()
    ]
    return Finding(
        "certified optimality gap of its labels in Eq. (9), among labels that agree with the known ones",
        f"Medians: {', '.join(words)}. A fit takes {table['seconds'].median():.2g} s (median), at most "
        f"{table['seconds'].max():.2g} s.",
    )
