"""What a person reads of a clustering, in words, on the terminal and first in the report."""

from typing import Any

import numpy as np

from diffrac_cvx.app.labels import contingency_table, join_words
from diffrac_cvx.comparison.table import ReportTable
from diffrac_cvx.metrics import ContingencyMatrix
from diffrac_cvx.problem.formatting import format_ends, format_gap, format_lower
from diffrac_cvx.problem.result import SelectedFeatures, Status, excluded_clause

MAX_COEFFICIENTS = 8  # that are printed
NEGLIGIBLE_BOUND = 1e-2  # of the cost: a lower bound up to which nothing is said to be proved
FINISHED_STATUSES = (Status.OPTIMAL, Status.CLOSED_FORM)
BOUNDS_HOLD = "the bounds below hold, and more time brings them closer"
STATUS_MESSAGES = {
    Status.OPTIMAL: "finished: the proof is as exact as asked for",
    Status.CLOSED_FORM: "finished: the best value is known exactly",
    Status.TIME_LIMIT: f"the time limit was reached; {BOUNDS_HOLD}",
    Status.MAX_ITER: f"the largest number of steps was reached; {BOUNDS_HOLD}",
    Status.USER_LIMIT: f"a limit of steps or time was reached; {BOUNDS_HOLD}",
    Status.STOPPED: f"it was stopped; {BOUNDS_HOLD}",
    Status.STALLED: "the bounds come no closer in the precision of the computer; they hold: ask for a larger --tol",
}


def describe_clustering(found: dict[str, Any]) -> list[str]:
    """Return the findings of `cluster` for a person: first what speaks against them."""
    notes = (f"Note: {note}." for note in found["notes"])
    return [
        *describe_warnings(found),
        *describe_structure(found),
        *notes,
        *describe_clusters(found),
        *describe_true_labels(found),
    ]


def describe_structure(found: dict[str, Any]) -> list[str]:
    """Return what the tests of structure say, but for what a reservation has said."""
    warned = [reason["message"] for reason in found["diagnostics"]]
    messages = [test["message"] for test in found["structure"] if test["told"] and test["message"] not in warned]
    return list(dict.fromkeys(messages))  # one sentence where there was no time for either


def describe_warnings(found: dict[str, Any]) -> list[str]:
    """Return why the clusters may be no answer, and why the search ended early."""
    if not found["finished"] and found["upper_bound"] >= 1.0:
        return [f"NO ANSWER: no split was found before it ended: {found['status'].partition(';')[0]}."]
    lines = [f"NO ANSWER: {reason['message']} {reason['remedy']}" for reason in found["diagnostics"]]
    return lines if found["finished"] else [*lines, f"NOT FINISHED: {found['status']}."]


def describe_clusters(found: dict[str, Any]) -> list[str]:
    """Return the clusters, what they cost and what is proved, and the features that make them."""
    sizes, n = found["sizes"], found["n"]
    features = "one feature" if found["d"] == 1 else f"{found['d']} features"
    about = f"{n} points, {features}; {found['seconds']:.2f} s."
    if found["cost"] is None:
        excluded = excluded_clause(found["n_excluded"])
        least = (
            f"Proved: the cost of labels is at least {format_lower(found['lower_bound'])} (0 best, 1 worst){excluded}."
        )
        return [about, f"{len(sizes)} labels, with {join_words(sizes)} of the {n} points.", least]
    present = [size for size in sizes if size]
    clusters = f"Clusters of {join_words(present)} points." if len(present) > 1 else f"One cluster of {n} points."
    names = [f"cluster {k} is that of {name}" for k, name in enumerate(found.get("known_as") or ()) if name is not None]
    named = [f"By the rows that are known, {' and '.join(names)}."] if names else []
    return [
        about,
        clusters,
        *named,
        describe_bounds(found),
        *describe_feature_count(found),
        *describe_feature_groups(found),
        describe_features(found),
    ]


