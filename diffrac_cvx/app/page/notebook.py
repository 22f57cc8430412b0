"""The interactive page, a marimo app: ``make explore`` or ``python -m diffrac_cvx.app.page``."""

import marimo

app = marimo.App(width="full", app_title="diffrac_cvx", css_file="notebook.css")


@app.cell
def _():
    import threading

    import marimo as mo

    from diffrac_cvx.app.page import controls, views, widgets
    from diffrac_cvx.app.page import data_choice as sources
    from diffrac_cvx.app.page import solve_choice as setting
    from diffrac_cvx.app.page import view_list as catalogue
    from diffrac_cvx.app.page.computation import READABLE, Job, Line, Outcome
    from diffrac_cvx.app.page.processes import waiting_worker
    from diffrac_cvx.plotting.canvas import pyplot

    worker = waiting_worker()
    return (
        Job,
        Line,
        Outcome,
        READABLE,
        catalogue,
        controls,
        mo,
        pyplot,
        setting,
        sources,
        threading,
        views,
        widgets,
        worker,
    )


@app.cell
def _(mo):
    mo.md("""
    # Convex relaxations for discriminative clustering

    Relaxations of Flammarion, Palaniappan and Bach (JMLR 2017), side by side: choose data and parameters in the
    panel, look at labels, proofs, paths and the comparison here. Numbers in parentheses are the paper's equations.
    """)
    return


@app.cell
def _(controls, mo, widgets):
    source = mo.ui.radio(["planted", "known", "own table"], value="planted", inline=True)
    planted, known, parameters, chosen = widgets.planted(), widgets.known(), widgets.parameters(), widgets.chosen()
    file = mo.ui.file(filetypes=widgets.FILES, kind="area")
    how = widgets.rounding()
    automatic = mo.ui.switch(value=True, label=controls.label("automatic"))
    return automatic, chosen, file, how, known, parameters, planted, source


@app.cell
def _(READABLE, file, sources, widgets):
    try:
        columns = sources.Uploaded(file.contents(0), file.name(0)).columns() if file.value else []
    except READABLE:
        columns = []  # said where the data are loaded
    own = widgets.own(columns)
    return (own,)


@app.cell
def _(chosen, file, how, known, own, parameters, planted, source, widgets):
    inputs = {"planted": planted.elements, "known": known.elements, "own table": {"file": file, **own.elements}}
    solvers = {**chosen.elements, "rounding": how}
    widgets.panel(
        source,
        {"Data": inputs[source.value], "Parameters": parameters.elements, "Relaxations and solvers": solvers},
    )
    return


@app.cell
def _(READABLE, file, known, mo, own, planted, source, sources, widgets):
    try:
        if source.value == "planted":
            where = sources.Planted(**planted.value)
        elif source.value == "known":
            where = sources.Known(**known.value)
        else:
            where = sources.Uploaded(file.contents(0) or b"", file.name(0) or "", **own.value)
        data, wrong = where.load(), ""
    except READABLE as error:
        where, data, wrong = None, None, str(error)
    mo.vstack([mo.md("## Data"), widgets.told(data.summary if data else "", wrong)])
    return data, where


@app.cell
def _(Line, mo):
    # Threads write on the board, and the page looks at it: a state set by a thread can be lost while its cell runs.
    board = {"line": Line("starting"), "outcome": None, "labels": {}, "proofs": {}, "paths": {}, "comparison": {}}
    shown, under_way, remembered = {}, {}, {}
    refresh = mo.ui.refresh(default_interval=0.4)
    run = mo.ui.run_button(label="Run", kind="success")
    stop = mo.ui.button(label="Stop", kind="danger", on_click=lambda _: [event.set() for event in under_way.values()])
    return board, refresh, remembered, run, shown, stop, under_way


