"""Views of the page: tables, heat maps, sentences and Python code, as text or escaped HTML."""

import warnings
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from io import BytesIO, StringIO
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from diffrac_cvx.app.answer import answer_of
from diffrac_cvx.app.page.run import SEED, Request, Run, about
from diffrac_cvx.app.render import contingency_table, label_table, summary_sentences, warning_sentences
from diffrac_cvx.certificates import certify_clusters
from diffrac_cvx.comparison import Comparison, ReportTable
from diffrac_cvx.comparison.disagreements import describe_best_labels, lower_bound_of
from diffrac_cvx.datasets.tables import Table
from diffrac_cvx.estimators import DiffracClustering
from diffrac_cvx.machine.writing import write_rows
from diffrac_cvx.metrics import adjusted_rand_score, contingency_matrix
from diffrac_cvx.plotting.canvas import pyplot, style_of
from diffrac_cvx.points.factors import Factor, dense, diagonal
from diffrac_cvx.problem.formatting import format_lower, format_upper, formatted_upper
from diffrac_cvx.problem.result import Result, Status
from diffrac_cvx.rounding import kmeans_rows

N_INIT = 3  # initialisations of k-means, for more than two clusters
MAX_PIXELS = 240  # rows of a heat map of Y
MAX_FEATURES = 60  # rows of a heat map of V
MAX_EIGENVALUES = 8
MIN_PRINTED_WIDTH = 1e-5  # narrower bounds are printed as if their gap were this
LEGEND = (
    "Y = FF' is red for pairs of points in one cluster and blue for pairs in different ones. Its rows are sorted by "
    "reference class, if known, then by cluster; the bands on the left show class and cluster."
)
TITLED_CELL = '<td data-title="{}">{}</td>'
BOUNDS_HOLD = "The bounds are valid. Increase the time limit, or compare on a sample, to tighten them."
LIMITS = (Status.TIME_LIMIT, Status.USER_LIMIT)


def labels_of(run: Run) -> dict[str, np.ndarray]:
    """Return the clusters 0, 1, ... of each method: the labels of `compare`, or k-means of the rows of F for K > 2.

    They are numbered as the reference classes, or as the clusters of the first method, with which most points agree.
    """
    table, comparison, n_clusters = run.shown, run.comparison, run.request.setting.n_clusters
    if comparison is None:
        return {}
    if n_clusters == 2:
        found = {name: (labels > 0).astype(int) for name, labels in comparison.labels.items()}
    else:
        found = {
            name: kmeans_rows(result.F, n_clusters, n_init=N_INIT, rng=0) for name, result in comparison.results.items()
        }
    first = next(iter(found.values()), np.zeros(0)) if table.labels is None else class_indices(table)
    return {name: numbered_like(first, labels, n_clusters) for name, labels in found.items()}


def class_indices(table: Table) -> np.ndarray:
    """Return the indices of the reference classes, 0 if there are none."""
    return np.zeros(len(table.X), int) if table.labels is None else np.unique(table.labels, return_inverse=True)[1]


