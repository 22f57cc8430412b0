"""The interactive page, a marimo app: ``make explore`` or ``python -m diffrac_cvx.app.page``."""

import marimo

app = marimo.App(width="full", app_title="diffrac_cvx", css_file="notebook.css", html_head_file="head.html")


@app.cell
def _():
    import threading
    from html import escape

    import marimo as mo

    from diffrac_cvx.app.page import address, answer, cards, computation, controls, pictures
    from diffrac_cvx.app.page.computation import READABLE, StatusLine
    from diffrac_cvx.app.page.data import NamedSet, OwnTable, Planted
    from diffrac_cvx.app.page.solve_choice import Setting, plan_solves
    from diffrac_cvx.app.page.views import arrange, views_for
    from diffrac_cvx.plotting.canvas import pyplot

    worker = computation.take_worker()
    return (
        NamedSet,
        OwnTable,
        Planted,
        READABLE,
        Setting,
        StatusLine,
        address,
        answer,
        arrange,
        cards,
        computation,
        controls,
        escape,
        mo,
        pictures,
        plan_solves,
        pyplot,
        threading,
        views_for,
        worker,
    )


@app.cell
def _(mo):
    mo.md("""
    # Two groups in a table, or more, with proofs

    The points are split in two groups along one direction, so that the groups can be told apart as well as possible; or
    in more than two, if you ask for more clusters. Choose the points and what is preferred in the panel; the answer is
    below, and how far it can be from the best is proved. Numbers in parentheses are equations of
    [Flammarion, Palaniappan and Bach (JMLR 2017)](https://jmlr.org/papers/v18/16-429.html).
    """)
    return


@app.cell
def _(address, controls):
    given = address.read_address()
    source, automatic, file = (
        controls.source_control(given),
        controls.automatic_control(given),
        controls.file_control(),
    )
    planted, known = controls.planted_controls(given), controls.set_controls(given)
    parameters, solving, rounding = (
        controls.parameter_controls(given),
        controls.solve_controls(given),
        controls.rounding_control(given),
    )
    return automatic, file, given, known, parameters, planted, rounding, solving, source


@app.cell
def _(OwnTable, READABLE, controls, file, given):
    try:
        columns = OwnTable(file.contents(0), file.name(0)).columns() if file.value else []
    except READABLE:
        columns = []  # the error is shown where the data are loaded
    own = controls.table_controls(columns, given)
    return columns, own


@app.cell
def _(controls, file, known, own, parameters, planted, rounding, solving, source):
    _inputs = {"planted": planted.elements, "known": known.elements, "own table": {"file": file, **own.elements}}
    _preferred = {name: parameters.elements[name] for name in ("n_clusters", "nu", "lam", "ridge")}
    _others = {name: parameters.elements[name] for name in ("strategy", "tol", "alpha")}
    controls.panel(
        source,
        _inputs[source.value],
        _preferred,
        {**solving.elements, "rounding": rounding, **_others},
    )
    return


@app.cell
def _(
    address,
    automatic,
    columns,
    controls,
    known,
    look,
    own,
    parameters,
    planted,
    remembered,
    rounding,
    solving,
    source,
):
    # Before a file is chosen again, what the address says of its columns is kept.
    _data = {"planted": planted.value, "known": known.value, "own table": own.value if columns else {}}
    _ = look.value
    address.write_address(
        {
            **{"source": source.value, "automatic": automatic.value, "rounding": rounding.value},
            **{"run": remembered.get("run"), **_data[source.value], **parameters.value, **solving.value},
        },
        controls.USUAL,
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
def _(StatusLine, given, mo):
    # Threads write into `board`, and the page reads it: a state set by a thread can be lost while its cell runs.
    board = {
        **{"line": StatusLine("starting"), "outcome": None, "answer": None},
        **{"labels": {}, "proofs": {}, "paths": {}, "comparison": {}},
    }
    shown, under_way, remembered = {}, {}, {"run": next(iter(given.get("run", [])), None)}
    refresh = mo.ui.refresh(default_interval=0.4)
    run = mo.ui.run_button(label="Run", kind="success")
    stop = mo.ui.button(label="Stop", kind="danger", on_click=lambda _: [event.set() for event in under_way.values()])
    return board, refresh, remembered, run, shown, stop, under_way


@app.cell
def _(board, mo):
    get_line, set_line = mo.state(board["line"])
    get_outcome, set_outcome = mo.state(None)
    get_answer, set_answer = mo.state(None)
    get_labels, set_labels = mo.state({})
    get_proofs, set_proofs = mo.state({})
    get_paths, set_paths = mo.state({})
    get_comparison, set_comparison = mo.state({})
    setters = {
        "line": set_line,
        "outcome": set_outcome,
        "answer": set_answer,
        "labels": set_labels,
        "proofs": set_proofs,
        "paths": set_paths,
        "comparison": set_comparison,
    }
    return get_answer, get_comparison, get_labels, get_line, get_outcome, get_paths, get_proofs, setters


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
        board.update(line=StatusLine("nothing to compute"), outcome=None, answer=None)
        board.update(labels={}, proofs={}, paths={}, comparison={})
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
def _(answer, arrange, board, get_outcome, look, mo, pictures, pyplot, rounding, views_for):
    def draw(outcome):  # in a thread, so that the page stays responsive
        thread = mo.current_thread()  # ends when there is something newer to draw
        found = answer.find_answer(outcome, look.value or "", rounding.value)
        if thread.should_exit:
            return
        board["answer"] = found
        k = outcome.setting.n_clusters
        for section in ("labels", "proofs", "paths", "comparison"):
            board[section] = arrange(board[section], section, k)
        for view in views_for(k):
            picture = pictures.draw_picture(view.name, outcome, look.value or "", rounding.value)
            if thread.should_exit:
                return
            board[view.section] = arrange({**board[view.section], view.name: picture}, view.section, k)

    if get_outcome() is not None:
        pyplot()  # imported in the page's own thread, where marimo looks for it
        mo.Thread(target=draw, args=(get_outcome(),), daemon=True).start()
    return


@app.cell
def _(cards, controls, get_answer, look):
    cards.answer_section(get_answer(), f'<div class="look">{controls.row("run", look)}</div>')
    return


@app.cell
def _(cards, get_labels):
    cards.section("Clusters", get_labels().values())
    return


@app.cell
def _(cards, get_proofs):
    cards.section("What is proved", get_proofs().values())
    return


@app.cell
def _(cards, get_paths):
    cards.section("Other settings", get_paths().values())
    return


@app.cell
def _(cards, get_comparison, get_outcome, pictures):
    _remarks = pictures.list_remarks(get_outcome()) if get_outcome() else []
    cards.section("Methods compared", get_comparison().values(), cards.list_sentences(_remarks))
    return


if __name__ == "__main__":
    app.run()
