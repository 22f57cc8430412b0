"""The controls of the page: what each does and where to start, its element, the panel, and their state in the address.

In the page's address the state survives a reload, and can be sent to others.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

import marimo as mo

from diffrac_cvx import datasets
from diffrac_cvx.app.page.columns import FEATURE, LEFT_OUT, ROLES, ZERO_ONE, Guess, options_of_roles, visible_columns
from diffrac_cvx.app.page.columns import KNOWN_GROUPS as GROUPS_KNOWN
from diffrac_cvx.app.page.computation import EXTRAS
from diffrac_cvx.app.page.data import MAX_UPLOAD_BYTES, PlantedSource
from diffrac_cvx.app.page.solve_choice import PageSetting, list_forms
from diffrac_cvx.datasets.tables import SUFFIXES
from diffrac_cvx.errors import DataError
from diffrac_cvx.registry import MAX_SIZE_ON_PAGE, SOLVERS
from diffrac_cvx.rounding import ROUNDINGS

AddressState = Mapping[str, list[str]]  # what the address says of each control

# The label of each control, and what it does and where to start.
CONTROLS: dict[str, tuple[str, str]] = {
    "source": ("Where the points come from",
        "Points made here, whose two groups are known; a known data set; or a table of your own."),
    "n": ("points", "How many points are made. Start at 150."),
    "d": ("features", "How many numbers describe each point. Start at 10."),
    "sparsity": ("features that matter",
        "In how many of the features the two groups differ; the others are noise. Start at 1."),
    "imbalance": ("unequal sizes", "0: two groups of equal size. 0.9: nearly all points in one group. Start at 0."),
    "noise": ("noise", "How much the two groups overlap: 0 not at all, 1.5 very much. Start at 0.3."),
    "seed": ("draw", "Each number gives other points of the same kind. Start at 0."),
    "name": ("data set", "Tables whose two groups are known. Three of them have to be fetched first."),
    "scaling": ("scaling",
        "Start with standardise: every feature then varies as much as the others, whatever its unit. Without it, "
        "features in small units count more."),
    "file": ("table",
        f"A file of at most {MAX_UPLOAD_BYTES // 10**6} MB, one point a row and one feature a column: CSV, TSV, NPZ or "
        "Parquet."),
    "columns": ("columns",
        "What each column is. Known groups judge the answer, and never help to find it; columns of text can become "
        "columns of 0 and 1; what describes no point, such as the number of a sample, is left out. Start with what is "
        "guessed."),
    "drop": ("others left out", "Which of the columns that are not listed are left out. Start with none."),
    "missing": ("missing values",
        "Start with refuse, which says where they are; then leave out their rows, or take the column's mean."),
    "marks": ("known clusters",
        "Points whose clusters you know, row:cluster, such as 3:1 17:0; the answer respects them. Start with none. "
        "Where other points are loaded, they are forgotten."),
    "n_clusters": ("clusters", "How many groups the points are put into. Start at 2."),
    "strategy": ("more than two clusters",
        "How they are found: all together, or by splits in two, again and again. Start with together."),
    "nu": ("equal sizes (nu)",
        "How strongly clusters of equal size are preferred, from 0 to 1. Start at 1. At 0 all points in one cluster "
        "cost nothing."),
    "lam": ("few features (lam)",
        "How strongly few features are preferred. Start at 0, which uses all of them; then try 0.01 and more."),
    "ridge": ("large variation (ridge)",
        "How strongly directions along which the points vary much are preferred. Start at 0.3. At 0 noise is fitted "
        "where there are many features."),
    "grouped": ("columns that go together",
        "Which columns few features uses or leaves out together, where it is above 0. Start with none; by category are "
        "those that one column of text became, by prefix those whose names begin alike, up to the first _ . : or =."),
    "nonnegative": ("columns with known signs",
        "Names of columns, with commas between them, of which more can only speak for cluster 1. Start with none."),
    "alpha": ("fixed imbalance (alpha)",
        "For the problem 'imbalance fixed' alone: 0 for clusters of equal size, 1 for one cluster. Start at 0."),
    "tol": ("precision (tol)",
        "How close the proved bounds must come before a method stops; costs lie between 0 and 1. Start at 1e-4."),
    "forms": ("problems",
        "The versions of the problem that are solved. Start with 'direction alone', the quickest. Those with a row for "
        f"each point take at most {MAX_SIZE_ON_PAGE} points here."),
    "solvers": ("methods",
        "How they are solved. low_rank and fista solve 'direction alone'; SCS and CLARABEL solve all, more slowly. "
        "Start with all three: they check each other."),
    "extras": ("also computed",
        "What other settings would give, and all methods in one table. Start with all; leave some out where it takes "
        "too long."),
    "rounding": ("from solution to clusters",
        "How each point gets one of two clusters. Start with kmeans_centered; the table of roundings shows the "
        "others."),
    "run": ("solution shown", "The solution whose clusters are shown."),
    "experts": ("views for experts",
        "Other problems and methods, bounds as they close, other settings, methods compared. Start with none."),
    "automatic": ("compute at every change", "Off: only when Run is pressed. A new computation ends the one before."),
}  # fmt: skip

LAMBDA_VALUES = (0.0, *(round(m * 10.0**e, 6) for e in (-4, -3, -2, -1) for m in (1, 2, 3, 5)), 1.0)
RIDGE_VALUES = (0.0, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0)
GROUPING_OPTIONS = {"none": "none", "by category": "category", "by prefix": "prefix"}
STRATEGY_OPTIONS = {"together": "together", "repeated splits": "splits"}
MISSING_OPTIONS = {"refuse": "error", "leave out the rows": "drop", "the column's mean": "mean"}
TOLERANCE_OPTIONS = {f"1e-{digits}": 10.0**-digits for digits in (2, 3, 4, 5, 6)}
SCALING_OPTIONS = ("standardize", "min-max", "none")
SOURCE_OPTIONS = {"made here": "planted", "data set": "known", "own table": "own table"}
TALL_CONTROLS = (
    "forms",
    "solvers",
    "extras",
    "file",
    "drop",
    "columns",
    "rounding",
)  # controls below their label, not beside it
COLUMN_ROLES = ("label", "drop", "one_hot")  # what `read_table` calls the roles of columns
MAX_MARKS_LENGTH = 500  # characters of the known clusters that the address takes
EXPLAINED_CONTROLS = ("n_clusters", "nu", "lam", "ridge")  # whose meaning is always shown

# The numbers of each slider: from, to, step; or all of them.
SLIDER_STEPS: dict[str, tuple[float, ...]] = {"lam": LAMBDA_VALUES, "ridge": RIDGE_VALUES}
SLIDER_RANGES: dict[str, tuple[float, float, float]] = {
    "n": (20, 1000, 10), "d": (2, 60, 1), "sparsity": (1, 20, 1), "imbalance": (0.0, 0.9, 0.05),
    "noise": (0.0, 1.5, 0.05), "seed": (0, 20, 1), "nu": (0.0, 1.0, 0.05), "alpha": (0.0, 1.0, 0.05),
    "n_clusters": (2, 12, 1),
}  # fmt: skip
DEFAULTS: dict[str, Any] = {  # the values to start from, which the address need not say
    "source": "planted", **vars(PlantedSource()), "name": "breast_cancer", "scaling": "standardize", "label": None,
    "drop": [], "one_hot": [], "missing": "error", **vars(PageSetting()), "forms": ["(15)"],
    "solvers": ["low_rank", "fista", "CLARABEL"],
    "extras": list(EXTRAS), "rounding": "kmeans_centered", "run": None, "automatic": True,
    "experts": False, "marks": "",
}  # fmt: skip
CONTROL_GROUPS = {  # the controls of each kind of data, of what is preferred, and of how it is solved
    "planted": tuple(vars(PlantedSource())),
    "known": ("name", "scaling"),
    "own table": ("missing", "scaling"),
    "parameters": ("n_clusters", "nu", "lam", "ridge", "grouped", "nonnegative", "alpha", "strategy", "tol"),
    "solving": ("forms", "solvers", "extras"),
}


def elements(kind: str, given: AddressState) -> Any:
    """Return a group of controls."""
    return mo.ui.dictionary({name: element(name, given) for name in CONTROL_GROUPS[kind]})


def elements_of_table(given: AddressState, guesses: Mapping[str, Guess]) -> Any:
    """Return the controls of a user's own table: the role of each column, by the address or by what it seems to be."""
    is_given = any(name in given for name in COLUMN_ROLES)
    roles = {name: given_role(given, name) if is_given else guesses[name].role for name in guesses}
    shown = visible_columns(guesses)
    dropdowns = {name: mo.ui.dropdown(ROLES, value=roles[name], allow_select_none=False) for name in shown}
    parts: dict[str, Any] = {"columns": mo.ui.dictionary(dropdowns)}
    others = [name for name in guesses if name not in dropdowns]
    if others:
        out = [name for name in others if roles[name] == LEFT_OUT]
        parts["drop"] = mo.ui.multiselect(others, value=out, label=CONTROLS["drop"][0], full_width=True)
    return mo.ui.dictionary({**parts, **elements("own table", given).elements})