def numbered_like(reference: np.ndarray, labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return clusters, renumbered such that as many points as possible have the number of their reference."""
    size = max(n_clusters, int(reference.max(initial=0)) + 1)
    counts = np.zeros((size, size))
    np.add.at(counts, (labels, reference), 1.0)
    numbers = linear_sum_assignment(-counts)[1][:n_clusters]
    return np.asarray(np.unique(numbers, return_inverse=True)[1][labels])


def comparison_table(run: Run, comparison: Comparison, labels: Mapping[str, np.ndarray]) -> ReportTable:
    """Return values, certified bounds and rank of each method, and objective and error of its clusters."""
    setting, table = run.request.setting, run.shown
    K = setting.n_clusters
    bounds = [lower_bound_of(one) for one in comparison.method_results.values()]
    lower = -np.inf if comparison.disagreements else max(bounds, default=-np.inf)
    records = []
    for row in comparison.rows:
        name, result = row["method"], comparison.results.get(row["method"])
        record: dict[str, Any] = {"method": f"{row['problem']} {name}", "rows": row.get("rows")}
        if result is not None:
            record["value"], record["certified bounds"] = format_value(result)
            record["gap"] = row["gap"]
            record |= {"excluded columns": row["excluded"], "rank of Y": row["rank"]}
            record["eigenvalue ratio"] = row["eigenvalue_ratio"]
        if name in labels:
            record["clusters"] = " + ".join(map(str, np.bincount(labels[name], minlength=K).tolist()))
        if name in labels and K == 2:
            objective = comparison.method_results[name].objective
            record |= {"objective of labels": formatted_upper(objective), "optimality gap": row["label_gap"]}
        elif name in labels:
            proved = max(lower, 0.0)
            with warnings.catch_warnings(action="ignore", category=UserWarning):
                proof = certify_clusters(
                    run.scaled, labels[name], proved, K, nu=setting.nu, penalty=setting.penalty
                )  # fmt: skip
            record["objective of labels"] = formatted_upper(proof.objective)
            record["optimality gap"] = formatted_upper(proof.gap) if np.isfinite(lower) else None
        if name in labels and K == len(table.classes) == 2:
            record["clustering error"] = row["error"]
        elif name in labels and table.labels is not None:
            record["adjusted Rand index"] = adjusted_rand_score(table.labels, labels[name])
        records.append(record | {"seconds": f"{row['seconds']:.2f}"})
    return ReportTable.from_records(records).without_empty_columns()


def format_value(result: Result) -> tuple[str, str]:
    """Return the value of a result, rounded up, and its certified bounds, with about six decimals."""
    width = max(result.gap, MIN_PRINTED_WIDTH)
    lower, upper = format_lower(result.lower, width), format_upper(result.upper, width)
    return format_upper(result.value, width), f"[{lower}, {upper}]"


def describe_limits(comparison: Comparison, seconds: float) -> list[str]:
    """Return which methods a limit stopped as sentences; CVXPY does not report whether it was a time limit."""
    reasons = (f"The time limit, {seconds:g} s for all methods,", "A limit of iterations or time")
    stopped = [[name for name, one in comparison.results.items() if one.status is limit] for limit in LIMITS]
    return [
        f"{reason} stopped {', '.join(names)}. {BOUNDS_HOLD}"
        for reason, names in zip(reasons, stopped, strict=True)
        if names
    ]


def describe_agreement(comparison: Comparison) -> list[str]:
    """Return the disagreements beyond the certified bounds as sentences, or that there is none."""
    if comparison.disagreements:
        return [f"Disagreement: {sentence}." for sentence in comparison.disagreements]
    count = len(comparison.results)
    return [f"No disagreement beyond the certified bounds of {count} methods."] if count > 1 else []


def describe_others(comparison: Comparison, reasons: dict[str, str], n_clusters: int) -> list[str]:
    """Return failures, other statuses, notes, and the methods omitted because of their estimated time."""
    usual = (*LIMITS, Status.OPTIMAL, Status.CLOSED_FORM)
    ended = [f"{name}: {one.status}" for name, one in comparison.results.items() if one.status not in usual]
    failed = [f"{name} failed: {one.reason}" for name, one in comparison.method_results.items() if one.reason]
    two_way = [] if n_clusters == 2 else list(describe_best_labels(comparison.method_results))
    notes = [note for note in comparison.notes if note not in two_way]
    by_reason = {reason: [name for name in reasons if reasons[name] == reason] for reason in reasons.values()}
    remedy = "Increase the time limit, or compare on a sample"
    omitted = [f"omitted: {', '.join(names)} ({reason}). {remedy}" for reason, names in by_reason.items()]
    return [f"{text}." for text in (*failed, *ended, *notes, *omitted)]


def row_order(table: Table, labels: np.ndarray) -> np.ndarray:
    """Return at most MAX_PIXELS rows, evenly spaced after sorting by reference class, then by cluster."""
    order = np.lexsort((labels, class_indices(table)))
    return np.asarray(order[np.linspace(0, len(order) - 1, min(len(order), MAX_PIXELS)).round().astype(int)])


def heat_map(values: np.ndarray, largest: float, bands: Sequence[np.ndarray], alt: str) -> str:
    """Return a matrix with entries from -largest (blue) to largest (red), after coloured bands, as an image."""
    colors = pyplot().get_cmap("RdBu_r")(0.5 + 0.5 * values / (largest or 1.0))
    width = max(len(values) // 25, 1)
    parts = [np.repeat(to_colors(band)[:, None], width, axis=1) for band in bands]
    gap = [np.ones((len(values), max(width // 3, 1), 4))] if bands else []
    file = BytesIO()
    pyplot().imsave(file, np.concatenate([*parts, *gap, colors], axis=1), format="png")
    return f'<img alt="{escape(alt)}" src="data:image/png;base64,{b64encode(file.getvalue()).decode()}">'


def to_colors(indices: np.ndarray) -> np.ndarray:
    """Return the colours of clusters or classes, (n, 4), those of the other plots."""
    kinds = int(indices.max(initial=0)) + 1
    hexes = [style_of(k).color.lstrip("#") for k in range(kinds)]
    palette = np.array([[int(code[j : j + 2], 16) / 255 for j in (0, 2, 4)] + [1.0] for code in hexes])
    return np.asarray(palette[indices])


def label_map(table: Table, result: Result, labels: np.ndarray, rows: np.ndarray) -> str:
    """Return Y = FF' on these rows as an image, with reference classes and clusters as bands on its left."""
    F, bands = result.F[rows], [labels[rows]]
    if table.labels is not None:
        bands.insert(0, class_indices(table)[rows])
    return heat_map(F @ F.T, 1.0, bands, "heat map of Y")


def direction_map(result: Result, names: Sequence[str]) -> tuple[str, str]:
    """Return V on the features with the largest diagonal entries as an image, and these features in words."""
    if result.G is None:
        return "", ""
    G: Factor = result.G[: len(names)]
    entries = diagonal(G)
    largest = np.argsort(-entries, kind="stable")[:MAX_FEATURES]
    shown = dense(G[np.sort(largest)])
    V = shown @ shown.T
    named = [f"{names[j]} {entries[j]:.2g}" for j in largest[:3] if entries[j] > 0.0]
    return heat_map(V, float(np.abs(V).max(initial=0.0)), (), "heat map of V"), ", ".join(named) or "V = 0"


def spectrum_bars(result: Result) -> tuple[str, str]:
    """Return the leading eigenvalues of Y/n, whose sum is 1, as bars, and the first three as text."""
    values = np.linalg.svd(result.F, compute_uv=False)[:MAX_EIGENVALUES] ** 2 / len(result.F)
    bars = "".join(f'<i style="height:{100 * value / (values.max() or 1.0):.1f}%"></i>' for value in values)
    return f'<div class="bars">{bars}</div>', ", ".join(f"{value:.3f}" for value in values[:3])


def solution_cards(table: Table, comparison: Comparison, labels: Mapping[str, np.ndarray]) -> str:
    """Return Y, V and the spectrum of each solution side by side; all maps have the same rows in the same order."""
    if not comparison.results:
        return ""
    n, d = table.X.shape
    rows = row_order(table, labels[next(iter(comparison.results))])
    cards = []
    for name, result in comparison.results.items():
        of_V, features = direction_map(result, table.names)
        bars, eigenvalues = spectrum_bars(result)
        Y = figure(label_map(table, result, labels[name], rows), f"Y = FF', {count_shown(len(rows), n, 'points')}")
        about_V = f"V, {count_shown(min(d, MAX_FEATURES), d, 'features')}. Largest diagonal entries: {features}"
        V = figure(of_V, about_V) if of_V else figure("", "This relaxation has no V.")
        head = f"<h3>{escape(comparison.method_results[name].problem)} <span>{escape(name)}</span></h3>"
        spectrum = figure(bars, f"Eigenvalues of Y/n: {eigenvalues}")
        cards.append(f'<div class="card">{head}<div class="maps">{Y}<div>{V}{spectrum}</div></div></div>')
    return f'<div class="cards">{"".join(cards)}</div>'


def figure(content: str, caption: str) -> str:
    """Return a figure with its caption."""
    return f"<figure>{content}<figcaption>{escape(caption)}</figcaption></figure>"


def count_shown(shown: int, total: int, what: str) -> str:
    """Return the number of points or features of a heat map."""
    return f"{total} {what}" if shown == total else f"{shown} of {total} {what}"


def describe_answer(table: Table, model: DiffracClustering) -> tuple[list[str], list[str]]:
    """Return the warnings about the clusters of a table, and objective, bounds and features as sentences."""
    answer = answer_of(model, table, seconds=model.result_.seconds, loading="")
    return warning_sentences(answer), summary_sentences(answer)


def answer_table(table: Table, model: DiffracClustering) -> ReportTable:
    """Return the sizes of the clusters, by reference class if the classes are known."""
    sizes = np.bincount(model.labels_, minlength=model.n_clusters).tolist()
    if table.labels is None:
        return ReportTable(("cluster", "points"), tuple(enumerate(sizes)))
    return contingency_table(contingency_matrix(table.labels, model.labels_))


def labels_csv(table: Table, model: DiffracClustering) -> bytes:
    """Return the CSV file of the program's --out: row, label, decision values and reference label."""
    scores = model.decision_function(table.X)
    return csv_of(label_table(table, model.labels_, scores))


def comparison_csv(comparison: Comparison) -> bytes:
    """Return the CSV file of the rows of a comparison, as ``diffrac-cvx compare --out`` writes it."""
    return csv_of(ReportTable.from_records(comparison.rows))


def csv_of(content: ReportTable) -> bytes:
    """Return a table as a CSV file."""
    text = StringIO()
    write_rows(text, content.header, content.rows)
    return text.getvalue().encode()


def python_code(request: Request) -> str:
    """Return a script that repeats the comparison and the clusters of the page."""
    setting, methods = request.setting, request.methods
    parameters = f"nu={setting.nu!r}, lam={setting.lam!r}, ridge={setting.ridge!r}, tol={setting.tol!r}"
    scaling = 'dc.datasets.SCALINGS["standardize"](X)' if setting.standardize else "X"
    alpha = "" if setting.alpha is None else f", alpha={setting.alpha!r}"
    sample = "" if request.sample is None else f", sample={request.sample!r}"
    compared = [
        "comparison = dc.compare(",
        f"    {scaling}, y, methods={methods!r},",
        f"    {parameters}{alpha}, time_limit={setting.time_limit!r}, rng={SEED}{sample},",
        ")",
        "print(comparison)",
        "F = {name: result.F for name, result in comparison.results.items()}  # Y = F @ F.T; result.V is V",
    ]
    if setting.n_clusters > 2:
        rounded = f"dc.rounding.kmeans_rows(F[name], {setting.n_clusters}, n_init={N_INIT}, rng=0)"
        compared.append(f"labels = {{name: {rounded} for name in F}}")
    clustered = [
        "model = dc.DiffracClustering(",
        f"    n_clusters={setting.n_clusters!r}, {parameters},",
        f"    standardize={setting.standardize!r}, time_limit={setting.cluster_seconds!r}, random_state={SEED},",
        ").fit(X)",
        "print(model.labels_, model.lower_bound_, model.label_gap_)",
    ]
    head = ["import diffrac_cvx as dc", "", request.data.code, ""]
    return "\n".join([*head, *(compared if methods else []), *clustered])


def describe_costs(run: Run) -> str:
    """Return why the clusters of the table can cost less than the labels of the comparison, as one sentence."""
    of_all = "" if run.comparison is None or run.comparison.sample is None else ", of all rows,"
    K = run.request.setting.n_clusters
    improved = "refit the directions" if K > 2 else "alternate between labels and direction"
    return (
        "Why costs (objective values) can be lower here than above: the table rounds each relaxation once, and the "
        f"clusters here{of_all} start from such labels and {improved}."
    )


def describe_state(request: Request | None, run: Run | None, shown: Run | None) -> str:
    """Return what the buttons would do, or what runs, and whether the controls differ from the results, as HTML."""
    if request is None:
        return "" if shown is None else sentences_html(["The results are those of the earlier table."], "changed")
    if run is not None and run is not shown:
        return sentences_html(["Comparing."], "note")
    if shown is not None and request.differs_from(shown.request):
        changed = "The settings have changed. The results are those of the earlier ones."
        return sentences_html([f"{changed} {describe_plan(request)}"], "changed")
    return sentences_html([describe_plan(request)], "note")


def describe_plan(request: Request) -> str:
    """Return the number of ticked methods that support the penalty, and their estimated seconds."""
    count = len(request.supported)
    if not count:
        return "Tick a relaxation that supports the penalty, and a solver."
    return f"{count} method{'s' * (count > 1)}, {about(max(request.seconds, 1.0))}."


def progress_html(lines: Sequence[str]) -> str:
    """Return the progress of the methods as a list."""
    return f'<ul class="progress">{"".join(f"<li>{escape(line)}</li>" for line in lines)}</ul>'


def comparison_html(run: Run, labels: Mapping[str, np.ndarray]) -> str:
    """Return the table of a comparison, with sentences on limits, agreement, and what was omitted."""
    comparison, request = run.comparison, run.request
    if comparison is None:
        return ""
    agreement = "alarm" if comparison.disagreements else "fine"
    return (
        sentences_html(describe_limits(comparison, request.setting.time_limit), "alarm")
        + sentences_html(describe_agreement(comparison), agreement)
        + table_html(comparison_table(run, comparison, labels))
        + sentences_html(describe_others(comparison, request.omitted, request.setting.n_clusters), "note")
    )


def sentences_html(sentences: Iterable[str], kind: str) -> str:
    """Return sentences as paragraphs of a kind: "alarm", "fine" or "note"."""
    return "".join(f'<p class="{kind}">{escape(sentence)}</p>' for sentence in sentences)


def table_html(table: ReportTable) -> str:
    """Return a table as HTML; on a narrow page each row is a list, with the titles beside the cells."""
    head, *body = ([escape(entry) for entry in line] for line in table.lines())
    heads = "".join(f'<th scope="col">{entry}</th>' for entry in head)
    rows = "".join(f"<tr>{''.join(map(TITLED_CELL.format, head, line))}</tr>" for line in body)
    return f'<table class="stacked"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>'
