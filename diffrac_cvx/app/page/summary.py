"""The answer in words: why it may be none, the clusters, what is proved, what counts, and the known groups."""

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
from diffrac_cvx.certificates.certify import ClustersCertificate, LabelCertificate
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
from diffrac_cvx.solvers.branching import OptimalLabels

MAX_NAMED_FEATURES = 6  # features
SPLIT_PHRASE = "split of these points"
CONSTRAINED_SPLIT_PHRASE = f"{SPLIT_PHRASE} that respects what you know"
CERTIFIED_GAP = 1e-3  # a proved gap below which it is said, and not the bound


@dataclass(frozen=True, eq=False)
class ClusterSummary:
    """What is said of one split, or of more than two clusters."""

    diagnostics: tuple[Diagnostic, ...] = ()  # why it may be no answer
    sentences: tuple[str, ...] = ()  # what was found and proved
    groups: ReportTable | None = None  # how many points of each known group are in each cluster
    data: Data | None = None  # of which it is, where there are clusters
    labels: Array = field(default_factory=lambda: np.zeros(0))
    scores: Array = field(default_factory=lambda: np.zeros(0))
    lower: float = -np.inf  # proved of the cost of all splits,
    cost: float = np.inf  # and that of this one
    marks: tuple[tuple[int, int], ...] = ()  # points whose clusters were known, with their labels

    @classmethod
    def from_labels(
        cls, diagnostics: Iterable[Diagnostic], messages: list[str], data: Data, labels: Array, scores: Array,
        proof: LabelCertificate | ClustersCertificate,
    ) -> Self:  # fmt: skip
        """Return what is said of clusters, and how they agree with the known groups."""
        sentences, groups = (*messages, *describe_agreement(data, labels)), None
        if data.labels is not None:
            groups = contingency_table(
                contingency_matrix(data.labels, number_clusters(labels)), "known group", "in cluster"
            )
        return cls(tuple(diagnostics), sentences, groups, data, labels, scores, proof.lower, proof.objective)

    @property
    def sizes(self) -> list[int]:
        """How many points each cluster has."""
        return np.bincount(number_clusters(self.labels), minlength=2).tolist() if len(self.labels) else []

    @cached_property
    def clusters(self) -> bytes:
        """The clusters, as CSV."""
        return b"" if self.data is None else write_clusters(self.data, self.labels, self.scores)

    @property
    def warnings(self) -> str:
        """Why it may be no answer, as HTML."""
        return warnings_html(self.diagnostics)

    @property
    def html(self) -> str:
        """All but the file, as HTML: the reservations come first."""
        groups = "" if self.groups is None else stacked_html(self.groups)
        return f"{self.warnings}{list_html(self.sentences)}{groups}"


def warnings_html(diagnostics: Iterable[Diagnostic]) -> str:
    """Return why something may be no answer, as HTML."""
    items = [f"<li><b>{escape(one.message)}</b> {escape(one.remedy)}</li>" for one in diagnostics]
    return f'<div class="doubts"><p>This may be no answer:</p><ul>{"".join(items)}</ul></div>' if items else ""


def find_summary(outcome: Outcome, run_name: str, rounding: str) -> ClusterSummary | None:
    """Return the answer of one of the runs, by default of the first that has a result; None where there is none."""
    if outcome.setting.n_clusters > 2:  # found beside the runs, and the same for all of them
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
    """Return the answer of a run that has a result; the same objects give the same one."""
    assert run.result is not None
    X, result = as_data(data.X, warn=False), run.result
    labels = rounded_labels(result, rounding, data, setting)
    bounds = bounds_objective(run)
    # The bounds of another problem say nothing about this one.
    bounded_result = result if bounds else replace(result, lower=-np.inf, upper=np.inf)
    parameters: dict[str, Any] = {"nu": setting.nu, "penalty": setting.penalty}
    proof = certify_labels(
        X, labels, bounded_result.lower if bounds else 0.0, constraints=setting.constraints(len(X)), **parameters
    )
    unproved = "" if bounds else f"{run.name} proves nothing about this split: choose a solution of (15) for that."
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
    """Return what a search for the best split found, beside the answer above it; None while it goes on."""
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
            n_different = min(n_different, len(labels) - n_different)  # which of the clusters is +1 is arbitrary
        messages.append(
            f"The split above differs from it in {n_different} points." if n_different else "It is the split above."
        )
    messages += describe_direction(proof.v * X.std(axis=0), data.names)
    return ClusterSummary.from_labels([], messages, data, labels, X @ proof.v, proof)


@lru_cache(maxsize=8)
def summarize_clusters(data: Data, setting: PageSetting, model: Any) -> ClusterSummary:
    """Return the answer of more than two clusters: of a fitted estimator, or of a sentence in place of one."""
    if isinstance(model, str):
        return ClusterSummary(sentences=(model,))
    names, n_clusters = names_of_many(data, model), setting.n_clusters
    labels, scores = names[np.asarray(model.labels_)], model.decision_function(data.X)[:, np.argsort(names)]
    proof = certify_clusters(data.X, labels, model.result_, n_clusters, nu=setting.nu, penalty=setting.penalty)
    sizes = np.bincount(labels).tolist()
    found = f"{len(sizes)} clusters, of {join_words(sizes)} points."
    messages = [found if len(sizes) > 1 else "One cluster holds all points.", *describe_cost(proof, n_clusters)]
    return ClusterSummary.from_labels(model.diagnostics_, messages, data, labels, scores, proof)