def given_role(given: AddressState, name: str) -> str:
    """Return the role of a column that the address gives."""
    roles = dict(zip(COLUMN_ROLES, (GROUPS_KNOWN, LEFT_OUT, ZERO_ONE), strict=True))
    return next((role for key, role in roles.items() if name in given.get(key, [])), FEATURE)


def table_options(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return how a table is read, from the values of its controls; raise where two columns are the known groups."""
    options = options_of_roles(value["columns"])
    options["drop"] = [*options["drop"], *value.get("drop", [])]
    return {**options, **{name: value[name] for name in CONTROL_GROUPS["own table"]}}


def element(name: str, given: AddressState) -> Any:
    """Return a slider, a choice of one option or several, or a switch, as the address says; or the place for a file."""
    if name in SLIDER_STEPS or name in SLIDER_RANGES:
        return slider(name, given)
    if isinstance(DEFAULTS.get(name), bool):
        default = to_text(DEFAULTS[name])
        return mo.ui.switch(value=given.get(name, [default]) == ["1"], label=label_of(name))
    if name == "file":
        return mo.ui.file(filetypes=SUFFIXES, label="Choose a file", max_size=MAX_UPLOAD_BYTES)
    if name == "nonnegative":
        return mo.ui.text(value=next(iter(given.get(name, [])), "")[:MAX_MARKS_LENGTH], full_width=True)
    options, default = options_of(name), DEFAULTS[name]
    if isinstance(default, list):
        keys = [key for key, value in options.items() if value in default]
        chosen = given_options(given, name, keys, options)
        return mo.ui.multiselect(options, value=chosen, label=CONTROLS[name][0], full_width=True)
    key = next((key for key, value in options.items() if value == default), None)
    start = given_option(given, name, key, options)
    if name == "source":
        return mo.ui.radio(options, value=start, inline=True, label=CONTROLS[name][0])
    return mo.ui.dropdown(options, value=start, full_width=True)


def slider(name: str, given: AddressState) -> Any:
    """Return a slider that updates its value when it is released."""
    default = DEFAULTS[name]
    start, stop, step = SLIDER_RANGES.get(name, (0, 0, 1))
    allowed = SLIDER_STEPS.get(name) or [round(start + k * step, 9) for k in range(round((stop - start) / step) + 1)]
    shape: dict[str, Any] = {"steps": allowed} if name in SLIDER_STEPS else {"start": start, "stop": stop, "step": step}
    value = type(default)(given_number(given, name, default, allowed))
    return mo.ui.slider(value=value, debounce=True, show_value=True, full_width=True, **shape)


def options_of(name: str) -> dict[str, Any]:
    """Return what can be chosen, by its name on the page; what is given as a sequence has its own name."""
    numbers = {form: form if form.startswith("(") else f"({form})" for form in list_forms()}
    choices: dict[str, Mapping[str, Any] | Sequence[str]] = {
        "source": SOURCE_OPTIONS, "name": datasets.names(), "scaling": SCALING_OPTIONS,
        "missing": MISSING_OPTIONS, "strategy": STRATEGY_OPTIONS, "tol": TOLERANCE_OPTIONS, "grouped": GROUPING_OPTIONS,
        "forms": {f"{record.summary} {numbers[form]}": form for form, (_, record) in list_forms().items()},
        "solvers": tuple(SOLVERS), "extras": tuple(EXTRAS), "rounding": tuple(ROUNDINGS),
    }  # fmt: skip
    choice = choices[name]
    return dict(choice) if isinstance(choice, Mapping) else {name: name for name in choice}


def label_of(name: str) -> str:
    """Return the label of a control as Markdown, with the text that appears when the pointer rests on it."""
    text, meaning = CONTROLS[name]
    return f'<span data-tooltip="{escape(meaning)}">{text}</span>'


def list_meanings() -> str:
    """Return what all controls and problems mean, as a list in Markdown."""
    lines = [f"- **{text}**: {meaning}" for text, meaning in CONTROLS.values()]
    lines += ["", "The problems, with n points and d features:", ""]
    for form, (name, record) in list_forms().items():
        place = form if form.startswith("section") else f"Eq. {form}"
        lines.append(f"- **{record.summary}**: {place} of the paper, `{name}`, a matrix of {record.shape}")
    return "\n".join(lines)


def hint(error: Exception) -> str:
    """Return the controls that would help, in parentheses."""
    remedies = error.remedies if isinstance(error, DataError) else ()
    there = ("columns" if remedy in COLUMN_ROLES else remedy for remedy in remedies)
    labels = [CONTROLS[remedy][0] for remedy in dict.fromkeys(there) if remedy in CONTROLS]
    return f" (in the panel: {' or '.join(labels)})" if labels else ""


def control_row(name: str, element: Any) -> str:
    """Return a control with its label as HTML; the script of the page tells screen readers its name and meaning."""
    kind, text = "control tall" if name in TALL_CONTROLS else "control", mo.md(label_of(name)).text
    label, meaning = (escape(part) for part in CONTROLS[name])
    shown = f'<div class="meaning">{meaning}</div>' if name in EXPLAINED_CONTROLS else ""
    return (
        f'<div class="{kind}" data-control="{name}" data-name="{label}" data-meaning="{meaning}">'
        f"<div>{text}</div><div>{element}</div>{shown}</div>"
    )


def control_group(elements: Mapping[str, Any]) -> str:
    """Return controls in a container of their own: others keep their places, and the browser does not confuse them."""
    return f'<div class="group">{"".join(control_row(name, element) for name, element in elements.items())}</div>'


def chips(columns: Mapping[str, Any]) -> str:
    """Return the columns of a table, each with its role, as HTML."""
    meaning = escape(CONTROLS["columns"][1])
    made = (
        f'<div class="chip" data-control="column" data-name="{escape(name)}" data-meaning="{meaning}">'
        f'<span title="{escape(name)}">{escape(name)}</span>{role}</div>'
        for name, role in columns.items()
    )
    return f'<div class="chips">{"".join(made)}</div>'


def side_panel(
    source: Any, data: Mapping[str, Any], preferences: Mapping[str, Any], switches: Mapping[str, Any],
    methods: Mapping[str, Any],
) -> Any:  # fmt: skip
    """Return the side panel: the data, what is preferred, and the problems and methods for experts."""
    parts = [
        '<div class="side"><h2>Data</h2></div>', source, control_group(data),
        '<div class="side"><h2>What is preferred</h2></div>', control_group(preferences),
        f'<div class="switches">{"".join(f"<div>{switch}</div>" for switch in switches.values())}</div>',
        *([control_group(methods)] if methods else []),
        mo.accordion({"What the controls mean": mo.md(list_meanings())}),
    ]  # fmt: skip
    return mo.sidebar([mo.Html(part) if isinstance(part, str) else part for part in parts], width="23rem")


def read_address() -> AddressState:
    """Return what the address says; the cell that asks does not run again when the address changes."""
    parameters = mo.query_params()
    return {name: parameters.get_all(name) for name in parameters}


def write_address(values: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
    """Put the values that are not the usual ones into the address, and take out those that are."""
    parameters = mo.query_params()
    for name, value in values.items():
        texts, now = to_texts(value), parameters.get_all(name)
        if texts == to_texts(defaults[name]):
            if now:
                parameters.remove(name)
        elif texts != now:
            parameters[name] = texts if len(texts) > 1 else texts[0]


def to_texts(value: Any) -> list[str]:
    """Return a value as the address has it; an empty choice is one empty text."""
    values = value if isinstance(value, list | tuple) else [value]
    return [to_text(one) for one in values] or [""]


def to_text(value: Any) -> str:
    """Return one value as text, a number as short as can be, true as 1."""
    if isinstance(value, int | float):
        return f"{value:g}"
    return "" if value is None else str(value)


def given_number(given: AddressState, name: str, default: float, allowed: Iterable[float]) -> float:
    """Return the number that the address gives if it is one of those allowed, up to rounding; else the usual one."""
    try:
        wanted = float(given[name][0])
    except (KeyError, IndexError, ValueError):
        return default
    nearest = min(allowed, key=lambda value: abs(value - wanted))
    return nearest if abs(nearest - wanted) <= 1e-9 else default


def given_option(given: AddressState, name: str, default: str | None, options: Mapping[str, Any]) -> str | None:
    """Return the key of the option whose value the address gives, if there is one; else the usual key."""
    return next((key for key, value in options.items() if [to_text(value)] == given.get(name)), default)


def given_options(given: AddressState, name: str, default: list[str], options: Mapping[str, Any]) -> list[str]:
    """Return the keys of the options whose values the address gives; the usual ones where it says nothing."""
    if name not in given:
        return default
    return [key for key, value in options.items() if to_text(value) in given[name]]
