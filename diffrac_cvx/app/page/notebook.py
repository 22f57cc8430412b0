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
    from diffrac_cvx.app.page.run import BY_SIZE, ORDER, SAMPLE, USER_ERRORS, Request, Run, Setting
    from diffrac_cvx.datasets.file_columns import SUFFIXES
    from diffrac_cvx.datasets.tables import MISSING_POLICIES

    LAMBDA_STEPS = [0.0, 0.0001, 0.0003, 0.001, 0.002, 0.003, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0]
    RIDGE_STEPS = [0.0, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0]
    SLIDER = {"show_value": True, "debounce": True, "full_width": True}
    FIRST_METHODS = (*ORDER, "low_rank", "fista", BY_SIZE)  # ticked at the start
    TOLERANCES = {f"1e-{digits}": 10.0**-digits for digits in (2, 3, 4, 5, 6)}
    TIME_LIMITS = {"1 s": 1.0, "10 s": 10.0, "60 s": 60.0, "10 min": 600.0, "1 h": 3600.0}


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
    own_alpha = mo.ui.checkbox(value=True, label="alpha of a solution of (15)")  # where (7) + nu alpha is (8)
    alpha = mo.ui.slider(0.0, 1.0, 0.01, value=0.1, label="alpha of (7), 0 to 1", **SLIDER)
    n_clusters = mo.ui.slider(2, 8, 1, value=2, label="clusters K", **SLIDER)
    standardize = mo.ui.checkbox(value=True, label="standardise the columns")
    _relaxations = dict.fromkeys((*ORDER, *registry.RELAXATIONS))
    _texts = {
        name: f"{registry.RELAXATIONS[name].equation} {registry.RELAXATIONS[name].summary}" for name in _relaxations
    }
    _solvers = (*registry.SOLVERS, BY_SIZE, *registry.CVXPY_SOLVERS)
    _texts |= {name: name for name in _solvers} | {BY_SIZE: "CVXPY (CLARABEL or SCS, by size)"}
    _boxes = {name: mo.ui.checkbox(name in FIRST_METHODS, label=text) for name, text in _texts.items()}
    _lists = ("<br>".join(f"{{{name}}}" for name in names) for names in (_relaxations, _solvers))
    chosen = mo.md("Relaxations<br>{}<br>Solvers<br>{}".format(*_lists)).batch(**_boxes)
    tol = mo.ui.dropdown(TOLERANCES, value="1e-4", label="tolerance", allow_select_none=False)
    time_limit = mo.ui.dropdown(TIME_LIMITS, value="60 s", label="time limit", allow_select_none=False)
    return alpha, chosen, lam, n_clusters, nu, own_alpha, ridge, standardize, time_limit, tol


@app.cell
def _(
    alpha,
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
    own_alpha,
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
        "Problem": [nu, lam, ridge, own_alpha, *([] if own_alpha.value else [alpha]), n_clusters, standardize],
        "Methods": [chosen, tol, time_limit],
    }
    _panel = [part for title, parts in _parts.items() for part in (mo.Html(f"<strong>{title}</strong>"), *parts)]
    # A stack alone would be stretched over the height of the window.
    mo.sidebar(mo.Html(f"<div class='panel'>{mo.vstack(_panel)}</div>"), width="20rem")


@app.cell
def _(d, drop, file, imbalance, known, label, missing, n, noise, one_hot, seed, source, sparsity):
    try:
        if source.value == "planted":
            data = planted_data(n.value, d.value, sparsity.value, imbalance.value, noise.value, seed.value)
        elif source.value == "known set":
            data = known_data(known.value)
        elif not file.value:
            data = None
        else:
            _options = {"drop": drop.value, "one_hot": one_hot.value, "missing": missing.value}
            data = uploaded_data(file.contents(0), file.name(0), label.value, **_options)
        _wrong = ""
    except USER_ERRORS as error:
        data, _wrong = None, str(error)
    _said = "Choose a table: one point per row, one feature per column." if data is None else data.summary
    mo.Html(views.sentences_html([_wrong], "alarm") if _wrong else views.sentences_html([_said], "note"))
    return (data,)


@app.cell
def _(alpha, data, chosen, lam, n_clusters, nu, own_alpha, ridge, standardize, time_limit, tol):
    _names = tuple(name for name, is_on in chosen.value.items() if is_on)
    _alpha = None if own_alpha.value else alpha.value
    setting = Setting(
        nu.value, lam.value, ridge.value, _alpha, n_clusters.value, tol.value, standardize.value, time_limit.value
    )
    request = None if data is None else Request(data, setting, _names)
    return request, setting


