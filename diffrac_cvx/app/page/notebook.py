"""Interactive page as a marimo notebook: ``diffrac-cvx explore`` or ``make explore``."""

import marimo

app = marimo.App(width="full", app_title="diffrac_cvx", css_file="notebook.css", html_head_file="head.html")


with app.setup:
    import marimo as mo

    from diffrac_cvx import datasets, registry
    from diffrac_cvx.app.page import views
    from diffrac_cvx.app.page.data import (
        MAX_UPLOAD_BYTES,
        column_names,
        known_data,
        planted_data,
        uploaded_data,
    )
    from diffrac_cvx.datasets.file_columns import SUFFIXES
    from diffrac_cvx.datasets.tables import MISSING_POLICIES
    from diffrac_cvx.errors import DataError, ParameterError, ResourceError

    USER_ERRORS = (DataError, ParameterError, ResourceError)  # with a message for the user
    LAMBDA_STEPS = [0.0, 0.0001, 0.0003, 0.001, 0.002, 0.003, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0]
    RIDGE_STEPS = [0.0, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0]
    SLIDER = {"show_value": True, "debounce": True, "full_width": True}
    FIRST_METHODS = ("v_space", "lifted", "penalized_nu", "low_rank", "fista", "CLARABEL")  # compared at the start
    TOLERANCES = {f"1e-{digits}": 10.0**-digits for digits in (2, 3, 4, 5, 6)}
    TIME_LIMITS = {"automatic": None, "1 s": 1.0, "10 s": 10.0, "60 s": 60.0}


@app.cell
def _():
    mo.md("""
    # Compare relaxations

    Discriminative clustering by the relaxations and solvers of
    [Flammarion, Palaniappan and Bach (JMLR 2017)](https://jmlr.org/papers/v18/16-429.html), side by side on one table.
    Numbers in parentheses are equations of the paper.
    """)


@app.cell
def _():
    # No dictionaries of elements: marimo keeps only one of two changes to a dictionary made while a cell runs.
    source = mo.ui.radio(["planted", "known set", "file"], value="planted", inline=True)
    n = mo.ui.number(4, 20_000, 1, value=30, label="points n", full_width=True)
    d = mo.ui.number(1, 2000, 1, value=4, label="features d", full_width=True)
    sparsity = mo.ui.number(1, 20, 1, value=1, label="sparsity", full_width=True)
    seed = mo.ui.number(0, 10_000, 1, value=0, label="seed", full_width=True)
    noise = mo.ui.slider(0.0, 1.5, 0.05, value=0.3, label="noise", **SLIDER)
    imbalance = mo.ui.slider(0.0, 0.9, 0.05, value=0.0, label="imbalance", **SLIDER)
    known = mo.ui.dropdown(datasets.names(), value="breast_cancer", label="data set", allow_select_none=False)
    file = mo.ui.file(filetypes=list(SUFFIXES), label="Choose file", max_size=MAX_UPLOAD_BYTES)
    return d, file, imbalance, known, n, noise, seed, source, sparsity


@app.cell
def _(file):
    try:
        _names = column_names(file.contents(0), file.name(0)) if file.value else []
    except USER_ERRORS:
        _names = []  # the cell that reads the table shows the error
    label = mo.ui.dropdown(_names, label="reference labels", full_width=True)
    drop = mo.ui.multiselect(_names, label="columns to drop", full_width=True)
    one_hot = mo.ui.multiselect(_names, label="columns to one-hot encode", full_width=True)
    missing = mo.ui.dropdown(MISSING_POLICIES, value="error", label="missing values", allow_select_none=False)
    return drop, label, missing, one_hot


@app.cell
def _():
    nu = mo.ui.slider(0.0, 1.0, 0.05, value=1.0, label="nu (equal sizes)", **SLIDER)
    lam = mo.ui.slider(steps=LAMBDA_STEPS, value=0.0, label="lam (sparsity)", **SLIDER)
    ridge = mo.ui.slider(steps=RIDGE_STEPS, value=0.3, label="ridge", **SLIDER)
    n_clusters = mo.ui.slider(2, 8, 1, value=2, label="clusters K", **SLIDER)
    standardize = mo.ui.checkbox(value=True, label="standardise the columns")
    # A form sends all boxes together, so that several methods are chosen before any is run.
    _texts = {name: f"{record.equation} {record.summary}" for name, record in registry.RELAXATIONS.items()}
    _solvers = (*registry.SOLVERS, *registry.CVXPY_SOLVERS)
    _texts |= {name: name for name in _solvers}
    _boxes = {name: mo.ui.checkbox(name in FIRST_METHODS, label=text) for name, text in _texts.items()}
    _lists = ("<br>".join(f"{{{name}}}" for name in names) for names in (registry.RELAXATIONS, _solvers))
    chosen = (
        mo.md("Relaxations<br>{}<br>Solvers<br>{}".format(*_lists))
        .batch(**_boxes)
        .form(submit_button_label="Compare", bordered=False)
    )
    tol = mo.ui.dropdown(TOLERANCES, value="1e-4", label="tolerance", allow_select_none=False)
    time_limit = mo.ui.dropdown(TIME_LIMITS, value="automatic", label="time limit", allow_select_none=False)
    return chosen, lam, n_clusters, nu, ridge, standardize, time_limit, tol


