"""Summary of a clustering in sentences: warnings, sizes, cost and bounds, features, reference labels."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from html import escape
from io import StringIO
from typing import Any, Self

import numpy as np

from diffrac_cvx.app.labels import contingency_table, file_table, join_words
from diffrac_cvx.app.page.computation import CLUSTERS, SEARCH, Outcome, Run
from diffrac_cvx.app.page.data import Data
from diffrac_cvx.app.page.naming import Numbers, match_names, name_two_clusters, number_clusters, remember_clusters
from diffrac_cvx.app.page.solve_choice import PageSetting
from diffrac_cvx.app.page.tables import MIN_COEFFICIENT, list_html, stacked_html
from diffrac_cvx.certificates import certify_clusters, certify_labels
from diffrac_cvx.certificates.certify import LabelCertificate
from diffrac_cvx.comparison.table import ReportTable
from diffrac_cvx.machine.writing import write_rows
from diffrac_cvx.metrics import adjusted_rand_score, contingency_matrix
from diffrac_cvx.points.checks import Array, as_data
from diffrac_cvx.points.dense import array_points
from diffrac_cvx.problem.formatting import format_ends, format_upper
from diffrac_cvx.problem.penalty import weights_of
from diffrac_cvx.problem.result import Result, Status, excluded_clause
from diffrac_cvx.registry import RELAXATIONS, SOLVERS, same_value
from diffrac_cvx.rounding import ROUNDINGS
from diffrac_cvx.rounding.diagnostics import Diagnostic, find_diagnostics
from diffrac_cvx.rounding.directions import oriented_direction
from diffrac_cvx.solvers.exact import OptimalLabels

MAX_NAMED_FEATURES = 6
SPLIT_PHRASE = "split of these points"
CONSTRAINED_SPLIT_PHRASE = f"{SPLIT_PHRASE} that satisfies the constraints"
CERTIFIED_GAP = 1e-3  # a smaller optimality gap is reported instead of the bound


@dataclass(frozen=True, eq=False)
class ClusterSummary:
    """Summary of a clustering."""

    diagnostics: tuple[Diagnostic, ...] = ()  # warnings
    sentences: tuple[str, ...] = ()  # results
    groups: ReportTable | None = None  # contingency table with the reference labels
    data: Data | None = None  # if there are clusters
    labels: Array = field(default_factory=lambda: np.zeros(0))
    scores: Array = field(default_factory=lambda: np.zeros(0))
    lower: float = -np.inf  # certified bound on the cost of every partition
    cost: float = np.inf  # of this one
    marks: tuple[tuple[int, int], ...] = ()  # labelled points, with labels -1 or +1

    @classmethod
    def from_labels(
        cls, diagnostics: Iterable[Diagnostic], messages: list[str], data: Data, labels: Array, scores: Array,
        proof: LabelCertificate,
    ) -> Self:  # fmt: skip
        """Return the summary of clusters, with their agreement with the reference labels."""
        sentences, groups = (*messages, *describe_agreement(data, labels)), None
        for reference in data.references:
            counts = contingency_matrix(reference, number_clusters(labels))
            groups = contingency_table(counts, "reference class", "cluster")
        return cls(tuple(diagnostics), sentences, groups, data, labels, scores, proof.lower, proof.objective)

    @property
    def sizes(self) -> list[int]:
        """Number of points of each cluster."""
        return np.bincount(number_clusters(self.labels), minlength=2).tolist() if len(self.labels) else []

    @cached_property
    def clusters(self) -> bytes:
        """Clusters as CSV."""
        return b"" if self.data is None else write_clusters(self.data, self.labels, self.scores)

    @property
    def warnings(self) -> str:
        """Warnings as HTML."""
        return warnings_html(self.diagnostics)

    @property
    def html(self) -> str:
        """Summary as HTML, warnings first."""
        groups = "" if self.groups is None else stacked_html(self.groups)
        return f"{self.warnings}{list_html(self.sentences)}{groups}"


def warnings_html(diagnostics: Iterable[Diagnostic]) -> str:
    """Return warnings as HTML."""
    items = [f"<li><b>{escape(one.message)}</b> {escape(one.remedy)}</li>" for one in diagnostics]
    return f'<div class="doubts"><p>Warnings:</p><ul>{"".join(items)}</ul></div>' if items else ""


def find_summary(outcome: Outcome, run_name: str, rounding: str) -> ClusterSummary | None:
    """Return the summary of a run, by default of the first with a result; None if there is none."""
    if outcome.setting.n_clusters > 2:  # fitted separately, the same for all runs
        model = outcome.extras.get(CLUSTERS)
        found = None if model is None else summarize_clusters(outcome.data, outcome.setting, model)
    else:
        run = outcome.run_named(run_name)
        found = None if run is None else summarize_run(outcome.data, outcome.setting, run, rounding)
    if found is not None and found.data is not None:
        remember_clusters(outcome.data, number_clusters(found.labels), outcome.setting.n_clusters)
    return found


@lru_cache(maxsize=8)
def summarize_run(data: Data, setting: PageSetting, run: Run, rounding: str) -> ClusterSummary:
    """Return the summary of a run with a result; cached by the identity of the arguments."""
    assert run.result is not None
    X, result = as_data(data.X, warn=False), run.result
    labels = rounded_labels(result, rounding, data, setting)
    bounds = bounds_objective(run)
    # The bounds of another problem do not bound this one.
    bounded_result = result if bounds else replace(result, lower=-np.inf, upper=np.inf)
    parameters: dict[str, Any] = {"nu": setting.nu, "penalty": setting.penalty}
    proof = certify_labels(
        X, labels, bounded_result.lower if bounds else 0.0, constraints=setting.constraints(len(X)), **parameters
    )
    unproved = "" if bounds else f"{run.name} gives no bound for this split. Select a solution of (15) for one."
    messages = [
        *describe_sizes(labels),
        *describe_cost(proof, unproved=unproved, has_constraints=setting.has_constraints),
    ]
    messages += describe_direction(proof.v * X.std(axis=0), data.names) + describe_groups(
        proof.v * X.std(axis=0), setting
    )
    diagnostics = find_diagnostics(X, labels, bounded_result, **parameters, names=data.names)
    lower = proof.lower if bounds else -np.inf
    return replace(
        ClusterSummary.from_labels(diagnostics, messages, data, labels, X @ proof.v, proof),
        lower=lower,
        marks=setting.marks,
    )


def summarize_search(outcome: Outcome, above: ClusterSummary | None) -> ClusterSummary | None:
    """Return the summary of a search for the optimal split, compared with the one above; None while it runs."""
    found, data, setting = outcome.extras.get(SEARCH), outcome.data, outcome.setting
    if found is None:
        return None
    if isinstance(found, str):
        return ClusterSummary(sentences=(found,))
    labels = name_as_shown(found.labels, data, setting)
    X, constraints = as_data(data.X, warn=False), setting.constraints(len(labels))
    proof = certify_labels(X, labels, found.lower, nu=setting.nu, penalty=setting.penalty, constraints=constraints)
    messages = [*describe_sizes(labels), *describe_search(found, proof, setting.has_constraints)]
    if above is not None and above.data is data:
        n_different = int(np.sum(above.labels != labels))
        if not setting.has_constraints:
            n_different = min(n_different, len(labels) - n_different)  # the sign of the labels is arbitrary
        messages.append(
            f"It differs from the split above in {n_different} points." if n_different else "It is the split above."
        )
    messages += describe_direction(proof.v * X.std(axis=0), data.names)
    return ClusterSummary.from_labels([], messages, data, labels, X @ proof.v, proof)


@lru_cache(maxsize=8)
def summarize_clusters(data: Data, setting: PageSetting, model: Any) -> ClusterSummary:
    """Return the summary of more than two clusters, from a fitted estimator or an error message."""
    if isinstance(model, str):
        return ClusterSummary(sentences=(model,))
    names, n_clusters = names_of_many(data, model), setting.n_clusters
    labels, scores = names[np.asarray(model.labels_)], model.decision_function(data.X)[:, np.argsort(names)]
    proof = certify_clusters(data.X, labels, model.result_, n_clusters, nu=setting.nu, penalty=setting.penalty)
    sizes = np.bincount(labels).tolist()
    found = f"{len(sizes)} clusters of {join_words(sizes)} points."
    messages = [found if len(sizes) > 1 else "All points are in one cluster.", *describe_cost(proof, n_clusters)]
    return ClusterSummary.from_labels(model.diagnostics_, messages, data, labels, scores, proof)


def bounds_objective(run: Run) -> bool:
    """Whether the lower bound of a run bounds the cost of every split, as for (8), (11) and (15)."""
    method = run.solve.method.partition("/")[0]
    return method in SOLVERS or RELAXATIONS[method].bounds_15 is same_value


@lru_cache(maxsize=32)
def rounded_labels(result: Result, rounding: str, data: Data, setting: PageSetting) -> Array:
    """Return labels that satisfy the constraints; without any, clusters keep their earlier names."""
    return name_as_shown(ROUNDINGS[rounding](result.F, constraints=setting.constraints(len(data.X))), data, setting)


def name_as_shown(labels: Array, data: Data, setting: PageSetting) -> Array:
    """Return labels with the signs of the last result, unless constraints determine the signs."""
    if setting.has_constraints:
        return labels
    if setting.signs:  # sign constraints determine which cluster is +1
        weights = weights_of(setting.penalty, len(data.names))
        return oriented_direction(array_points(as_data(data.X, warn=False)), labels, weights)[0]
    return name_two_clusters(labels, data, setting.nu, setting.penalty)


@lru_cache(maxsize=8)
def names_of_many(data: Data, model: Any) -> Numbers:
    """Return the displayed number of each cluster of a fitted estimator, (K,)."""
    count = len(model.coef_)
    names = match_names(np.asarray(model.labels_), count, data)
    return np.arange(count) if names is None else names


def describe_sizes(labels: Array) -> list[str]:
    """Return the sizes of two clusters as a sentence."""
    sizes = (int(np.sum(labels < 0)), int(np.sum(labels > 0)))
    return [f"Two clusters of {sizes[0]} and {sizes[1]} points." if min(sizes) else "All points are in one cluster."]


def describe_search(found: OptimalLabels, proof: LabelCertificate, has_constraints: bool) -> list[str]:
    """Return the cost of the best split found, and its optimality gap."""
    split, gap = (
        CONSTRAINED_SPLIT_PHRASE if has_constraints else SPLIT_PHRASE,
        format_upper(found.gap) + excluded_clause(found.n_excluded),
    )
    ended = f"{found.n_nodes} relaxations, {found.seconds:.1f} s"
    verdict = f"Not certified optimal ({ended}): a {split} may be cheaper by at most {gap}."
    if found.status is Status.OPTIMAL:
        verdict = f"Certified optimal: no {split} is cheaper by more than {gap} ({ended})."
    return [f"Cost of this split: {format_ends(found.lower, proof.objective)[1]} (0 is best, 1 is worst).", verdict]


def describe_cost(
    proof: LabelCertificate, k: int = 2, unproved: str = "", *, has_constraints: bool = False
) -> list[str]:
    """Return the cost of k clusters and the certified bound; `unproved` is the reason if there is none."""
    lower, cost = format_ends(max(proof.lower, 0.0), proof.objective)
    these, others, are, costs = (
        "this split",
        CONSTRAINED_SPLIT_PHRASE if has_constraints else SPLIT_PHRASE,
        "is",
        "costs",
    )
    if k > 2:
        these, others, are, costs = ("these clusters", f"{k} clusters of these points", "are", "cost")
    least = f"{costs} less than {lower}"
    if proof.gap < CERTIFIED_GAP:
        least = f"{are} cheaper by more than {format_upper(proof.gap)}"
    return [
        f"Cost of {these}: {cost} (0 is best, 1 is worst).",
        unproved or f"Certified: no {others} {least}{excluded_clause(proof.n_excluded)}.",
    ]


def describe_direction(coefficients: Array, names: tuple[str, ...]) -> list[str]:
    """Return the most important features, by coefficient per standard deviation."""
    size = np.abs(coefficients)
    used = np.flatnonzero(size > MIN_COEFFICIENT * size.max())
    if not len(used):
        return ["All coefficients are zero."]
    order = used[np.argsort(-size[used], kind="stable")][:MAX_NAMED_FEATURES]
    terms = ", ".join(f"{names[j]} {coefficients[j]:+.2f}" for j in order)
    more = f", and {len(used) - len(order)} more" if len(used) > len(order) else ""
    return [
        f"Most important features: {terms}{more}. Each number is the change of the decision function per standard "
        f"deviation of the feature; {len(used)} of {len(names)} features are used."
    ]


def describe_groups(coefficients: Array, setting: PageSetting) -> list[str]:
    """Return the selected feature groups, by decreasing norm of their coefficients."""
    lengths = {name: float(np.linalg.norm(coefficients[list(some)])) for name, some in setting.groups}
    used = sorted((name for name in lengths if lengths[name] > 0.0), key=lambda name: -lengths[name])
    if not used:
        return []
    sizes = {name: f"{name} ({len(some)} columns)" if len(some) > 1 else name for name, some in setting.groups}
    more = f", and {len(used) - MAX_NAMED_FEATURES} more" if len(used) > MAX_NAMED_FEATURES else ""
    named = ", ".join(sizes[name] for name in used[:MAX_NAMED_FEATURES])
    return [f"Selected feature groups, {len(used)} of {len(lengths)}: {named}{more}."]


def describe_agreement(data: Data, labels: Array) -> list[str]:
    """Return the agreement of the clusters with the reference labels, if there are any."""
    sentences, two = [], data.y is not None and set(labels.tolist()) <= {-1.0, 1.0}
    for reference in data.references:
        index = adjusted_rand_score(reference, labels)
        message = (
            f"Agreement with the reference labels: adjusted Rand index {index:.2f} (1: identical, about 0: chance level"
        )
        n, n_agreeing = len(labels), int(np.sum(labels == data.y))
        n_agreeing, largest = max(n_agreeing, n - n_agreeing), np.unique(reference, return_counts=True)[1].max()
        more = f"; {n_agreeing} of {n} points agree ({largest} if all were in one cluster)" if two else ""
        sentences.append(f"{message}){more}.")
    return sentences


def write_clusters(data: Data, labels: Array, scores: Array) -> bytes:
    """Return CSV: row of the file, counted from 0, cluster, decision function or functions, reference label."""
    table = file_table(("cluster", "score", "known_group"), data.rows, number_clusters(labels), scores, data.labels)
    text = StringIO()
    write_rows(text, table.header, table.rows)
    return text.getvalue().encode()