def bounds_objective(run: Run) -> bool:
    """Whether the lower bound of a run is one on the cost of every split: that of (8), (11) and (15) is."""
    method = run.solve.method.partition("/")[0]
    return method in SOLVERS or RELAXATIONS[method].bounds_15 is same_value


@lru_cache(maxsize=32)
def rounded_labels(result: Result, rounding: str, data: Data, setting: PageSetting) -> Array:
    """Return labels that obey what is known; where nothing is, the clusters have the names they had before."""
    return name_as_shown(ROUNDINGS[rounding](result.F, constraints=setting.constraints(len(data.X))), data, setting)


def name_as_shown(labels: Array, data: Data, setting: PageSetting) -> Array:
    """Return labels with the signs of the last answer, unless what is known says which cluster is which."""
    if setting.has_constraints:
        return labels
    if setting.signs:  # which say which cluster is which
        weights = weights_of(setting.penalty, len(data.names))
        return oriented_direction(array_points(as_data(data.X, warn=False)), labels, weights)[0]
    return name_two_clusters(labels, data, setting.nu, setting.penalty)


@lru_cache(maxsize=8)
def names_of_many(data: Data, model: Any) -> Numbers:
    """Return the number by which each cluster of a fitted estimator goes, (K,)."""
    count = len(model.coef_)
    names = match_names(np.asarray(model.labels_), count, data)
    return np.arange(count) if names is None else names


def describe_sizes(labels: Array) -> list[str]:
    """Return how many points each of two clusters has."""
    sizes = (int(np.sum(labels < 0)), int(np.sum(labels > 0)))
    return [f"Two clusters, of {sizes[0]} and {sizes[1]} points." if min(sizes) else "One cluster holds all points."]


def describe_search(found: OptimalLabels, proof: LabelCertificate, has_constraints: bool) -> list[str]:
    """Return what the best split found costs, and by how much another one can be cheaper."""
    split, gap = (
        CONSTRAINED_SPLIT_PHRASE if has_constraints else SPLIT_PHRASE,
        format_upper(found.gap) + excluded_clause(found.n_excluded),
    )
    ended = f"{found.n_nodes} relaxations, {found.seconds:.1f} s"
    verdict = f"Not settled ({ended}): another {split} may be cheaper, but not by more than {gap}."
    if found.status is Status.OPTIMAL:
        verdict = f"Proved: no {split} is cheaper, up to {gap} ({ended})."
    return [f"Cost of this split: {format_ends(found.lower, proof.objective)[1]} (0 is best, 1 is worst).", verdict]


def describe_cost(
    proof: LabelCertificate | ClustersCertificate, k: int = 2, unproved: str = "", *, has_constraints: bool = False
) -> list[str]:
    """Return what a split, or k clusters, cost and what is proved; `unproved` says why nothing is."""
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
        unproved or f"Proved: no {others} {least}{excluded_clause(proof.n_excluded)}.",
    ]


def describe_direction(coefficients: Array, names: tuple[str, ...]) -> list[str]:
    """Return the features that count most, by their coefficients per standard deviation."""
    size = np.abs(coefficients)
    used = np.flatnonzero(size > MIN_COEFFICIENT * size.max())
    if not len(used):
        return ["No feature counts: the direction is zero."]
    order = used[np.argsort(-size[used], kind="stable")][:MAX_NAMED_FEATURES]
    terms = ", ".join(f"{names[j]} {coefficients[j]:+.2f}" for j in order)
    more = f", and {len(used) - len(order)} more" if len(used) > len(order) else ""
    return [
        f"Features that count most: {terms}{more}. The numbers are the change of the score when a feature grows by one "
        f"standard deviation, so that they can be compared; {len(used)} of {len(names)} features are used."
    ]


def describe_groups(coefficients: Array, setting: PageSetting) -> list[str]:
    """Return the groups of columns that are used, the one with the longest coefficients first."""
    lengths = {name: float(np.linalg.norm(coefficients[list(some)])) for name, some in setting.groups}
    used = sorted((name for name in lengths if lengths[name] > 0.0), key=lambda name: -lengths[name])
    if not used:
        return []
    sizes = {name: f"{name} ({len(some)} columns)" if len(some) > 1 else name for name, some in setting.groups}
    more = f", and {len(used) - MAX_NAMED_FEATURES} more" if len(used) > MAX_NAMED_FEATURES else ""
    named = ", ".join(sizes[name] for name in used[:MAX_NAMED_FEATURES])
    return [f"Groups of columns in use, {len(used)} of {len(lengths)}: {named}{more}."]


def describe_agreement(data: Data, labels: Array) -> list[str]:
    """Return how well the clusters agree with the known groups, where there are some."""
    if data.labels is None:
        return []
    index, two = adjusted_rand_score(data.labels, labels), data.y is not None and set(labels.tolist()) <= {-1.0, 1.0}
    message = (
        f"Agreement with the known groups: adjusted Rand index {index:.2f} (1 for the same groups, about 0 by chance"
    )
    if not two:
        return [f"{message})."]
    n, n_agreeing = len(labels), int(np.sum(labels == data.y))
    n_agreeing, largest = max(n_agreeing, n - n_agreeing), np.unique(data.labels, return_counts=True)[1].max()
    return [f"{message}); {n_agreeing} of {n} points are in the cluster of their group ({largest} if all were in one)."]


def write_clusters(data: Data, labels: Array, scores: Array) -> bytes:
    """Return CSV: the row in the file, the first being 0, its cluster, its score or scores, and its known group."""
    table = file_table(("cluster", "score", "known_group"), data.rows, number_clusters(labels), scores, data.labels)
    text = StringIO()
    write_rows(text, table.header, table.rows)
    return text.getvalue().encode()
