"""Rendering of an answer: sentences, for the terminal and the page, and a self-contained HTML report."""

import base64
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from importlib import metadata
from typing import Any, NamedTuple

import numpy as np

from diffrac_cvx.app.answer import STATUS_WORDS, Answer
from diffrac_cvx.app.cli.options import flags_of
from diffrac_cvx.comparison.rendered_table import ReportTable, format_cell
from diffrac_cvx.datasets.tables import Table
from diffrac_cvx.metrics import ContingencyMatrix
from diffrac_cvx.points.checks import Array
from diffrac_cvx.problem.formatting import format_gap, format_lower, format_upper
from diffrac_cvx.problem.result import excluded_clause

MAX_NAMED = 8  # features, or feature groups, in a sentence
MAX_FEATURES = 30  # rows of the table of features
WEAK_FRACTION = 1e-2  # of the cost: a lower bound up to this one is called weak
MIN_CERTIFIED_GAP = 1e-4  # up to which clusters are called optimal, whatever the tolerance
PARAMETER = r"\((comment|drop|na_values|skip_footer|skip_rows)\)$"  # of `read_table`, at the end of a note
CUT_AT_GAP = (
    "These clusters are the two sides of the gap, not the split with the weights given, which does not show it; "
    "--no-unequal keeps that split."
)
WITH_UNIT = r"(.*\S)\s*[(\[](?!\d+[)\]])([^()\[\]]{1,20})[)\]]"  # name of a feature with its unit, no number
MIN_DRAWN = 5  # eigenvalues, from which on they are drawn
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"  # no scripts, no external resources


class Figure(NamedTuple):
    """Base64-encoded PNG figure with its caption."""

    encoded: str
    caption: str


def warning_sentences(answer: Answer) -> list[str]:
    """Return the warnings with their remedies, and whether the solver did not converge."""
    status = STATUS_WORDS.get(answer.status, str(answer.status))
    if not answer.finished and answer.upper_bound >= 1.0:
        return [f"No clusters were found: {status}."]
    lines = [str(diagnostic) for diagnostic in answer.diagnostics]
    return lines if answer.finished else [*lines, f"Not converged: {status}; the bounds are valid."]


def summary_sentences(answer: Answer) -> list[str]:
    """Return structure test, sizes, cost, bounds and features of the clusters, and agreement with known classes."""
    n, d, weights = len(answer.clusters), len(answer.names), answer.parameters
    tested = "" if answer.structure is None else answer.structure.message(answer.names)
    if any(tested in str(diagnostic) for diagnostic in answer.diagnostics):
        tested = ""
    given = ", ".join(f"{name} {np.max(weights[name]):.6g}" for name in ("nu", "lambda", "ridge"))
    present = join_words(size for size in answer.sizes if size)
    names = [f"cluster {k} is {name}" for k, name in enumerate(answer.class_names) if name is not None]
    sentences = [
        tested,
        CUT_AT_GAP if answer.is_cut_at_gap else "",
        f"{n} points, {'one feature' if d == 1 else f'{d} features'}; {given}; {answer.seconds:.2f} s.",
        f"Clusters of {present} points." if max(answer.sizes) < n else f"One cluster of {n} points.",
        f"From the labelled rows: {' and '.join(names)}." if names else "",
        bound_sentence(answer),
    ]
    if answer.rounded_objective is not None and answer.rounded_agreement != 1.0:
        cost, index = format_upper(answer.rounded_objective), f"{answer.rounded_agreement:.2f}"
        sentences.append(f"Without the search the cost is {cost} (adjusted Rand index {index} with these clusters).")
    if answer.selected_features is not None and not answer.diagnostics:
        sentences.append(selection_sentence(answer, answer.selected_features))
    if answer.feature_groups is not None:
        used = sorted((one for one in answer.feature_groups.items() if one[1] > 0.0), key=lambda group: -group[1])
        named = shorten(name for name, _ in used)
        sentences.append(f"Selected feature groups, {len(used)} of {len(answer.feature_groups)}: {named}.")
    largest = {j: max(answer.scaled_coefficients[:, j], key=abs) for j in answer.order}
    features = shorten(f"{answer.names[j]} {value:+.3g}" for j, value in largest.items() if value)
    sentences.append(f"Features by importance (coefficient per standard deviation): {features}.")
    if doubtful := [
        answer.suspects[answer.names[j]] for j in largest if largest[j] and answer.names[j] in answer.suspects
    ]:
        sentences.append(f"Check these features first: {shorten(doubtful)}.")
    if answer.contingency_matrix is not None:
        error = answer.clustering_error
        sentences.append(
            f"Agreement with the {len(answer.contingency_matrix.true)} known classes: adjusted Rand index "
            f"{answer.adjusted_rand_score:.3f} (1: identical, about 0: chance level)"
            f"{'' if error is None else f', clustering error {error:.3f} (0: identical)'}."
        )
    return [sentence for sentence in sentences if sentence]


