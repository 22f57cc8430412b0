"""Interactive page as a marimo app: ``make explore`` or ``python -m diffrac_cvx.app.page``."""

import marimo

app = marimo.App(width="full", app_title="diffrac_cvx", css_file="notebook.css", html_head_file="head.html")


with app.setup:
    import threading

    import marimo as mo

    from diffrac_cvx.app.page import cards, computation, controls, marks, pictures, summary, tables
    from diffrac_cvx.app.page.columns import describe_guesses, guess_columns
    from diffrac_cvx.app.page.computation import USER_ERRORS, StatusLine
    from diffrac_cvx.app.page.data import NamedSource, PlantedSource, UploadedSource
    from diffrac_cvx.app.page.solve_choice import PageSetting
    from diffrac_cvx.app.page.views import arrange, views_for
    from diffrac_cvx.machine.processes import Worker
    from diffrac_cvx.plotting.canvas import pyplot

    PREFERRED = ("n_clusters", "nu", "lam", "ridge", "grouped", "nonnegative")
    VIEW_SECTIONS = ("labels", "solution", "paths", "comparison")  # all but the first are for experts

    def empty_board(doing):
        found = dict.fromkeys(("outcome", "search_line", "search"))
        return {"line": StatusLine(doing), **found, **{name: {} for name in VIEW_SECTIONS}}

    def pass_on(board, shown, setters):
        for name, setter in setters.items():
            if board[name] is not shown.get(name):
                shown[name] = board[name]
                setter(board[name])

    def start(work):
        """Run work in a thread, which is told to end when a control changes and the cell reruns."""

        def run():
            thread = mo.current_thread()

            def unless_ended(put):
                return lambda found: thread.should_exit or put(found)

            work(lambda: thread.should_exit, unless_ended)

        mo.Thread(target=run, daemon=True).start()


@app.cell
def _():
    given = controls.read_address()
    _single, _kinds = (
        ("source", "automatic", "experts", "file", "rounding"),
        ("planted", "known", "parameters", "solving"),
    )
    source, automatic, experts, file, rounding = (controls.element(name, given) for name in _single)
    planted, known, parameters, solving = (controls.elements(kind, given) for kind in _kinds)
    return automatic, experts, file, given, known, parameters, planted, rounding, solving, source


@app.cell
def _(file, given):
    try:
        guesses = guess_columns(UploadedSource(file.contents(0), file.name(0)).frame) if file.value else {}
    except USER_ERRORS:
        guesses = {}  # the cell that loads the data shows the error
    own = controls.elements_of_table(given, guesses)
    return guesses, own


@app.cell
def _(automatic, experts, file, known, own, parameters, planted, rounding, run, solving, source):
    _table = {"file": file, **own.elements, "columns": controls.chips(own.elements["columns"].elements)}
    _inputs = {"planted": planted.elements, "known": known.elements, "own table": _table}
    _preferred = {name: parameters.elements[name] for name in PREFERRED}
    _others = {name: parameters.elements[name] for name in ("strategy", "tol", "alpha")}
    _switches = {"automatic": automatic, **({} if automatic.value else {"run": run}), "experts": experts}
    _methods = {**solving.elements, "rounding": rounding, **_others} if experts.value else {}
    controls.side_panel(source, _inputs[source.value], _preferred, _switches, _methods)


@app.cell
def _(
    automatic, experts, get_marks, guesses, known, look, own, parameters, planted, remembered, rounding, solving, source
):
    # The column roles in the address are kept until a file is chosen again.
    try:
        _own = controls.table_options(own.value) if guesses else {}
    except USER_ERRORS:
        _own = {}  # the cell that loads the data shows the error
    _data = {"planted": planted.value, "known": known.value, "own table": _own}
    _ = look.value
    _state = {"source": source.value, "automatic": automatic.value, "rounding": rounding.value}
    _marks = remembered.get("marks", get_marks())
    _state |= {"experts": experts.value, "marks": _marks if len(_marks) <= controls.MAX_MARKS_LENGTH else ""}
    _state |= {"run": remembered.get("run"), **_data[source.value], **parameters.value, **solving.value}
    controls.write_address(_state, controls.DEFAULTS)


