"""Messages on a clustering, for the terminal and the report."""

from typing import Any

from diffrac_cvx.app.labels import contingency_table, join_words
from diffrac_cvx.comparison.table import ReportTable
from diffrac_cvx.metrics import ContingencyMatrix
from diffrac_cvx.problem.formatting import format_ends, format_gap, format_lower, format_upper
from diffrac_cvx.problem.result import Status, excluded_clause

MAX_COEFFICIENTS = 8  # printed
NEGLIGIBLE_BOUND = 1e-2  # of the cost: a lower bound up to this one is called weak
FINISHED_STATUSES = (Status.OPTIMAL, Status.CLOSED_FORM)
BOUNDS_HOLD = "the bounds below are valid, and more time tightens them"
STATUS_MESSAGES = {
    Status.OPTIMAL: "converged: the duality gap is within the tolerance",
    Status.CLOSED_FORM: "solved in closed form",
    Status.TIME_LIMIT: f"time limit reached; {BOUNDS_HOLD}",
    Status.MAX_ITER: f"iteration limit reached; {BOUNDS_HOLD}",
    Status.USER_LIMIT: f"iteration or time limit reached; {BOUNDS_HOLD}",
    Status.STOPPED: f"interrupted; {BOUNDS_HOLD}",
    Status.STALLED: "no further progress in double precision; the bounds below are valid. Increase --tol",
}


def describe_clustering(found: dict[str, Any]) -> list[str]:
    """Return the findings of `cluster` as lines of text, warnings first."""
    notes = (f"Note: {note}." for note in found["notes"])
    return [
        *describe_warnings(found),
        *describe_structure(found),
        *notes,
        *describe_clusters(found),
        *describe_true_labels(found),
    ]


def describe_structure(found: dict[str, Any]) -> list[str]:
    """Return the result of the structure test, unless it is among the warnings."""
    warned, test = [reason["message"] for reason in found["diagnostics"]], found["structure"]
    return [] if test is None or test["message"] in warned else [test["message"]]


def describe_warnings(found: dict[str, Any]) -> list[str]:
    """Return the warnings on the clusters and on an early termination."""
    if not found["finished"] and found["upper_bound"] >= 1.0:
        return [f"WARNING: no clusters were found: {found['status'].partition(';')[0]}."]
    lines = [f"WARNING: {reason['message']} {reason['remedy']}" for reason in found["diagnostics"]]
    return lines if found["finished"] else [*lines, f"WARNING: not converged: {found['status']}."]


def describe_clusters(found: dict[str, Any]) -> list[str]:
    """Return the sizes, the cost, the certified bounds and the features of the clusters."""
    sizes, n = found["sizes"], found["n"]
    features = "one feature" if found["d"] == 1 else f"{found['d']} features"
    about = f"{n} points, {features}; {found['seconds']:.2f} s."
    if found["cost"] is None:
        excluded = excluded_clause(found["n_excluded"])
        least = f"Certified: all labels cost at least {format_lower(found['lower_bound'])} (0 best, 1 worst){excluded}."
        return [about, f"{len(sizes)} labels, positive for {join_words(sizes)} of the {n} points.", least]
    present = [size for size in sizes if size]
    clusters = f"Clusters of {join_words(present)} points." if len(present) > 1 else f"One cluster of {n} points."
    names = [f"cluster {k} is {name}" for k, name in enumerate(found.get("class_names") or ()) if name is not None]
    named = [f"From the labelled rows: {' and '.join(names)}."] if names else []
    return [
        about,
        clusters,
        *named,
        describe_bounds(found),
        *describe_rounding(found),
        *describe_feature_count(found),
        *describe_feature_groups(found),
        describe_features(found),
    ]


def describe_rounding(found: dict[str, Any]) -> list[str]:
    """Return how the clusters before the search for the optimum differ from those after it."""
    if found.get("rounded_agreement", 1.0) == 1.0:
        return []
    cost = format_upper(found["rounded_cost"])
    index = f"{found['rounded_agreement']:.2f}"
    return [f"Without --prove the cost is {cost}: another split, whose adjusted Rand index with this one is {index}."]


