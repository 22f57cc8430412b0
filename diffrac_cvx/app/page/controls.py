"""Controls of the page: descriptions, elements, side panel, and their state in the address.

The address keeps the state over a reload and can be shared.
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

AddressState = Mapping[str, list[str]]  # values of the controls in the address

# The label of each control, and its description with the value to start from.
CONTROLS: dict[str, tuple[str, str]] = {
    "source": ("Data source", "Simulated points with two known classes, a built-in data set, or your own table."),
    "n": ("points", "Number of simulated points. Start at 150."),
    "d": ("features", "Number of features of each point. Start at 10."),
    "sparsity": ("informative features",
        "Number of features that differ between the two classes; the others are noise. Start at 1."),
    "imbalance": ("imbalance",
        "Imbalance of the two classes: 0 for equal sizes, 0.9 for nearly all points in one class. Start at 0."),
    "noise": ("noise", "Overlap of the two classes, from 0 (none) to 1.5 (strong). Start at 0.3."),
    "seed": ("seed", "Seed of the random number generator. Start at 0."),
    "name": ("data set", "Built-in data sets with two classes. Three of them have to be downloaded first."),
    "scaling": ("scaling",
        "Start with standardize: it gives every feature unit variance. Without scaling, features in small units "
        "dominate."),
    "file": ("table",
        f"Table file of at most {MAX_UPLOAD_BYTES // 10**6} MB, one point per row and one feature per column: CSV, "
        "TSV, NPZ or Parquet."),
    "columns": ("columns",
        "Role of each column. Reference labels are used for evaluation only; one-hot converts a categorical column to "
        "binary columns; excluded columns, such as sample IDs, are not used. Start with the detected roles."),
    "drop": ("other excluded columns", "Excluded columns among those that are not listed. Start with none."),
    "missing": ("missing values",
        "Start with error, which reports where they are; then drop the rows or impute the column mean."),
    "marks": ("labelled points",
        "Points with known clusters as row:cluster, such as 3:1 17:0; the clusters satisfy these constraints. Start "
        "with none. Loading other points removes them."),
    "n_clusters": ("clusters", "Number of clusters. Start at 2."),
    "strategy": ("more than two clusters", "All clusters together, or repeated two-way splits. Start with together."),
    "nu": ("equal sizes (nu)",
        "Strength of the preference for clusters of equal size, from 0 (none) to 1. Start at 1. At 0, a single cluster "
        "has cost 0."),
    "lam": ("feature selection (lam)",
        "Weight of the l1 penalty; larger values select fewer features. Start at 0, which disables selection; then try "
        "0.01 and more."),
    "ridge": ("large variance (ridge)",
        "Weight of the squared penalty; larger values favour directions of large variance. Start at 0.3. At 0, many "
        "features overfit the noise."),
    "grouped": ("feature groups",
        "Columns that are selected or excluded together if lam is above 0. Start with none; by category groups the "
        "binary columns of one categorical column, by prefix the columns with names alike up to the first _ . : or =."),
    "nonnegative": ("nonnegative coefficients",
        "Names of columns, separated by commas, whose coefficients must be >= 0, without feature groups. Start "
        "with none."),
    "alpha": ("fixed imbalance (alpha)",
        "Only for the problem 'imbalance fixed': from 0 (equal sizes) to 1 (one cluster). Start at 0."),
    "tol": ("tolerance (tol)", "Absolute tolerance on the duality gap; costs are between 0 and 1. Start at 1e-4."),
    "forms": ("relaxations",
        "Relaxations to solve. Start with 'direction alone', the fastest. Those with a row per point accept at most "
        f"{MAX_SIZE_ON_PAGE} points here."),
    "solvers": ("solvers",
        "low_rank and fista solve 'direction alone' only; SCS and CLARABEL solve all relaxations, more slowly. Start "
        "with all three to cross-check them."),
    "extras": ("further computations",
        "Regularization paths and a comparison of methods. Start with all; exclude some to save time."),
    "rounding": ("rounding",
        "Method that derives two clusters from a solution. Start with kmeans_centered; the table of roundings compares "
        "all."),
    "run": ("solution", "Solution whose clusters are shown."),
    "experts": ("expert views",
        "Other relaxations and solvers, convergence, regularization paths, comparison of methods. Start with it off."),
    "automatic": ("compute at every change",
        "Off: only when Compute is pressed. A new computation cancels the last one."),
}  # fmt: skip

LAMBDA_VALUES = (0.0, *(round(m * 10.0**e, 6) for e in (-4, -3, -2, -1) for m in (1, 2, 3, 5)), 1.0)
RIDGE_VALUES = (0.0, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0)
GROUPING_OPTIONS = {"none": "none", "by category": "category", "by prefix": "prefix"}
STRATEGY_OPTIONS = {"together": "together", "repeated splits": "splits"}
MISSING_OPTIONS = {"error": "error", "drop the rows": "drop", "impute the column mean": "mean"}
TOLERANCE_OPTIONS = {f"1e-{digits}": 10.0**-digits for digits in (2, 3, 4, 5, 6)}
SCALING_OPTIONS = ("standardize", "min-max", "none")
SOURCE_OPTIONS = {"simulated": "planted", "data set": "known", "own table": "own table"}
TALL_CONTROLS = (
    "forms",
    "solvers",
    "extras",
    "file",
    "drop",
    "columns",
    "rounding",
)  # controls below their label instead of beside it
COLUMN_ROLES = ("label", "drop", "one_hot")  # parameters of `read_table` for the roles of columns
MAX_MARKS_LENGTH = 500  # characters of the labelled points in the address
EXPLAINED_CONTROLS = ("n_clusters", "nu", "lam", "ridge")  # with a description that is always shown

# Values of each slider: all of them, or start, stop and step.
SLIDER_STEPS: dict[str, tuple[float, ...]] = {"lam": LAMBDA_VALUES, "ridge": RIDGE_VALUES}
SLIDER_RANGES: dict[str, tuple[float, float, float]] = {
    "n": (20, 1000, 10), "d": (2, 60, 1), "sparsity": (1, 20, 1), "imbalance": (0.0, 0.9, 0.05),
    "noise": (0.0, 1.5, 0.05), "seed": (0, 20, 1), "nu": (0.0, 1.0, 0.05), "alpha": (0.0, 1.0, 0.05),
    "n_clusters": (2, 12, 1),
}  # fmt: skip
DEFAULTS: dict[str, Any] = {  # the address omits these values
    "source": "planted", **vars(PlantedSource()), "name": "breast_cancer", "scaling": "standardize", "label": None,
    "drop": [], "one_hot": [], "missing": "error", **vars(PageSetting()), "forms": ["(15)"],
    "solvers": ["low_rank", "fista", "CLARABEL"],
    "extras": list(EXTRAS), "rounding": "kmeans_centered", "run": None, "automatic": True,
    "experts": False, "marks": "",
}  # fmt: skip
CONTROL_GROUPS = {  # by data source, parameters and solving
    "planted": tuple(vars(PlantedSource())),
    "known": ("name", "scaling"),
    "own table": ("missing", "scaling"),
    "parameters": ("n_clusters", "nu", "lam", "ridge", "grouped", "nonnegative", "alpha", "strategy", "tol"),
    "solving": ("forms", "solvers", "extras"),
}


def elements(kind: str, given: AddressState) -> Any:
    """Return the controls of a group."""
    return mo.ui.dictionary({name: element(name, given) for name in CONTROL_GROUPS[kind]})


def elements_of_table(given: AddressState, guesses: Mapping[str, Guess]) -> Any:
    """Return the controls of a user's table, with the role of each column from the address or as detected."""
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
    """Return the role of a column in the address."""
    roles = dict(zip(COLUMN_ROLES, (GROUPS_KNOWN, LEFT_OUT, ZERO_ONE), strict=True))
    return next((role for key, role in roles.items() if name in given.get(key, [])), FEATURE)