def bound_sentence(answer: Answer) -> str:
    """Return the cost of the clusters and the certified bound on all others."""
    cost, lower, excluded = answer.objective, answer.lower_bound, excluded_clause(answer.n_excluded)
    if not np.isfinite(cost):
        return "The cost of the clusters is not available: values left the range of double precision."
    what = "split" if len(answer.sizes) == 2 else "partition"
    others = f"{what} that satisfies the constraints" if answer.has_constraints else f"{what} of these points"
    text = f"Cost of this {what}: {format_upper(cost)} (0 best, 1 worst)."
    if cost - lower <= max(answer.parameters["tol"], MIN_CERTIFIED_GAP):
        return f"{text} Certified optimal: no {others} costs less by more than {format_gap(lower, cost)}{excluded}."
    weak = "The lower bound is weak" if lower <= WEAK_FRACTION * cost else "Certified"
    return f"{text} {weak}: no {others} costs less than {format_lower(lower)}{excluded}."


def selection_sentence(answer: Answer, selected: tuple[str, ...]) -> str:
    """Return the number of features that the l1 penalty selected, and a bound on the gain of any others."""
    if len(selected) == len(answer.names):
        return "No feature is excluded at this lambda; a larger lambda excludes some."
    are, gap = "is" if len(selected) == 1 else "are", format_upper(answer.label_gap)
    others = f"no other set lowers the objective by more than {gap}{excluded_clause(answer.n_excluded)}"
    return f"{len(selected)} of {len(answer.names)} features {are} selected; {others}. All other coefficients are 0."


def join_words(values: Iterable[object]) -> str:
    """Return values as text, such as "1, 2 and 3"."""
    *first, last = map(str, values)
    return f"{', '.join(first)} and {last}" if first else last


def shorten(names: Iterable[str]) -> str:
    """Return the first names, separated by commas."""
    listed = list(names)
    return ", ".join(listed[:MAX_NAMED] + ["..."] * (len(listed) > MAX_NAMED)) or "none"


def contingency_table(counts: ContingencyMatrix) -> ReportTable:
    """Return the number of points by known class (rows) and cluster (columns)."""
    head = ("known class", *(f"cluster {name}" for name in counts.found))
    return ReportTable(
        head, tuple((name, *line) for name, line in zip(counts.true, counts.counts.tolist(), strict=True))
    )


def feature_table(answer: Answer) -> ReportTable:
    """Return the most important features with their coefficients and standard deviations."""
    shown, K = answer.order[:MAX_FEATURES], len(answer.intercept)
    columns = {"feature": [answer.names[j] for j in shown]}
    columns |= {
        "per standard deviation" + f" ({k})" * (K > 1): answer.scaled_coefficients[k, shown].tolist() for k in range(K)
    }
    columns |= {"in units of the table": answer.coefficients[0, shown].tolist()} if K == 1 else {}
    columns |= {"standard deviation": answer.standard_deviations[shown].tolist()}
    return ReportTable(tuple(columns), tuple(zip(*columns.values(), strict=True)))


