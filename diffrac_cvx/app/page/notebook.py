"""The interactive page, a marimo app: ``make explore`` or ``python -m diffrac_cvx.app.page``."""

import marimo

app = marimo.App(width="full", app_title="diffrac_cvx", css_file="notebook.css", html_head_file="head.html")


with app.setup:
    import threading
    from html import escape
    from textwrap import shorten

    import marimo as mo

    from diffrac_cvx.app.page import answer, cards, computation, controls, marks, pictures, tables
    from diffrac_cvx.app.page.computation import READABLE, StatusLine
    from diffrac_cvx.app.page.data import NamedSet, OwnTable, Planted
    from diffrac_cvx.app.page.solve_choice import Setting, plan_solves
    from diffrac_cvx.app.page.views import arrange, views_for
    from diffrac_cvx.machine.processes import Worker
    from diffrac_cvx.plotting.canvas import pyplot

    SECTIONS = ("labels", "proofs", "paths", "comparison")

    def empty_board(doing):
        found = dict.fromkeys(("outcome", "answer", "search_line", "search"))
        return {"line": StatusLine(doing), **found, **{name: {} for name in SECTIONS}}

    def start_job(job, worker, stopped, show, tell):
        """Compute a job in a thread, which ends when a control is moved: the cell that began it runs again."""

        def work():
            thread = mo.current_thread()
            job.compute(
                worker,
                lambda: stopped.is_set() or thread.should_exit,
                lambda outcome: thread.should_exit or show(outcome),
                lambda line: thread.should_exit or tell(line),
            )

        mo.Thread(target=work, daemon=True).start()


@app.cell
def _():
    mo.md("""
    # Two groups in a table, or more, with proofs

    The points are split in two groups along one direction, so that the groups can be told apart as well as possible; or
    in more than two, if you ask for more clusters. Choose the points and what is preferred in the panel; the answer is
    below, and how far it can be from the best is proved. Numbers in parentheses are equations of
    [Flammarion, Palaniappan and Bach (JMLR 2017)](https://jmlr.org/papers/v18/16-429.html).
    """)


@app.cell
def _():
    given = controls.read_address()
    _single, _kinds = ("source", "automatic", "file", "rounding"), ("planted", "known", "parameters", "solving")
    source, automatic, file, rounding = (controls.element(name, given) for name in _single)
    planted, known, parameters, solving = (controls.elements(kind, given) for kind in _kinds)
    return automatic, file, given, known, parameters, planted, rounding, solving, source


@app.cell
def _(file, given):
    try:
        columns = OwnTable(file.contents(0), file.name(0)).columns() if file.value else []
    except READABLE:
        columns = []  # the error is shown where the data are loaded
    own = controls.elements("own table", given, columns)
    return columns, own


@app.cell
def _(file, known, own, parameters, planted, rounding, solving, source):
    _inputs = {"planted": planted.elements, "known": known.elements, "own table": {"file": file, **own.elements}}
    _preferred = {name: parameters.elements[name] for name in ("n_clusters", "nu", "lam", "ridge")}
    _others = {name: parameters.elements[name] for name in ("strategy", "tol", "alpha")}
    controls.panel(source, _inputs[source.value], _preferred, {**solving.elements, "rounding": rounding, **_others})


@app.cell
def _(automatic, columns, get_marks, known, look, own, parameters, planted, remembered, rounding, solving, source):
    # Before a file is chosen again, what the address says of its columns is kept.
    _data = {"planted": planted.value, "known": known.value, "own table": own.value if columns else {}}
    _ = look.value
    _state = {"source": source.value, "automatic": automatic.value, "rounding": rounding.value}
    _marks = remembered.get("marks", get_marks())
    _state |= {"marks": _marks if len(_marks) <= controls.MOST_WRITTEN else ""}
    _state |= {"run": remembered.get("run"), **_data[source.value], **parameters.value, **solving.value}
    controls.write_address(_state, controls.USUAL)