def describe_bounds(found: dict[str, Any]) -> str:
    """Return what the clusters cost, and what is proved of all others."""
    cost, lower, what = found["cost"], found["lower_bound"], "split" if len(found["sizes"]) == 2 else "grouping"
    others = f"{what} that respects what you know" if found.get("constraints") else f"{what} of these points"
    excluded = excluded_clause(found["n_excluded"])
    least, most = format_ends(lower, cost)
    text = f"Cost of this {what}: {most} (0 best, 1 worst)."
    if cost - lower <= max(found["tol"], 1e-4):
        return f"{text} Proved: no {others} costs less, up to {format_gap(lower, cost)}{excluded}."
    if lower <= NEGLIGIBLE_BOUND * cost:
        yet = "" if found.get("finished", True) else " yet"
        remedy = "More time, or a larger lambda or ridge, proves more."
        return f"{text} Nothing is proved{yet}, but that no {others} costs less than {least}{excluded}. {remedy}"
    return f"{text} Proved: no {others} costs less than {least}{excluded}."


def describe_feature_count(found: dict[str, Any]) -> list[str]:
    """Return how few features carry the answer, where an l1 weight chose them, and what any others could gain."""
    selected = found["features_in_use"]
    if selected is None or found["diagnostics"]:
        return []
    if len(selected) == found["d"]:
        return ["No feature is left out at this lambda; a larger one leaves some out."]
    others = SelectedFeatures(np.arange(len(selected)), found["d"], found["label_gap"], found["n_excluded"])
    all_used = ["No feature is left out of the relaxation at this lambda, only of the split found."]
    return [*(all_used if found["relaxation_uses_all"] else []), f"{others}. Any other has weight 0."]


def describe_feature_groups(found: dict[str, Any]) -> list[str]:
    """Return the groups of columns that are in use, that with the longest coefficients first, where there are any."""
    groups = found.get("groups")
    if not groups:
        return []
    used = sorted((pair for pair in groups.items() if pair[1]["length"] > 0.0), key=lambda pair: -pair[1]["length"])
    columns = [f"{name} ({group['columns']} columns)" if group["columns"] > 1 else name for name, group in used]
    shown = (
        join_words(columns[:MAX_COEFFICIENTS])
        if len(used) <= MAX_COEFFICIENTS
        else ", ".join([*columns[:MAX_COEFFICIENTS], "..."])
    )
    return [
        f"In use {'is' if len(used) == 1 else 'are'} {len(used)} of {len(groups)} groups of columns: {shown or 'none'}."
    ]


def describe_features(found: dict[str, Any]) -> str:
    """Return the features that make the clusters and the largest coefficient of each, the largest of all first."""
    largest = {name: max(values, key=abs) for name, values in found["scaled_coefficients"].items()}
    ranked = sorted((pair for pair in largest.items() if pair[1] != 0.0), key=lambda pair: -abs(pair[1]))
    shown = ", ".join(f"{name} {value:+.3g}" for name, value in ranked[:MAX_COEFFICIENTS])
    more = ", ..." if len(ranked) > MAX_COEFFICIENTS else ""
    return f"Features by importance (coefficient per standard deviation): {shown or 'none'}{more}"


def describe_true_labels(found: dict[str, Any]) -> list[str]:
    """Return how the clusters agree with the true labels, and the points of each label in each cluster."""
    if "contingency_matrix" not in found:
        return []
    error = f", clustering error {found['clustering_error']:.3f} (0: the same)" if "clustering_error" in found else ""
    return [
        f"Compared with the {len(found['contingency_matrix']['true'])} true labels: adjusted Rand index "
        f"{found['adjusted_rand_score']:.3f} (1: the same groups, about 0: as by chance){error}.",
        true_label_table(found).text(),
    ]


def true_label_table(found: dict[str, Any]) -> ReportTable:
    """Return the points of each true label, a row, in each cluster found, a column."""
    return contingency_table(ContingencyMatrix(**found["contingency_matrix"]), "true label", "found cluster")
