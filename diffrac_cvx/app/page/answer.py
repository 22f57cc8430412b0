"""The answer in words: why it may be none, the clusters, what is proved, what counts, and the known groups."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from html import escape
from io import StringIO
from typing import Any, Self

import numpy as np

from diffrac_cvx.app.labels import crosstab_table, file_table, list_words
from diffrac_cvx.app.page.computation import CLUSTERS, SEARCH, Outcome, Run
from diffrac_cvx.app.page.data import Data
from diffrac_cvx.app.page.naming import Numbers, name_two, names_like_before, number_clusters, remember_clusters
from diffrac_cvx.app.page.solve_choice import Setting
from diffrac_cvx.app.page.tables import VISIBLE, list_html, stacked_html
from diffrac_cvx.certificates import certify_clusters, certify_labels
from diffrac_cvx.certificates.certify import ClustersCertificate, LabelCertificate
from diffrac_cvx.comparison.table import Table
from diffrac_cvx.machine.writing import write_rows
from diffrac_cvx.metrics import adjusted_rand_index, crosstab
from diffrac_cvx.points.checks import Array, as_data
from diffrac_cvx.points.dense import array_points
from diffrac_cvx.problem.penalty import weights_of
from diffrac_cvx.problem.proved_numbers import format_ends, format_upper
from diffrac_cvx.problem.result import Result, Status, say_excluded
from diffrac_cvx.registry import RELAXATIONS, SOLVERS, same_value
from diffrac_cvx.rounding import ROUNDINGS
from diffrac_cvx.rounding.caveats import Reservation, find_reservations
from diffrac_cvx.rounding.directions import oriented_direction
from diffrac_cvx.solvers.branching import OptimalLabels

MOST_NAMED = 6  # features
SPLIT = "split of these points"
RESPECTING = f"{SPLIT} that respects what you know"
CERTAIN = 1e-3  # a proved gap below which it is said, and not the bound


@dataclass(frozen=True, eq=False)
class Answer:
    """What is said of one split, or of more than two clusters."""

    reservations: tuple[Reservation, ...] = ()  # why it may be no answer
    sentences: tuple[str, ...] = ()  # what was found and proved
    groups: Table | None = None  # how many points of each known group are in each cluster
    data: Data | None = None  # of which it is, where there are clusters
    labels: Array = field(default_factory=lambda: np.zeros(0))
    scores: Array = field(default_factory=lambda: np.zeros(0))
    lower: float = -np.inf  # proved of the cost of all splits,
    cost: float = np.inf  # and that of this one
    marks: tuple[tuple[int, int], ...] = ()  # points whose clusters were known, with their labels

    @classmethod
    def of(
        cls, reservations: Iterable[Reservation], says: list[str], data: Data, labels: Array, scores: Array,
        proof: LabelCertificate | ClustersCertificate,
    ) -> Self:  # fmt: skip
        """Return what is said of clusters, and how they agree with the known groups."""
        sentences, groups = (*says, *describe_agreement(data, labels)), None
        if data.labels is not None:
            groups = crosstab_table(crosstab(data.labels, number_clusters(labels)), "known group", "in cluster")
        return cls(tuple(reservations), sentences, groups, data, labels, scores, proof.lower, proof.objective)

    @property
    def sizes(self) -> list[int]:
        """How many points each cluster has."""
        return np.bincount(number_clusters(self.labels), minlength=2).tolist() if len(self.labels) else []

    @cached_property
    def clusters(self) -> bytes:
        """The clusters, as CSV."""
        return b"" if self.data is None else write_clusters(self.data, self.labels, self.scores)

    @property
    def doubts(self) -> str:
        """Why it may be no answer, as HTML."""
        return doubts_html(self.reservations)

    @property
    def html(self) -> str:
        """All but the file, as HTML: the reservations come first."""
        groups = "" if self.groups is None else stacked_html(self.groups)
        return f"{self.doubts}{list_html(self.sentences)}{groups}"


def doubts_html(reservations: Iterable[Reservation]) -> str:
    """Return why something may be no answer, as HTML."""
    doubts = [f"<li><b>{escape(one.says)}</b> {escape(one.remedy)}</li>" for one in reservations]
    return f'<div class="doubts"><p>This may be no answer:</p><ul>{"".join(doubts)}</ul></div>' if doubts else ""


def find_answer(outcome: Outcome, run_name: str, rounding: str) -> Answer | None:
    """Return the answer of one of the runs, by default of the first that has a result; None where there is none."""
    if outcome.setting.n_clusters > 2:  # found beside the runs, and the same for all of them
        model = outcome.extras.get(CLUSTERS)
        found = None if model is None else answer_of_many(outcome.data, outcome.setting, model)
    else:
        run = outcome.run_called(run_name)
        found = None if run is None else make_answer(outcome.data, outcome.setting, run, rounding)
    if found is not None and found.data is not None:
        remember_clusters(outcome.data, number_clusters(found.labels), outcome.setting.n_clusters)
    return found


@lru_cache(maxsize=8)
def make_answer(data: Data, setting: Setting, run: Run, rounding: str) -> Answer:
    """Return the answer of a run that has a result; the same objects give the same one."""
    assert run.result is not None
    X, result = as_data(data.X, warn=False), run.result
    labels = round_result(result, rounding, data, setting)
    bounds = bounds_splits(run)
    # The bounds of another problem say nothing about this one.
    judged = result if bounds else replace(result, lower=-np.inf, upper=np.inf)
    parameters: dict[str, Any] = {"nu": setting.nu, "penalty": setting.penalty}
    proof = certify_labels(X, labels, judged.lower if bounds else 0.0, links=setting.links(len(X)), **parameters)
    unproved = "" if bounds else f"{run.name} proves nothing about this split: choose a solution of (15) for that."
    says = [*describe_sizes(labels), *describe_cost(proof, unproved=unproved, has_links=setting.has_links)]
    says += describe_direction(proof.v * X.std(axis=0), data.names) + describe_groups(proof.v * X.std(axis=0), setting)
    reservations = find_reservations(X, labels, judged, **parameters, names=data.names)
    lower = proof.lower if bounds else -np.inf
    return replace(Answer.of(reservations, says, data, labels, X @ proof.v, proof), lower=lower, marks=setting.marks)


def answer_of_search(outcome: Outcome, above: Answer | None) -> Answer | None:
    """Return what a search for the best split found, beside the answer above it; None while it goes on."""
    found, data, setting = outcome.extras.get(SEARCH), outcome.data, outcome.setting
    if found is None:
        return None
    if isinstance(found, str):
        return Answer(sentences=(found,))
    labels = name_as_shown(found.labels, data, setting)
    X, given = as_data(data.X, warn=False), setting.links(len(labels))
    proof = certify_labels(X, labels, found.lower, nu=setting.nu, penalty=setting.penalty, links=given)
    says = [*describe_sizes(labels), *describe_search(found, proof, setting.has_links)]
    if above is not None and above.data is data:
        apart = int(np.sum(above.labels != labels))
        if not setting.has_links:
            apart = min(apart, len(labels) - apart)  # which of the clusters is +1 is arbitrary
        says.append(f"The split above differs from it in {apart} points." if apart else "It is the split above.")
    says += describe_direction(proof.v * X.std(axis=0), data.names)
    return Answer.of([], says, data, labels, X @ proof.v, proof)


@lru_cache(maxsize=8)
def answer_of_many(data: Data, setting: Setting, model: Any) -> Answer:
    """Return the answer of more than two clusters: of a fitted estimator, or of a sentence in place of one."""
    if isinstance(model, str):
        return Answer(sentences=(model,))
    names, asked = names_of_many(data, model), setting.n_clusters
    labels, scores = names[np.asarray(model.labels_)], model.decision_function(data.X)[:, np.argsort(names)]
    proof = certify_clusters(data.X, labels, model.result_, asked, nu=setting.nu, penalty=setting.penalty)
    sizes = np.bincount(labels).tolist()
    found = f"{len(sizes)} clusters, of {list_words(sizes)} points."
    says = [found if len(sizes) > 1 else "One cluster holds all points.", *describe_cost(proof, asked)]
    return Answer.of(model.reservations_, says, data, labels, scores, proof)


def bounds_splits(run: Run) -> bool:
    """Whether the lower bound of a run is one on the cost of every split: that of (8), (11) and (15) is."""
    method = run.solve.method.partition("/")[0]
    return method in SOLVERS or RELAXATIONS[method].bounds_15 is same_value


@lru_cache(maxsize=32)
def round_result(result: Result, rounding: str, data: Data, setting: Setting) -> Array:
    """Return labels that obey what is known; where nothing is, the clusters have the names they had before."""
    return name_as_shown(ROUNDINGS[rounding](result.F, links=setting.links(len(data.X))), data, setting)


def name_as_shown(labels: Array, data: Data, setting: Setting) -> Array:
    """Return labels with the signs of the last answer, unless what is known says which cluster is which."""
    if setting.has_links:
        return labels
    if setting.signs:  # which say which cluster is which
        weights = weights_of(setting.penalty, len(data.names))
        return oriented_direction(array_points(as_data(data.X, warn=False)), labels, weights)[0]
    return name_two(labels, data, setting.nu, setting.penalty)


@lru_cache(maxsize=8)
def names_of_many(data: Data, model: Any) -> Numbers:
    """Return the number by which each cluster of a fitted estimator goes, (K,)."""
    count = len(model.coef_)
    names = names_like_before(np.asarray(model.labels_), count, data)
    return np.arange(count) if names is None else names


def describe_sizes(labels: Array) -> list[str]:
    """Return how many points each of two clusters has."""
    sizes = (int(np.sum(labels < 0)), int(np.sum(labels > 0)))
    return [f"Two clusters, of {sizes[0]} and {sizes[1]} points." if min(sizes) else "One cluster holds all points."]


def describe_search(found: OptimalLabels, proof: LabelCertificate, has_links: bool) -> list[str]:
    """Return what the best split found costs, and by how much another one can be cheaper."""
    split, gap = RESPECTING if has_links else SPLIT, format_upper(found.gap) + say_excluded(found.n_excluded)
    ended = f"{found.nodes} relaxations, {found.seconds:.1f} s"
    verdict = f"Not settled ({ended}): another {split} may be cheaper, but not by more than {gap}."
    if found.status is Status.OPTIMAL:
        verdict = f"Proved: no {split} is cheaper, up to {gap} ({ended})."
    return [f"Cost of this split: {format_ends(found.lower, proof.objective)[1]} (0 is best, 1 is worst).", verdict]


def describe_cost(
    proof: LabelCertificate | ClustersCertificate, k: int = 2, unproved: str = "", *, has_links: bool = False
) -> list[str]:
    """Return what a split, or k clusters, cost and what is proved; `unproved` says why nothing is."""
    lower, cost = format_ends(max(proof.lower, 0.0), proof.objective)
    these, others, are, costs = ("this split", RESPECTING if has_links else SPLIT, "is", "costs")
    if k > 2:
        these, others, are, costs = ("these clusters", f"{k} clusters of these points", "are", "cost")
    least = f"{costs} less than {lower}"
    if proof.gap < CERTAIN:
        least = f"{are} cheaper by more than {format_upper(proof.gap)}"
    return [
        f"Cost of {these}: {cost} (0 is best, 1 is worst).",
        unproved or f"Proved: no {others} {least}{say_excluded(proof.n_excluded)}.",
    ]


def describe_direction(coefficients: Array, names: tuple[str, ...]) -> list[str]:
    """Return the features that count most, by their coefficients per standard deviation."""
    size = np.abs(coefficients)
    used = np.flatnonzero(size > VISIBLE * size.max())
    if not len(used):
        return ["No feature counts: the direction is zero."]
    order = used[np.argsort(-size[used], kind="stable")][:MOST_NAMED]
    terms = ", ".join(f"{names[j]} {coefficients[j]:+.2f}" for j in order)
    more = f", and {len(used) - len(order)} more" if len(used) > len(order) else ""
    return [
        f"Features that count most: {terms}{more}. The numbers are the change of the score when a feature grows by one "
        f"standard deviation, so that they can be compared; {len(used)} of {len(names)} features are used."
    ]


def describe_groups(coefficients: Array, setting: Setting) -> list[str]:
    """Return the groups of columns that are used, the one with the longest coefficients first."""
    lengths = {name: float(np.linalg.norm(coefficients[list(some)])) for name, some in setting.groups}
    used = sorted((name for name in lengths if lengths[name] > 0.0), key=lambda name: -lengths[name])
    if not used:
        return []
    sizes = {name: f"{name} ({len(some)} columns)" if len(some) > 1 else name for name, some in setting.groups}
    more = f", and {len(used) - MOST_NAMED} more" if len(used) > MOST_NAMED else ""
    named = ", ".join(sizes[name] for name in used[:MOST_NAMED])
    return [f"Groups of columns in use, {len(used)} of {len(lengths)}: {named}{more}."]


def describe_agreement(data: Data, labels: Array) -> list[str]:
    """Return how well the clusters agree with the known groups, where there are some."""
    if data.labels is None:
        return []
    index, two = adjusted_rand_index(data.labels, labels), data.y is not None and set(labels.tolist()) <= {-1.0, 1.0}
    says = f"Agreement with the known groups: adjusted Rand index {index:.2f} (1 for the same groups, about 0 by chance"
    if not two:
        return [f"{says})."]
    n, right = len(labels), int(np.sum(labels == data.y))
    right, largest = max(right, n - right), np.unique(data.labels, return_counts=True)[1].max()
    return [f"{says}); {right} of {n} points are in the cluster of their group ({largest} if all were in one)."]


def write_clusters(data: Data, labels: Array, scores: Array) -> bytes:
    """Return CSV: the row in the file, the first being 0, its cluster, its score or scores, and its known group."""
    table = file_table(("cluster", "score", "known_group"), data.rows, number_clusters(labels), scores, data.labels)
    text = StringIO()
    write_rows(text, table.head, table.rows)
    return text.getvalue().encode()