@app.cell
def _(board, file, known, own, planted, source):
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
        board.update(empty_board("nothing to compute"))  # pictures of other data would mislead
    mo.vstack([mo.md("## Data"), cards.data_summary(data.summary if data else "", wrong)])
    return data, where


@app.cell
def _(given):
    # Threads write into `board`, and the page reads it: a state set by a thread can be lost while its cell runs.
    board = empty_board("starting")
    shown, under_way = {}, {}
    remembered = {"run": next(iter(given.get("run", [])), None), "marks": next(iter(given.get("marks", [])), "")}
    worker, searcher = computation.take_worker(), Worker()
    refresh = mo.ui.refresh(default_interval=0.4)
    run = mo.ui.run_button(label="Run", kind="success")
    prove = mo.ui.run_button(label="Prove it")
    stop = mo.ui.button(label="Stop", kind="danger", on_click=lambda _: [event.set() for event in under_way.values()])
    return board, prove, refresh, remembered, run, searcher, shown, stop, under_way, worker


@app.cell
def _(data, remembered):
    # What the address says is of the first points; other points begin with nothing known.
    get_marks, set_marks = mo.state("" if data is None else remembered.pop("marks", ""))
    return get_marks, set_marks


@app.cell
def _(data, get_marks):
    try:
        known_marks, wrong_marks = () if data is None else marks.read_marks(get_marks(), data), ""
    except READABLE as error:
        known_marks, wrong_marks = None, str(error)
    return known_marks, wrong_marks


@app.cell
def _(board):
    _states = {name: mo.state(value) for name, value in board.items()}
    get_line, get_outcome, get_answer, get_search_line, get_search, *_sections = (
        getter for getter, _ in _states.values()
    )
    get_labels, get_proofs, get_paths, get_comparison = _sections
    setters = {name: setter for name, (_, setter) in _states.items()}
    return (
        get_answer,
        get_comparison,
        get_labels,
        get_line,
        get_outcome,
        get_paths,
        get_proofs,
        get_search,
        get_search_line,
        setters,
    )


@app.cell
def _(board, refresh, setters, shown):
    _ = refresh.value
    for _name, _setter in setters.items():
        if board[_name] is not shown.get(_name):
            shown[_name] = board[_name]
            _setter(board[_name])


@app.cell
def _(automatic, refresh, run, stop):
    _ticking = mo.Html(f'<div class="refresh">{refresh}</div>')
    mo.hstack([run, stop, automatic, _ticking], justify="start", gap=1.5, wrap=True)


@app.cell
def _(get_line):
    mo.Html(cards.status_line(get_line()))


@app.cell
def _(automatic, board, data, known_marks, parameters, run, solving, under_way, where, worker):
    mo.stop(data is None or known_marks is None or not (automatic.value or run.value))

    def start():
        setting, wanted = Setting(**parameters.value, marks=known_marks), solving.value
        solves = plan_solves(data, setting, wanted["forms"], wanted["solvers"])
        extras = computation.plan_extras(data, setting, solves, wanted["extras"])
        job = computation.Job(computation.Outcome(where, data, setting), solves, extras)
        stopped = under_way["event"] = threading.Event()
        start_job(job, worker, stopped, lambda now: board.update(outcome=now), lambda line: board.update(line=line))

    start()


@app.cell
def _(board, data, known_marks, parameters, prove, searcher, under_way, where):
    board.update(search_line=None, search=None)  # they were of other points or preferences
    mo.stop(data is None or known_marks is None or not prove.value)

    def search():
        setting = Setting(**parameters.value, marks=known_marks)
        outcome = computation.Outcome(where, data, setting)
        job = computation.Job(outcome, (), computation.plan_search(data, setting))
        stopped = under_way["search"] = threading.Event()
        start_job(
            job, searcher, stopped, lambda now: board.update(search=now), lambda line: board.update(search_line=line)
        )

    search()


