"""The answer in words: why it may be none, the clusters, what is proved, what counts, and the known groups."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from html import escape
from io import StringIO
from typing import Any, Self

import numpy as np

from diffrac_cvx.app.labels import crosstab_table, file_table, list_words
from diffrac_cvx.app.page.computation import CLUSTERS, Outcome, Run
from diffrac_cvx.app.page.data import Data
from diffrac_cvx.app.page.solve_choice import Setting
from diffrac_cvx.app.page.tables import VISIBLE, list_html, stacked_html
from diffrac_cvx.certificates import certify_clusters, certify_labels
from diffrac_cvx.certificates.certify import ClustersCertificate, LabelCertificate
from diffrac_cvx.comparison.table import Table
from diffrac_cvx.machine.writing import write_rows
from diffrac_cvx.metrics import adjusted_rand_index, crosstab
from diffrac_cvx.points.checks import Array, as_data
from diffrac_cvx.problem.proved_numbers import format_ends, format_upper
from diffrac_cvx.registry import RELAXATIONS, SOLVERS, same_value
from diffrac_cvx.rounding import ROUNDINGS
from diffrac_cvx.rounding.caveats import Reservation, find_reservations

MOST_NAMED = 6  # features
CERTAIN = 1e-3  # a proved gap below which it is said, and not the bound


@dataclass(frozen=True, eq=False)
class Answer:
    """What is said of one split, or of more than two clusters."""

    reservations: tuple[Reservation, ...] = ()  # why it may be no answer
    sentences: tuple[str, ...] = ()  # what was found and proved
    groups: Table | None = None  # how many points of each known group are in each cluster
    clusters: bytes = b""  # as CSV

    @classmethod
    def of(cls, reservations: Iterable[Reservation], says: list[str], data: Data, labels: Array, scores: Array) -> Self:
        """Return what is said of clusters, and how they agree with the known groups."""
        sentences, groups = (*says, *describe_agreement(data, labels)), None
        if data.labels is not None:
            groups = crosstab_table(crosstab(data.labels, number_clusters(labels)), "known group", "in cluster")
        return cls(tuple(reservations), sentences, groups, write_clusters(data, labels, scores))

    @property
    def html(self) -> str:
        """All but the file, as HTML: the reservations come first."""
        doubts = [f"<li><b>{escape(one.says)}</b> {escape(one.remedy)}</li>" for one in self.reservations]
        warning = f'<div class="doubts"><p>This may be no answer:</p><ul>{"".join(doubts)}</ul></div>' if doubts else ""
        groups = "" if self.groups is None else stacked_html(self.groups)
        return f"{warning}{list_html(self.sentences)}{groups}"


def find_answer(outcome: Outcome, run_name: str, rounding: str) -> Answer | None:
    """Return the answer of one of the runs, by default of the first that has a result; None where there is none."""
    if outcome.setting.n_clusters > 2:  # found beside the runs, and the same for all of them
        model = outcome.extras.get(CLUSTERS)
        return None if model is None else answer_of_many(outcome.data, outcome.setting, model)
    run = outcome.run_called(run_name)
    return None if run is None else make_answer(outcome.data, outcome.setting, run, rounding)


@lru_cache(maxsize=8)
def make_answer(data: Data, setting: Setting, run: Run, rounding: str) -> Answer:
    """Return the answer of a run that has a result; the same objects give the same one."""
    assert run.result is not None
    X, result = as_data(data.X, warn=False), run.result
    labels = name_by_truth(ROUNDINGS[rounding](result.F), data.y)
    bounds = bounds_splits(run)
    # The bounds of another problem say nothing about this one.
    judged = result if bounds else replace(result, lower=-np.inf, upper=np.inf)
    parameters: dict[str, Any] = {"nu": setting.nu, "penalty": setting.penalty}
    proof = certify_labels(X, labels, judged.lower if bounds else 0.0, **parameters)
    unproved = "" if bounds else f"{run.name} proves nothing about this split: choose a solution of (15) for that."
    sizes = (int(np.sum(labels < 0)), int(np.sum(labels > 0)))
    says = [f"Two clusters, of {sizes[0]} and {sizes[1]} points." if min(sizes) else "One cluster holds all points."]
    says += [*describe_cost(proof, unproved=unproved), *describe_direction(proof.v * X.std(axis=0), data.names)]
    reservations = find_reservations(X, labels, judged, **parameters)
    return Answer.of(reservations, says, data, labels, X @ proof.v)


@lru_cache(maxsize=8)
def answer_of_many(data: Data, setting: Setting, model: Any) -> Answer:
    """Return the answer of more than two clusters: of a fitted estimator, or of a sentence in place of one."""
    if isinstance(model, str):
        return Answer(sentences=(model,))
    labels, asked = np.asarray(model.labels_), setting.n_clusters
    proof = certify_clusters(data.X, labels, model.result_, asked, nu=setting.nu, penalty=setting.penalty)
    sizes = np.bincount(labels).tolist()
    found = f"{len(sizes)} clusters, of {list_words(sizes)} points."
    says = [found if len(sizes) > 1 else "One cluster holds all points.", *describe_cost(proof, asked)]
    return Answer.of(model.reservations_, says, data, labels, model.decision_function(data.X))


def bounds_splits(run: Run) -> bool:
    """Whether the lower bound of a run is one on the cost of every split: that of (8), (11) and (15) is."""
    method = run.solve.method.partition("/")[0]
    return method in SOLVERS or RELAXATIONS[method].bounds_15 is same_value


def name_by_truth(labels: Array, y: Array | None) -> Array:
    """Return labels whose signs agree best with the true ones: which of the clusters is +1 is arbitrary."""
    return -labels if y is not None and y @ labels < 0 else labels


def describe_cost(proof: LabelCertificate | ClustersCertificate, k: int = 2, unproved: str = "") -> list[str]:
    """Return what a split, or k clusters, cost and what is proved; `unproved` says why nothing is."""
    lower, cost = format_ends(max(proof.lower, 0.0), proof.objective)
    these, others, are, costs = ("this split", "split", "is", "costs")
    if k > 2:
        these, others, are, costs = ("these clusters", f"{k} clusters", "are", "cost")
    least = f"{costs} less than {lower}"
    if proof.gap < CERTAIN:
        least = f"{are} cheaper by more than {format_upper(proof.gap)}"
    return [
        f"Cost of {these}: {cost} (0 is best, 1 is worst).",
        unproved or f"Proved: no {others} of these points {least}.",
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


def describe_agreement(data: Data, labels: Array) -> list[str]:
    """Return how well the clusters agree with the known groups, where there are some."""
    if data.labels is None:
        return []
    index, two = adjusted_rand_index(data.labels, labels), data.y is not None and set(labels.tolist()) <= {-1.0, 1.0}
    says = f"Agreement with the known groups: adjusted Rand index {index:.2f} (1 for the same groups, about 0 by chance"
    if not two:
        return [f"{says})."]
    n, right, largest = len(labels), int(np.sum(labels == data.y)), np.unique(data.labels, return_counts=True)[1].max()
    return [f"{says}); {right} of {n} points are in the cluster of their group ({largest} if all were in one)."]


def number_clusters(labels: Array) -> Array:
    """Return clusters as whole numbers from 0 on: those that are, as they are, and -1.0 and +1.0 as 0 and 1."""
    return labels if labels.dtype.kind == "i" else (labels > 0).astype(np.int64)


def write_clusters(data: Data, labels: Array, scores: Array) -> bytes:
    """Return CSV: the row in the file, the first being 0, its cluster, its score or scores, and its known group."""
    table = file_table(("cluster", "score", "known_group"), data.rows, number_clusters(labels), scores, data.labels)
    text = StringIO()
    write_rows(text, table.head, table.rows)
    return text.getvalue().encode()