@app.cell
def _(board, file, guesses, known, own, planted, source):
    try:
        if source.value == "planted":
            where = PlantedSource(**planted.value)
        elif source.value == "known":
            where = NamedSource(**known.value)
        else:
            _read = controls.table_options(own.value)
            where = UploadedSource(file.contents(0) or b"", file.name(0) or "", **_read)
        data, wrong = where.load(), ""
    except USER_ERRORS as error:
        where, data, wrong = None, None, f"{error}{controls.hint(error)}"
        board.update(empty_board("nothing to compute"))  # views of other data would mislead
    _says = describe_guesses(guesses, own.value["columns"]) if source.value == "own table" else ""
    _shown = cards.data_summary(data.summary if data else "", wrong, _says)
    mo.vstack([mo.md("# Clusters of a table, with certified bounds"), _shown], gap=0.25)
    return data, where


@app.cell
def _(given):
    # Threads write to `board` and the page polls it: a state set by a thread can be lost while its cell runs.
    board = empty_board("starting")
    shown, under_way = {}, {}
    remembered = {"run": next(iter(given.get("run", [])), None), "marks": next(iter(given.get("marks", [])), "")}
    worker, helper, searcher = computation.take_worker(), Worker(), Worker()
    refresh = mo.ui.refresh(default_interval=0.4)
    run = mo.ui.run_button(label="Compute", kind="success")
    prove = mo.ui.run_button(label="Search for the optimum")
    stop = mo.ui.button(label="Stop", kind="danger", on_click=lambda _: [event.set() for event in under_way.values()])
    return board, helper, prove, refresh, remembered, run, searcher, shown, stop, under_way, worker


@app.cell
def _(data, remembered):
    # The labelled points in the address belong to the first data; other data start without any.
    get_marks, set_marks = mo.state("" if data is None else remembered.pop("marks", ""))
    return get_marks, set_marks


@app.cell
def _(data, get_marks):
    try:
        known_marks, wrong_marks = () if data is None else marks.read_marks(get_marks(), data), ""
    except USER_ERRORS as error:
        known_marks, wrong_marks = None, str(error)
    return known_marks, wrong_marks


@app.cell
def _(data, known_marks, parameters):
    try:
        _given = None if data is None or known_marks is None else PageSetting(**parameters.value, marks=known_marks)
        setting, _wrong = None if _given is None else _given.on_columns(data), ""
    except USER_ERRORS as error:
        setting, _wrong = None, str(error)
    cards.data_summary("", _wrong) if _wrong else None
    return (setting,)


@app.cell
def _(board):
    _states = {name: mo.state(value) for name, value in board.items()}
    get_line, get_outcome, get_search_line, get_search, *_sections = (getter for getter, _ in _states.values())
    get_labels, get_solution, get_paths, get_comparison = _sections
    setters = {name: setter for name, (_, setter) in _states.items()}
    return (
        get_comparison,
        get_labels,
        get_line,
        get_outcome,
        get_paths,
        get_search,
        get_search_line,
        get_solution,
        setters,
    )


@app.cell
def _(board, refresh, setters, shown):
    _ = refresh.value
    pass_on(board, shown, setters)
    mo.Html(f'<div class="refresh">{refresh}</div>')


@app.cell
def _(
    automatic,
    board,
    data,
    experts,
    helper,
    run,
    setters,
    setting,
    shown,
    solving,
    under_way,
    where,
    worker,
):
    asked = setting

    def answer_now(setting):
        jobs = computation.plan_jobs(where, data, setting, solving.value if experts.value else None)
        stopped = under_way["event"] = threading.Event()
        answered = threading.Event()

        def work(ended, unless_ended):
            computation.compute_jobs(
                jobs,
                (worker, helper),
                lambda: stopped.is_set() or ended(),
                unless_ended(lambda now: board.update(outcome=now)),
                unless_ended(lambda line: board.update(line=line)),
                answered.set,
            )

        start(work)
        answered.wait(computation.WAIT_SECONDS)  # usually long enough to avoid drawing the cells below twice
        pass_on(board, shown, setters)

    if asked is not None and (automatic.value or run.value):
        answer_now(asked)
    return (asked,)


@app.cell
def _(board, data, prove, searcher, setting, under_way, where):
    board.update(search_line=None, search=None)  # of other data or parameters
    mo.stop(setting is None or not prove.value)

    def search():
        job = computation.Job(computation.Outcome(where, data, setting), (), computation.plan_search(data, setting))
        stopped = under_way["search"] = threading.Event()
        start(
            lambda ended, unless_ended: job.compute(
                searcher,
                lambda: stopped.is_set() or ended(),
                unless_ended(lambda now: board.update(search=now)),
                unless_ended(lambda line: board.update(search_line=line)),
            )
        )

    search()


