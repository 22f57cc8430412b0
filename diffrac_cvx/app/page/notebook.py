"""The interactive page, a marimo app: ``make explore`` or ``python -m diffrac_cvx.app.page``."""

import marimo

app = marimo.App(width="full", app_title="diffrac_cvx", css_file="notebook.css")


@app.cell
def _():
    import threading
    from html import escape

    import marimo as mo

    from diffrac_cvx.app.page import cards, computation, controls, pictures
    from diffrac_cvx.app.page.computation import READABLE, StatusLine
    from diffrac_cvx.app.page.data import NamedSet, OwnTable, Planted
    from diffrac_cvx.app.page.solve_choice import Setting, plan_solves
    from diffrac_cvx.app.page.views import VIEWS
    from diffrac_cvx.plotting.canvas import pyplot

    worker = computation.take_worker()
    return (
        NamedSet,
        OwnTable,
        Planted,
        READABLE,
        Setting,
        StatusLine,
        VIEWS,
        cards,
        computation,
        controls,
        escape,
        mo,
        pictures,
        plan_solves,
        pyplot,
        threading,
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
def _(controls, mo):
    source = mo.ui.radio(["planted", "known", "own table"], value="planted", inline=True)
    planted, known, file = controls.planted_controls(), controls.set_controls(), controls.file_control()
    parameters, solving, rounding = (
        controls.parameter_controls(),
        controls.solve_controls(),
        controls.rounding_control(),
    )
    automatic = mo.ui.switch(value=True, label=controls.label_of("automatic"))
    return automatic, file, known, parameters, planted, rounding, solving, source


@app.cell
def _(OwnTable, READABLE, controls, file):
    try:
        columns = OwnTable(file.contents(0), file.name(0)).columns() if file.value else []
    except READABLE:
        columns = []  # the error is shown where the data are loaded
    own = controls.table_controls(columns)
    return (own,)


@app.cell
def _(controls, file, known, own, parameters, planted, rounding, solving, source):
    inputs = {"planted": planted.elements, "known": known.elements, "own table": {"file": file, **own.elements}}
    controls.panel(
        source,
        {
            "Data": inputs[source.value],
            "Parameters": parameters.elements,
            "Relaxations and solvers": {**solving.elements, "rounding": rounding},
        },
    )
    return


@app.cell
def _(NamedSet, OwnTable, Planted, READABLE, cards, controls, file, known, mo, own, planted, source):
    try:
        if source.value == "planted":
            where = Planted(**planted.value)
        elif source.value == "known":
            where = NamedSet(**known.value)
        else:
            where = OwnTable(file.contents(0) or b"", file.name(0) or "", **own.value)
        data, wrong = where.load(), ""
    except READABLE as error:
        where, data, wrong = None, None, f"{error}{controls.hint(error)}"
    mo.vstack([mo.md("## Data"), cards.data_summary(data.summary if data else "", wrong)])
    return data, where


@app.cell
def _(StatusLine, mo):
    # Threads write into `board`, and the page reads it: a state set by a thread can be lost while its cell runs.
    board = {"line": StatusLine("starting"), "outcome": None, "labels": {}, "proofs": {}, "paths": {}, "comparison": {}}
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
def _(escape, get_line, mo):
    _line = get_line()
    _bar = f'<progress value="{_line.done}" max="{max(_line.total, 1)}"></progress>'
    mo.Html(f'<div class="status" data-state="{_line.state}">{escape(str(_line))}{_bar}</div>')
    return


@app.cell
def _(StatusLine, board, data):
    if data is None:  # pictures of other data would mislead
        board.update(line=StatusLine("nothing to solve"), outcome=None, labels={}, proofs={}, paths={}, comparison={})
    return


@app.cell
def _(
    Setting,
    automatic,
    board,
    computation,
    data,
    mo,
    parameters,
    plan_solves,
    run,
    solving,
    threading,
    under_way,
    where,
    worker,
):
    mo.stop(data is None or not (automatic.value or run.value))

    def start():
        setting, wanted = Setting(**parameters.value), solving.value
        solves = plan_solves(data, setting, wanted["forms"], wanted["solvers"])
        extras = computation.plan_extras(data, setting, solves, wanted["extras"])
        job = computation.Job(computation.Outcome(where, data, setting), solves, extras)
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
def _(VIEWS, board, get_outcome, look, mo, pictures, pyplot, rounding):
    def draw(outcome):  # in a thread, so that the page stays responsive
        thread = mo.current_thread()  # ends when there is something newer to draw
        for view in VIEWS:
            picture = pictures.draw_picture(view.name, outcome, look.value or "", rounding.value)
            if thread.should_exit:
                return
            board[view.section] = {**board[view.section], view.name: picture}

    if get_outcome() is not None:
        pyplot()  # imported in the page's own thread, where marimo looks for it
        mo.Thread(target=draw, args=(get_outcome(),), daemon=True).start()
    return


@app.cell
def _(cards, controls, get_labels, look):
    cards.section("Labels", get_labels().values(), f'<div class="look">{controls.row("run", look)}</div>')
    return


@app.cell
def _(cards, get_proofs):
    cards.section("Proofs", get_proofs().values())
    return


@app.cell
def _(cards, get_paths):
    cards.section("Paths", get_paths().values())
    return


@app.cell
def _(cards, get_comparison, get_outcome, pictures):
    _remarks = pictures.list_remarks(get_outcome()) if get_outcome() else []
    cards.section("Comparison", get_comparison().values(), cards.list_sentences(_remarks))
    return


if __name__ == "__main__":
    app.run()