@app.cell
def _(board, mo):
    get_line, set_line = mo.state(board["line"])
    get_outcome, set_outcome = mo.state(None)
    get_labels, set_labels = mo.state({})
    get_proofs, set_proofs = mo.state({})
    get_paths, set_paths = mo.state({})
    get_comparison, set_comparison = mo.state({})
    setters = {
        "line": set_line,
        "outcome": set_outcome,
        "labels": set_labels,
        "proofs": set_proofs,
        "paths": set_paths,
        "comparison": set_comparison,
    }
    return get_comparison, get_labels, get_line, get_outcome, get_paths, get_proofs, setters


@app.cell
def _(board, refresh, setters, shown):
    _ = refresh.value
    for _name, _setter in setters.items():
        if board[_name] is not shown.get(_name):
            shown[_name] = board[_name]
            _setter(board[_name])
    return


@app.cell
def _(automatic, mo, refresh, run, stop):
    mo.hstack(
        [run, stop, automatic, mo.Html(f'<div class="refresh">{refresh}</div>')], justify="start", gap=1.5, wrap=True
    )
    return


@app.cell
def _(get_line, mo):
    _line = get_line()
    _bar = f'<progress value="{_line.done}" max="{max(_line.total, 1)}"></progress>'
    mo.Html(f'<div class="status" data-state="{_line.state}">{_line}{_bar}</div>')
    return


@app.cell
def _(Line, board, data):
    if data is None:  # pictures of other data would mislead
        board.update(line=Line("nothing to solve"), outcome=None, labels={}, proofs={}, paths={}, comparison={})
    return


@app.cell
def _(
    Job,
    Outcome,
    automatic,
    board,
    chosen,
    data,
    mo,
    parameters,
    run,
    setting,
    threading,
    under_way,
    views,
    where,
    worker,
):
    mo.stop(data is None or not (automatic.value or run.value))

    def start():
        wanted = setting.Setting(**parameters.value)
        solves = setting.plan_solves(data, wanted, chosen.value["forms"], chosen.value["solvers"])
        job = Job(Outcome(where, data, wanted), solves, views.calls(data, wanted, solves, chosen.value["extras"]))
        stopped = under_way["event"] = threading.Event()

        def work():
            thread = mo.current_thread()  # ends when a control is moved: this cell runs again
            job.compute(
                worker,
                lambda: stopped.is_set() or thread.should_exit,
                lambda outcome: thread.should_exit or board.update(outcome=outcome),
                lambda line: thread.should_exit or board.update(line=line),
            )

        mo.Thread(target=work, daemon=True).start()

    start()
    return


@app.cell
def _(get_outcome, mo, remembered):
    _names = list(get_outcome().solved) if get_outcome() else []
    _first = _names[0] if _names else None
    look = mo.ui.dropdown(
        _names,
        value=remembered["run"] if remembered.get("run") in _names else _first,
        on_change=lambda name: remembered.update(run=name),
    )
    return (look,)


@app.cell
def _(board, catalogue, get_outcome, how, look, mo, pyplot, views):
    def draw(outcome):  # in a thread, so that the page stays responsive
        thread = mo.current_thread()  # ends when there is something newer to draw
        for view in catalogue.VIEWS:
            picture = views.shown(view.name, outcome, look.value or "", how.value)
            if thread.should_exit:
                return
            board[view.section] = {**board[view.section], view.name: picture}

    if get_outcome() is not None:
        pyplot()  # imported in the page's own thread, where marimo looks for it
        mo.Thread(target=draw, args=(get_outcome(),), daemon=True).start()
    return


@app.cell
def _(get_labels, look, widgets):
    widgets.section("Labels", get_labels().values(), f'<div class="look">{widgets.row("chosen", look)}</div>')
    return


@app.cell
def _(get_proofs, widgets):
    widgets.section("Proofs", get_proofs().values())
    return


@app.cell
def _(get_paths, widgets):
    widgets.section("Paths", get_paths().values())
    return


@app.cell
def _(get_comparison, get_outcome, views, widgets):
    _remarks = views.remarks(get_outcome()) if get_outcome() else []
    widgets.section("Comparison", get_comparison().values(), widgets.sentences(_remarks))
    return


if __name__ == "__main__":
    app.run()