@app.cell
def _(get_outcome, remembered):
    _names, _run = list(get_outcome().solved) if get_outcome() else [], remembered.get("run")
    _first = _run if _run in _names else next(iter(_names), None)
    look = mo.ui.dropdown(_names, value=_first, on_change=lambda name: remembered.update(run=name))
    return (look,)


@app.cell
def _(board, get_outcome, look, rounding):
    def draw(outcome):  # in a thread, so that the page stays responsive
        thread = mo.current_thread()  # ends when there is something newer to draw
        found = answer.find_answer(outcome, look.value or "", rounding.value)
        if thread.should_exit:
            return
        board["answer"] = found
        k = outcome.setting.n_clusters
        for section in SECTIONS:
            board[section] = arrange(board[section], section, k)
        for view in views_for(k):
            picture = pictures.draw_picture(view.name, outcome, look.value or "", rounding.value)
            if thread.should_exit:
                return
            board[view.section] = arrange({**board[view.section], view.name: picture}, view.section, k)

    if get_outcome() is not None:
        pyplot()  # imported in the page's own thread, where marimo looks for it
        mo.Thread(target=draw, args=(get_outcome(),), daemon=True).start()


@app.cell
def _(get_answer, look):
    cards.answer_section(get_answer(), f'<div class="look">{controls.row("run", look)}</div>')


@app.cell
def _(data, get_answer, known_marks, parameters):
    _drawn = get_answer()
    _fits = data is not None and _drawn is not None and _drawn.data is data and known_marks is not None
    if _fits and parameters.value["n_clusters"] == 2:
        chooser = cards.chooser_of(lambda: marks.draw_marks(_drawn, known_marks))
    else:
        chooser = None
    return (chooser,)


@app.cell
def _(chooser, data, get_answer, get_marks, known_marks, set_marks):
    chosen = [] if chooser is None else marks.points_in(chooser.value, get_answer(), chooser.axes)

    def belongs(text, label):
        def mark(_):
            set_marks(marks.write_marks(marks.change_marks(known_marks, chosen, label), data))

        return mo.ui.button(label=text, on_change=mark, disabled=not chosen)

    marking = mo.ui.dictionary(
        {
            "0": belongs("In cluster 0", -1),
            "1": belongs("In cluster 1", 1),
            "none": belongs("Not known", 0),
            "marks": mo.ui.text(value=get_marks(), on_change=set_marks, full_width=True),
        }
    )
    return chosen, marking


@app.cell
def _(chooser, chosen, data, marking, parameters, wrong_marks):
    mo.stop(data is None or parameters.value["n_clusters"] > 2)
    _rows = f"chosen: {shorten(', '.join(map(str, data.rows[chosen])), 60)}" if chosen else "no point chosen"
    *_buttons, _text = marking.elements.values()
    _field = f'{controls.row("marks", _text)}<div class="wrong">{escape(wrong_marks)}</div>'
    _plot = mo.Html('<p class="note">There is no solution yet.</p>') if chooser is None else chooser
    cards.marks_section(_plot, escape(_rows), _buttons, _field)


@app.cell
def _(get_answer, get_search, get_search_line, parameters, prove):
    mo.stop(parameters.value["n_clusters"] > 2)
    cards.search_section(prove, get_search_line(), get_search(), get_answer())


@app.cell
def _(get_labels):
    cards.section("Clusters", get_labels().values())


@app.cell
def _(get_proofs):
    cards.section("What is proved", get_proofs().values())


@app.cell
def _(get_paths):
    cards.section("Other settings", get_paths().values())


@app.cell
def _(get_comparison, get_outcome):
    _remarks = pictures.list_remarks(get_outcome()) if get_outcome() else []
    cards.section("Methods compared", get_comparison().values(), tables.list_html(_remarks))


if __name__ == "__main__":
    app.run()