def means_table(answer: Answer, most: int = MAX_FEATURES) -> ReportTable:
    """Return the means of the features in each cluster and overall, the ``most`` separated ones first.

    The unit is the end of a name in brackets, as in "height (cm)".
    """
    shown, K = answer.by_separation[:most], len(answer.sizes)
    parts = [re.fullmatch(WITH_UNIT, answer.names[j]) for j in shown]
    columns: dict[str, list[Any]] = {
        "feature": [answer.names[j] if part is None else part[1] for j, part in zip(shown, parts, strict=True)]
    }
    columns |= {"unit": [None if part is None else part[2] for part in parts]} if any(parts) else {}
    columns |= {f"cluster {k}": answer.cluster_means[k, shown].tolist() for k in range(K)}
    columns |= {"overall": answer.means[shown].tolist(), "separation": answer.separations[shown].tolist()}
    return ReportTable(tuple(columns), tuple(zip(*columns.values(), strict=True)))


def label_table(
    table: Table,
    labels: Array,
    decisions: Array,
    *,
    title: str = "cluster",
    ids: Mapping[str, list[str]] | None = None,
) -> ReportTable:
    """Return the file of --out: IDs, row of the file, cluster, decision values, margin, known class, name.

    The margin, for more than two clusters, is the largest decision value minus the second.  ``title`` is that of the
    column of labels (n,); several labels (n, k) have the titles label_1, label_2, ...
    """
    n = len(table.rows)
    labels, decisions = labels.reshape(n, -1), decisions.reshape(n, -1)
    k, K = labels.shape[1], decisions.shape[1]
    columns: dict[str, Any] = {"row": table.rows.tolist()}
    columns |= {f"label_{j + 1}" if k > 1 else title: labels[:, j].tolist() for j in range(k)}
    values = decisions if k == K else np.column_stack([decisions, np.ptp(np.sort(decisions)[:, -2:], axis=1)])
    titles = [f"decision_{j}" if K > 1 else "decision" for j in range(K)] + ["margin"] * (k < K)
    columns |= {title: [float(f"{value:.9g}") for value in values[:, j]] for j, title in enumerate(titles)}
    columns |= {} if table.labels is None else {"class": table.labels.tolist()}
    columns |= {} if table.points is None else {"name": table.points.tolist()}
    columns = {f"{name} (id)" if name in columns else name: texts for name, texts in (ids or {}).items()} | columns
    return ReportTable(tuple(columns), tuple(zip(*columns.values(), strict=True)))


def terminal_lines(answer: Answer) -> list[str]:
    """Return the sentences on an answer, warnings first."""
    return [
        *(f"WARNING: {warning}" for warning in warning_sentences(answer)),
        *note_lines(answer.notes),
        *summary_sentences(answer),
    ]


def note_lines(notes: Iterable[str]) -> list[str]:
    """Return notes for the terminal, where the parameter at the end is an option."""
    return [f"Note: {re.sub(PARAMETER, lambda found: f'({flags_of(found[1])[0]})', note)}." for note in notes]