@app.cell
def _():
    get_run, set_run = mo.state(None)  # the current or last comparison
    get_shown, set_shown = mo.state(None)  # the last one that has ended
    compare = mo.ui.run_button(kind="success", label="Compare")
    on_sample = mo.ui.run_button(label=f"On a sample of {SAMPLE} rows")
    cancel = mo.ui.run_button(label="Cancel")
    return cancel, compare, get_run, get_shown, on_sample, set_run, set_shown


@app.cell
def _(compare, get_run, on_sample, request, set_run):
    # The page compares when it opens and when a button is pressed, never because a control has changed.
    if request is not None and (get_run() is None or compare.value or on_sample.value):
        set_run(Run(request.on_sample() if on_sample.value else request))


@app.cell
def _(cancel, get_run):
    if cancel.value and get_run() is not None:
        get_run().stop()


@app.cell
def _(get_run, set_shown):
    def _work(run, mo=mo, views=views, names=globals()):  # noqa: B008
        thread = mo.current_thread()

        def tell(lines):
            mo.output.replace(mo.Html(views.progress_html(lines)))

        def is_over():  # marimo clears the names of a page that was closed
            return thread.should_exit or not names

        run.work(tell, is_over)
        if not is_over():
            mo.output.replace(mo.Html(""))
            set_shown(run)

    if get_run() is not None and mo.app_meta().mode == "script":
        get_run().work()
        set_shown(get_run())
    elif get_run() is not None:
        mo.Thread(target=_work, args=(get_run(),)).start()


@app.cell
def _(get_shown):
    shown = get_shown()
    mo.stop(shown is None)
    mo.stop(bool(shown.error), mo.Html(views.sentences_html([shown.error], "alarm")))
    mo.stop(
        shown.comparison is None,
        mo.md("Tick at least one relaxation and a solver, then press Compare."),
    )
    _labels = views.labels_of(shown)
    _file = {"filename": "comparison.csv", "mimetype": "text/csv", "label": "Download comparison (CSV)"}
    _download = mo.download(lambda: views.comparison_csv(shown.comparison), **_file)
    mo.vstack(
        [
            mo.Html("<h2>Values and certified bounds</h2>" + views.comparison_html(shown, _labels)),
            mo.hstack([_download], justify="start"),
            mo.Html(
                "<h2>Solutions</h2>"
                + views.sentences_html([views.LEGEND], "note")
                + views.solution_cards(shown.shown, shown.comparison, _labels)
            ),
        ]
    )


@app.cell
def _(get_shown):
    ended = get_shown()
    mo.stop(ended is None or ended.model is None)
    _table, _model = ended.request.data.table, ended.model
    _warned, _said = views.describe_answer(_table, _model)
    _costs = [views.describe_costs(ended)] if ended.comparison is not None else []
    _answer = (
        "<h2>Clusters of the table</h2>"
        + views.sentences_html(_costs, "note")
        + views.sentences_html(_warned, "alarm")
        + views.sentences_html(_said, "answer")
        + views.table_html(views.answer_table(_table, _model))
    )
    _file = {"filename": "labels.csv", "mimetype": "text/csv", "label": "Download labels (CSV)"}
    _download = mo.download(lambda: views.labels_csv(_table, _model), **_file)
    mo.vstack([mo.Html(_answer), mo.hstack([_download], justify="start")])


@app.cell
def _(get_shown):
    mo.stop(get_shown() is None)
    _code = views.python_code(get_shown().request)
    mo.vstack([mo.Html("<h2>Python</h2>"), mo.md(f"```python\n{_code}\n```")])


@app.cell
def _(cancel, compare, get_run, get_shown, on_sample, request):
    _is_running = get_run() is not None and get_run() is not get_shown()
    _buttons = [compare]
    if request is not None and len(request.data.table.X) > SAMPLE:
        _buttons.append(on_sample)
    if _is_running:
        _buttons.append(cancel)
    _sign = views.describe_state(request, get_run(), get_shown())
    mo.Html(f"<div class='bar'>{mo.hstack(_buttons, justify='start', wrap=True)}{_sign}</div>")


if __name__ == "__main__":
    app.run()