def table_options(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of `read_table` from the controls; raise if two columns are reference labels."""
    options = options_of_roles(value["columns"])
    options["drop"] = [*options["drop"], *value.get("drop", [])]
    return {**options, **{name: value[name] for name in CONTROL_GROUPS["own table"]}}


def element(name: str, given: AddressState) -> Any:
    """Return the element of a control, with its value from the address."""
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
    """Return a slider whose value updates on release."""
    default = DEFAULTS[name]
    start, stop, step = SLIDER_RANGES.get(name, (0, 0, 1))
    allowed = SLIDER_STEPS.get(name) or [round(start + k * step, 9) for k in range(round((stop - start) / step) + 1)]
    shape: dict[str, Any] = {"steps": allowed} if name in SLIDER_STEPS else {"start": start, "stop": stop, "step": step}
    value = type(default)(given_number(given, name, default, allowed))
    return mo.ui.slider(value=value, debounce=True, show_value=True, full_width=True, **shape)


def options_of(name: str) -> dict[str, Any]:
    """Return the options of a control by their name on the page."""
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
    """Return the label of a control as Markdown, with its description as a tooltip."""
    text, meaning = CONTROLS[name]
    return f'<span data-tooltip="{escape(meaning)}">{text}</span>'


def list_meanings() -> str:
    """Return the descriptions of all controls and relaxations as a Markdown list."""
    lines = [f"- **{text}**: {meaning}" for text, meaning in CONTROLS.values()]
    lines += ["", "The relaxations, with n points and d features:", ""]
    for form, (name, record) in list_forms().items():
        place = form if form.startswith("section") else f"Eq. {form}"
        lines.append(f"- **{record.summary}**: {place} of the paper, `{name}`, matrix variable of size {record.shape}")
    return "\n".join(lines)


def hint(error: Exception) -> str:
    """Return the controls that remedy an error, in parentheses."""
    remedies = error.remedies if isinstance(error, DataError) else ()
    there = ("columns" if remedy in COLUMN_ROLES else remedy for remedy in remedies)
    labels = [CONTROLS[remedy][0] for remedy in dict.fromkeys(there) if remedy in CONTROLS]
    return f" (see the controls: {' or '.join(labels)})" if labels else ""


def control_row(name: str, element: Any) -> str:
    """Return a control with its label as HTML; a script passes name and description to screen readers."""
    kind, text = "control tall" if name in TALL_CONTROLS else "control", mo.md(label_of(name)).text
    label, meaning = (escape(part) for part in CONTROLS[name])
    shown = f'<div class="meaning">{meaning}</div>' if name in EXPLAINED_CONTROLS else ""
    return (
        f'<div class="{kind}" data-control="{name}" data-name="{label}" data-meaning="{meaning}">'
        f"<div>{text}</div><div>{element}</div>{shown}</div>"
    )


def control_group(elements: Mapping[str, Any]) -> str:
    """Return controls in one container, so that the browser keeps other controls in place."""
    return f'<div class="group">{"".join(control_row(name, element) for name, element in elements.items())}</div>'


def chips(columns: Mapping[str, Any]) -> str:
    """Return the columns of a table with their roles as HTML."""
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
    """Return the side panel: data, parameters, and relaxations and solvers for experts."""
    parts = [
        '<div class="side"><h2>Data</h2></div>', source, control_group(data),
        '<div class="side"><h2>Parameters</h2></div>', control_group(preferences),
        f'<div class="switches">{"".join(f"<div>{switch}</div>" for switch in switches.values())}</div>',
        *([control_group(methods)] if methods else []),
        mo.accordion({"Description of the controls": mo.md(list_meanings())}),
    ]  # fmt: skip
    return mo.sidebar([mo.Html(part) if isinstance(part, str) else part for part in parts], width="23rem")


def read_address() -> AddressState:
    """Return the state in the address; the calling cell does not rerun when the address changes."""
    parameters = mo.query_params()
    return {name: parameters.get_all(name) for name in parameters}


def write_address(values: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
    """Write the values that differ from the defaults into the address, and remove the others."""
    parameters = mo.query_params()
    for name, value in values.items():
        texts, now = to_texts(value), parameters.get_all(name)
        if texts == to_texts(defaults[name]):
            if now:
                parameters.remove(name)
        elif texts != now:
            parameters[name] = texts if len(texts) > 1 else texts[0]


def to_texts(value: Any) -> list[str]:
    """Return a value as texts for the address; an empty choice is one empty text."""
    values = value if isinstance(value, list | tuple) else [value]
    return [to_text(one) for one in values] or [""]


def to_text(value: Any) -> str:
    """Return one value as text, numbers in shortest form, true as 1."""
    if isinstance(value, int | float):
        return f"{value:g}"
    return "" if value is None else str(value)


def given_number(given: AddressState, name: str, default: float, allowed: Iterable[float]) -> float:
    """Return the number in the address if it is allowed, up to rounding; else the default."""
    try:
        wanted = float(given[name][0])
    except (KeyError, IndexError, ValueError):
        return default
    nearest = min(allowed, key=lambda value: abs(value - wanted))
    return nearest if abs(nearest - wanted) <= 1e-9 else default


def given_option(given: AddressState, name: str, default: str | None, options: Mapping[str, Any]) -> str | None:
    """Return the key of the option in the address, if there is one; else the default."""
    return next((key for key, value in options.items() if [to_text(value)] == given.get(name)), default)


def given_options(given: AddressState, name: str, default: list[str], options: Mapping[str, Any]) -> list[str]:
    """Return the keys of the options in the address; the default if the address has none."""
    if name not in given:
        return default
    return [key for key, value in options.items() if to_text(value) in given[name]]