@app.cell
def _(get_outcome, remembered):
    _names, _run = list(get_outcome().solved) if get_outcome() else [], remembered.get("run")
    _first = _run if _run in _names else next(iter(_names), None)
    look = mo.ui.dropdown(_names, value=_first, on_change=lambda name: remembered.update(run=name))
    return (look,)


@app.cell
def _():
    get_found, set_found = mo.state(None)  # unchanged by further computations, so that the selection is kept
    return get_found, set_found


@app.cell
def _(get_outcome, look, rounding, set_found, shown):
    outcome = get_outcome()
    _found = None if outcome is None else summary.find_summary(outcome, look.value or "", rounding.value)
    if _found is not shown.get("found"):
        shown["found"] = _found
        set_found(_found)
    return (outcome,)


@app.cell
def _(get_found):
    found = get_found()
    _there = found is not None and found.data is not None
    chooser = cards.selection_plot(lambda: marks.draw_marks(found, found.marks)) if _there else None
    return chooser, found


@app.cell
def _(asked, chooser, data, found, outcome, prove, shown):
    _of_these = outcome is not None and outcome.data is data and outcome.setting == asked
    _is_new = _of_these and shown.get("found") is found
    mo.Html(cards.hero(chooser, found, outcome, _is_new, prove))


@app.cell
def _(get_line, stop):
    _line = get_line()
    mo.hstack([mo.Html(cards.status_line(_line)), *([stop] if _line.state == "running" else [])], justify="start")


@app.cell
def _(chooser, data, found, known_marks, set_marks):
    _there = chooser is not None and data is not None and found.data is data
    chosen = marks.points_in(chooser.value, found, chooser.axes) if _there else []
    _two = _there and known_marks is not None and found.scores.ndim == 1

    def belongs(text, label):
        def mark(_):
            set_marks(marks.write_marks(marks.change_marks(known_marks, chosen, label), data))

        return mo.ui.button(label=text, on_change=mark, disabled=not (chosen and _two))

    marking = mo.ui.dictionary(
        {"0": belongs("Cluster 0", -1), "1": belongs("Cluster 1", 1), "none": belongs("No label", 0)}
    )
    return chosen, marking


@app.cell
def _(get_marks, set_marks):
    marks_text = mo.ui.text(value=get_marks(), on_change=set_marks, full_width=True)
    return (marks_text,)


@app.cell
def _(chosen, data, found, known_marks, marking, marks_text, parameters, where, wrong_marks):
    mo.stop(data is None or found is None or found.data is not data)
    _two = parameters.value["n_clusters"] == 2
    cards.point_section(where, found, chosen, len(known_marks or ()), _two, marking.elements, marks_text, wrong_marks)


@app.cell
def _(found, get_search, get_search_line, parameters):
    mo.stop(parameters.value["n_clusters"] > 2)
    cards.search_section(get_search_line(), get_search(), found)


@app.cell
def _(board, experts, look, outcome, rounding):
    def draw(ended, _):  # in a thread to keep the page responsive
        k = outcome.setting.n_clusters
        for section in VIEW_SECTIONS:
            board[section] = arrange(board[section], section, k)
        for view in views_for(k):
            if view.section == VIEW_SECTIONS[0] or experts.value:
                picture = pictures.draw_picture(view.name, outcome, look.value or "", rounding.value)
                if ended():
                    return
                board[view.section] = arrange({**board[view.section], view.name: picture}, view.section, k)

    if outcome is not None:
        pyplot()  # import in the thread of the page, as marimo requires
        start(draw)


@app.cell
def _(get_labels):
    cards.section("Clusters in detail", get_labels().values())


@app.cell
def _(experts, get_solution, look):
    mo.stop(not experts.value)
    _look = f'<div class="look">{controls.control_row("run", look)}</div>'
    cards.section("For experts: solution and certified bounds", get_solution().values(), _look)


@app.cell
def _(experts, get_paths):
    mo.stop(not experts.value)
    cards.section("For experts: regularization paths", get_paths().values())


@app.cell
def _(experts, get_comparison, outcome):
    _remarks = pictures.list_remarks(outcome) if outcome else []
    mo.stop(not (experts.value or _remarks))
    _title = "For experts: comparison of methods" if experts.value else "Notes"
    _views = get_comparison().values() if experts.value else ()
    cards.section(_title, _views, tables.list_html(_remarks))


@app.cell
def _():
    mo.md("""
    Numbers in parentheses refer to equations of
    [Flammarion, Palaniappan and Bach (JMLR 2017)](https://jmlr.org/papers/v18/16-429.html).
    """)


if __name__ == "__main__":
    app.run()