def describe_bounds(found: dict[str, Any]) -> str:
    """Return the cost of the clusters and the certified bound on all others."""
    cost, lower, what = found["cost"], found["lower_bound"], "split" if len(found["sizes"]) == 2 else "partition"
    others = f"{what} that satisfies the constraints" if found.get("constraints") else f"{what} of these points"
    excluded = excluded_clause(found["n_excluded"])
    least, most = format_ends(lower, cost)
    text = f"Cost of this {what}: {most} (0 best, 1 worst)."
    if cost - lower <= max(found["tol"], 1e-4):
        return f"{text} Certified optimal: no {others} costs less by more than {format_gap(lower, cost)}{excluded}."
    if lower <= NEGLIGIBLE_BOUND * cost:
        yet = "" if found.get("finished", True) else " still"
        remedy = "More time, or a larger lambda or ridge, tightens it."
        return f"{text} The lower bound is{yet} weak: no {others} costs less than {least}{excluded}. {remedy}"
    return f"{text} Certified: no {others} costs less than {least}{excluded}."


def describe_feature_count(found: dict[str, Any]) -> list[str]:
    """Return the number of features that the l1 penalty selected and a bound on the gain of any others."""
    selected = found["selected_features"]
    if selected is None or found["diagnostics"]:
        return []
    if len(selected) == found["d"]:
        return ["No feature is excluded at this lambda; a larger lambda excludes some."]
    are, excluded = "is" if len(selected) == 1 else "are", excluded_clause(found["n_excluded"])
    least = f"no other set lowers the objective by more than {format_upper(found['label_gap'])}{excluded}"
    all_used = ["At this lambda the relaxation uses every feature; only the split found excludes some."]
    return [
        *(all_used if found["relaxation_selects_all"] else []),
        f"{len(selected)} of {found['d']} features {are} selected; {least}. All other coefficients are 0.",
    ]


def describe_feature_groups(found: dict[str, Any]) -> list[str]:
    """Return the selected feature groups, by decreasing norm of their coefficients."""
    groups = found.get("feature_groups")
    if not groups:
        return []
    used = sorted((pair for pair in groups.items() if pair[1]["length"] > 0.0), key=lambda pair: -pair[1]["length"])
    columns = [f"{name} ({group['columns']} columns)" if group["columns"] > 1 else name for name, group in used]
    shown = (
        join_words(columns[:MAX_COEFFICIENTS])
        if len(used) <= MAX_COEFFICIENTS
        else ", ".join([*columns[:MAX_COEFFICIENTS], "..."])
    )
    return [f"Selected feature groups, {len(used)} of {len(groups)}: {shown or 'none'}."]


def describe_features(found: dict[str, Any]) -> str:
    """Return the features with the largest coefficient of each, by decreasing size."""
    largest = {name: max(values, key=abs) for name, values in found["scaled_coefficients"].items()}
    ranked = sorted((pair for pair in largest.items() if pair[1] != 0.0), key=lambda pair: -abs(pair[1]))
    shown = ", ".join(f"{name} {value:+.3g}" for name, value in ranked[:MAX_COEFFICIENTS])
    more = ", ..." if len(ranked) > MAX_COEFFICIENTS else ""
    return f"Features by importance (coefficient per standard deviation): {shown or 'none'}{more}"


def describe_true_labels(found: dict[str, Any]) -> list[str]:
    """Return the agreement with the reference labels and the contingency table."""
    if "contingency_matrix" not in found:
        return []
    error = f", clustering error {found['clustering_error']:.3f} (0: identical)" if "clustering_error" in found else ""
    return [
        f"Agreement with the {len(found['contingency_matrix']['true'])} reference classes: adjusted Rand index "
        f"{found['adjusted_rand_score']:.3f} (1: identical, about 0: chance level){error}.",
        true_label_table(found).text(),
    ]


def true_label_table(found: dict[str, Any]) -> ReportTable:
    """Return the number of points by reference class (rows) and cluster (columns)."""
    return contingency_table(ContingencyMatrix(**found["contingency_matrix"]), "reference class", "cluster")
