"""The options that several commands share, each defined once."""

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from diffrac_cvx.app.cli.data import TableSource, refuse_outputs
from diffrac_cvx.errors import ParameterError
from diffrac_cvx.problem.penalty import Penalty

DEFAULT_RIDGE, DEFAULT_TOL = 0.3, 1e-4  # by default, as in the estimators
FILE_HELP = "A table (.csv, .tsv, .txt, .xlsx, .parquet, .npz, .npy; one point a row), or the name of a data set."


def table_option(kind: Any, help_text: str, *names: str) -> Any:
    """Return the type of an option that says how the table is read."""
    return Annotated[kind, typer.Option(*names, help=help_text, rich_help_panel="How the table is read")]


TABLE_OPTIONS = {  # the options of the table, by the parameters of `Source`
    "label": table_option(str | None, "Column with the true labels: only compared with."),
    "drop": table_option(list[str] | None, "Column to leave out, such as a sample's number; may be repeated."),
    "one_hot": table_option(list[str] | None, "Column of categories to turn into columns of 0 and 1; may be repeated."),
    "one_hot_all": table_option(bool, "Turn every column of categories into these.", "--one-hot-all"),
    "missing": table_option(
        str, "Missing values: stop with an 'error', 'drop' the rows, or fill in the column's 'mean'."
    ),
    "header": table_option(
        bool | None,
        "Whether the first line holds the names of the columns; found out if not given.",
        "--header/--no-header",
    ),
    "separator": table_option(str | None, "What is between the values; found out if not given."),
    "decimal": table_option(str | None, "Decimal mark, '.' or ','; found out if not given."),
    "encoding": table_option(str | None, "Encoding of the text, such as cp1252; found out if not given."),
    "sheet": table_option(str | None, "Sheet of an Excel file; the first if not given."),
    "transpose": table_option(
        bool, "The rows of the file are the features, as genes often are, and its columns the points.", "--transpose"
    ),
    "top_variance": table_option(
        int | None, "Keep this many features, those of the largest variance before any scaling."
    ),
}

Nu = Annotated[
    float, typer.Option(help="How strongly clusters of equal size are preferred, 0 (not at all) to 1; start at 1.")
]
RIDGE_HELP = "How strongly directions of large variance are preferred, 0 or more: weight of the squared length of the "
Ridge = Annotated[float | None, typer.Option(help=f"{RIDGE_HELP}coefficients.", show_default="0.3")]
RidgeRoot = Annotated[float | None, typer.Option("-a", help="Root of --ridge, as in the paper.", show_default=False)]
LAMBDA_HELP = (
    "How strongly few features are preferred.  0 uses all; at 0.1 about half of them or fewer have a weight worth "
    "counting, at 1 a third or fewer, and the others often keep tiny ones.  It depends on the table: try several."
)
Lambda = Annotated[float | None, typer.Option("--lambda", "-l", help=LAMBDA_HELP, show_default="0")]
LambdaRoot = Annotated[float | None, typer.Option("-c", help="Root of --lambda, as in the paper.", show_default=False)]
Tolerance = Annotated[
    float, typer.Option("--tol", help="How exact the proof is: the search ends when the two bounds are this close.")
]
TimeLimit = Annotated[
    float | None, typer.Option("--time-limit", help="Seconds for all of it; what was found by then is printed.")
]
NoStandardize = Annotated[
    bool, typer.Option("--no-standardize", help="Leave features at their own scales instead of bringing all to one.")
]
Seed = Annotated[int, typer.Option(help="Start of the random numbers, a whole number from 0.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, for a program to read, and nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
OutFile = Annotated[Path | None, typer.Option("--out", "-o", help="Write the result to this CSV file.")]
ReportFile = Annotated[Path | None, typer.Option(help="Write a report to this HTML file, which needs no other file.")]
SaveFile = Annotated[Path | None, typer.Option(help="Write the score to this JSON file, for new points: see predict.")]
OUTPUT_OPTIONS = ("out", "report", "features", "save")  # the options that name a file to write


def with_table_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with the options of a table in place of its first parameter, a `Source`."""
    signature, keyword = inspect.signature(command), inspect.Parameter.KEYWORD_ONLY
    defaults = {"one_hot_all": False, "missing": "error", "transpose": False}  # the others: None
    parameters = [
        inspect.Parameter("file", keyword, annotation=Annotated[str, typer.Argument(help=FILE_HELP)]),
        *(
            inspect.Parameter(name, keyword, default=defaults.get(name), annotation=kind)
            for name, kind in TABLE_OPTIONS.items()
        ),
        *(parameter.replace(kind=keyword) for parameter in list(signature.parameters.values())[1:]),
    ]

    @functools.wraps(command)
    def with_table(**values: Any) -> None:
        read_options = {name: values.pop(name) for name in TABLE_OPTIONS}
        one_hot_all = read_options.pop("one_hot_all")
        read_options |= {name: tuple(read_options[name] or ()) for name in ("drop", "one_hot")}
        read_options |= {"one_hot": "all"} if one_hot_all else {}
        source = TableSource(values.pop("file"), **read_options)
        refuse_outputs(source, {f"--{name}": values[name] for name in OUTPUT_OPTIONS if values.get(name) is not None})
        command(source, **values)

    with_table.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    with_table.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return with_table


def penalty_from_options(
    lam: float | None, c: float | None, ridge: float | None, a: float | None, default: float
) -> Penalty:
    """Return the penalty of the options: weights, or their roots; ``default`` is the ridge where none is given."""
    for name, weight, flag, root in (("--lambda", lam, "-c", c), ("--ridge", ridge, "-a", a)):
        if weight is not None and root is not None:
            raise ParameterError(f"give {name} or its root {flag}, not both")
    l1 = {"lam": lam or 0.0} if c is None else {"c": c}
    l2 = {"ridge": default if ridge is None else ridge} if a is None else {"a": a}
    return Penalty(**l1, **l2)