def html_report(answer: Answer, figures: list[Figure], file: str) -> str:
    """Return an answer as a self-contained HTML page."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError:
        raise ImportError("reports need the package jinja2. Run: pip install 'diffrac-cvx[app]'.") from None
    pages = Environment(loader=PackageLoader("diffrac_cvx.app"), autoescape=True, undefined=StrictUndefined)
    pages.trim_blocks = pages.lstrip_blocks = True
    pages.filters["cell"] = format_cell
    counts = answer.contingency_matrix
    date = datetime.now().astimezone().strftime("%d %B %Y, %H:%M")
    return pages.get_template("report.html").render(
        policy=POLICY, version=metadata.version("diffrac-cvx"), date=date, file=file, answer=answer, figures=figures,
        warnings=warning_sentences(answer), summary=summary_sentences(answer), features=feature_table(answer),
        means=means_table(answer),
        agreement=None if counts is None else contingency_table(counts),
    )  # fmt: skip


def figures_of(model: Any, table: Table) -> Iterator[Figure]:
    """Yield the figures of a fitted estimator: scores or decision functions, coefficients, bounds and spectrum."""
    from diffrac_cvx.plotting import BracketDisplay, DirectionDisplay, ProjectionDisplay, SpectrumDisplay
    from diffrac_cvx.plotting.solution import MIN_EIGENVALUE

    K = len(np.atleast_2d(model.coef_))
    groupings = [(model.labels_, "cluster"), *([] if table.labels is None else [(table.labels, "class")])]
    scores = held_out_scores(model)
    for k in range(K):
        which = "" if K == 1 else f" of cluster {k}"
        for labels, by in groupings:
            if scores is not None:
                display = ProjectionDisplay(scores, labels, threshold_of(scores, model), "held-out score", kind=by)
                yield encode_figure(display, f"{describe_held_out(scores, model)} Number of points by {by}.")
                continue
            display = ProjectionDisplay.from_estimator(model, table.X, labels, output=k, kind=by)
            caption = f"Decision function{which}: number of points by {by}, for the points to which it was fitted."
            yield encode_figure(display, caption)
        direction = DirectionDisplay.from_estimator(model, feature_names=list(table.names), output=k)
        yield encode_figure(direction, f"Coefficients{which} per standard deviation.")
    if len(model.result_.history) > 1:
        bounds = BracketDisplay.from_result(model.result_)
        yield encode_figure(bounds, "Certified bounds on the optimum of the relaxation, by iteration.")
    spectrum = SpectrumDisplay.from_result(model.result_)
    if np.sum(spectrum.labels > MIN_EIGENVALUE) >= MIN_DRAWN:
        words = "Normalised eigenvalues of the solution: if only the first is large, the relaxation yields one split."
        yield encode_figure(spectrum, words)


def held_out_scores(model: Any) -> Array | None:
    """Return the scores (n,) of the structure test, larger in cluster 1; None unless they are of this split.

    They are of this split if there are two clusters, the test used all rows, and its weights are the ones given.
    """
    test, labels = getattr(model, "structure_", None), np.asarray(model.labels_)
    if test is None or len(np.unique(labels)) != 2 or len(np.atleast_2d(model.coef_)) > 1:
        return None
    if not test.has_given_weights or len(test.scores) != len(labels) or not np.ptp(test.scores):
        return None
    is_reversed = test.scores[labels == 1].mean() < test.scores[labels == 0].mean()
    return np.asarray(-test.scores if is_reversed else test.scores)


def threshold_of(scores: Array, model: Any) -> float:
    """Return the threshold that leaves as many scores below as there are points in cluster 0."""
    size, ordered = int(np.sum(np.asarray(model.labels_) == 0)), np.sort(scores)
    return float((ordered[size - 1] + ordered[size]) / 2.0)


def describe_held_out(scores: Array, model: Any) -> str:
    """Return what the held-out scores are, and on how many points they disagree with the clusters."""
    moved = int(np.sum((scores > threshold_of(scores, model)) != (np.asarray(model.labels_) == 1)))
    return (
        "Held-out scores: each point is scored along directions that were fitted without it. With a threshold that "
        f"leaves as many points on each side as the clusters have, {moved} of {len(scores)} are on the other side."
    )


def encode_figure(display: Any, caption: str) -> Figure:
    """Return the encoded figure of a display."""
    from matplotlib import figure as mpl  # without pyplot, which takes half a second and may need a screen

    figure = mpl.Figure(layout="constrained")
    display.plot(figure)
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=150, metadata={"Software": None})
    return Figure(base64.b64encode(file.getvalue()).decode(), caption)