@app.cell
def _(
    chosen,
    d,
    drop,
    file,
    imbalance,
    known,
    label,
    lam,
    missing,
    n,
    n_clusters,
    noise,
    nu,
    one_hot,
    ridge,
    seed,
    source,
    sparsity,
    standardize,
    time_limit,
    tol,
):
    _pairs = [mo.hstack(pair, widths="equal") for pair in ((n, d), (sparsity, seed))]
    _inputs = {
        "planted": [*_pairs, noise, imbalance],
        "known set": [known],
        "file": [file, label, drop, one_hot, missing],
    }
    _parts = {
        "Data": [source, *_inputs[source.value]],
        "Problem": [nu, lam, ridge, n_clusters, standardize],
        "Methods": [chosen, tol, time_limit],
    }
    _panel = [part for title, parts in _parts.items() for part in (mo.Html(f"<strong>{title}</strong>"), *parts)]
    # A stack alone would be stretched over the height of the window.
    mo.sidebar(mo.Html(f"<div>{mo.vstack(_panel)}</div>"), width="20rem")


@app.cell
def _(d, drop, file, imbalance, known, label, missing, n, noise, one_hot, seed, source, sparsity):
    try:
        if source.value == "planted":
            data = planted_data(n.value, d.value, sparsity.value, imbalance.value, noise.value, seed.value)
        elif source.value == "known set":
            data = known_data(known.value)
        else:
            mo.stop(not file.value, mo.md("Choose a table: one point per row, one feature per column."))
            _options = {"drop": drop.value, "one_hot": one_hot.value, "missing": missing.value}
            data = uploaded_data(file.contents(0), file.name(0), label.value, **_options)
        wrong = ""
    except USER_ERRORS as error:
        data, wrong = None, str(error)
    mo.Html(views.sentences_html([wrong], "alarm") if wrong else views.sentences_html([data.summary], "note"))
    return (data,)


@app.cell
def _(data, chosen, lam, n_clusters, nu, ridge, standardize, time_limit, tol):
    mo.stop(data is None)
    setting = views.Setting(
        nu.value, lam.value, ridge.value, n_clusters.value, tol.value, standardize.value, time_limit.value
    )
    _names = [name for name, is_on in chosen.value.items() if is_on] if chosen.value else FIRST_METHODS
    methods, omitted = views.choose_methods(_names, *data.table.X.shape)
    return methods, omitted, setting


@app.cell
def _(data, methods, omitted, setting):
    mo.stop(not methods, mo.md("Select at least one relaxation and a solver that accepts a table of this size."))
    try:
        comparison = views.compare_methods(data, setting, methods)
    except USER_ERRORS as error:
        mo.stop(True, mo.Html(views.sentences_html([str(error)], "alarm")))
    _agreement = "alarm" if comparison.disagreements else "fine"
    _stopped = views.describe_limits(comparison, setting.seconds(methods))
    _labels = views.labels_of(data.table, comparison, setting.n_clusters)
    mo.Html(
        "<h2>Values and certified bounds</h2>"
        + views.sentences_html(_stopped, "alarm")
        + views.sentences_html(views.describe_agreement(comparison), _agreement)
        + views.table_html(views.comparison_table(data, setting, comparison, _labels))
        + views.sentences_html(views.describe_others(comparison, omitted, setting.n_clusters), "note")
        + "<h2>Solutions</h2>"
        + views.sentences_html([views.LEGEND], "note")
        + views.solution_cards(data, comparison, _labels)
    )


@app.cell
def _(data, setting):
    try:
        model = views.cluster_points(data.table, setting)
    except USER_ERRORS as error:
        mo.stop(True, mo.Html(views.sentences_html([str(error)], "alarm")))
    _warned, _said = views.describe_answer(data.table, model)
    _answer = (
        "<h2>Clusters of the table</h2>"
        + views.sentences_html(_warned, "alarm")
        + views.sentences_html(_said, "answer")
        + views.table_html(views.answer_table(data.table, model))
    )
    _file = {"filename": "labels.csv", "mimetype": "text/csv", "label": "Download labels (CSV)"}
    _download = mo.download(lambda: views.labels_csv(data.table, model), **_file)
    mo.vstack([mo.Html(_answer), mo.hstack([_download], justify="start")])


@app.cell
def _(data, methods, setting):
    mo.vstack([mo.Html("<h2>Python</h2>"), mo.md(f"```python\n{views.python_code(data, setting, methods)}\n```")])


if __name__ == "__main__":
    app.run()
