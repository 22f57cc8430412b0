"""The options that several commands share, each defined once."""

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from diffrac_cvx.app.cli.data import Source, refuse_outputs
from diffrac_cvx.errors import ParameterError
from diffrac_cvx.problem.penalty import Penalty

RIDGE = 0.3  # by default, as in the estimator
FILE = "A table (.csv, .tsv, .txt, .xlsx, .parquet, .npz, .npy; one point a row), or the name of a data set."
File = Annotated[str, typer.Argument(help=FILE)]
TABLE = "How the table is read"
SOURCE: dict[str, tuple[Any, Any]] = {  # the options of the table: each a type, and what it is by default
    "label": (
        Annotated[
            str | None, typer.Option(help="Column with the true labels: only compared with.", rich_help_panel=TABLE)
        ],
        None,
    ),
    "drop": (
        Annotated[
            list[str] | None,
            typer.Option(
                help="Column to leave out, such as a sample's number; may be repeated.", rich_help_panel=TABLE
            ),
        ],
        None,
    ),
    "one_hot": (
        Annotated[
            list[str] | None,
            typer.Option(
                help="Column of categories to turn into columns of 0 and 1; may be repeated.", rich_help_panel=TABLE
            ),
        ],
        None,
    ),
    "one_hot_all": (
        Annotated[
            bool,
            typer.Option("--one-hot-all", help="Turn every column of categories into these.", rich_help_panel=TABLE),
        ],
        False,
    ),
    "missing": (
        Annotated[
            str,
            typer.Option(
                help="Missing values: stop with an 'error', 'drop' the rows, or fill in the column's 'mean'.",
                rich_help_panel=TABLE,
            ),
        ],
        "error",
    ),
    "header": (
        Annotated[
            bool | None,
            typer.Option(
                "--header/--no-header",
                help="Whether the first line holds the names of the columns; found out if not given.",
                rich_help_panel=TABLE,
            ),
        ],
        None,
    ),
    "separator": (
        Annotated[
            str | None, typer.Option(help="What is between the values; found out if not given.", rich_help_panel=TABLE)
        ],
        None,
    ),
    "decimal": (
        Annotated[
            str | None, typer.Option(help="Decimal mark, '.' or ','; found out if not given.", rich_help_panel=TABLE)
        ],
        None,
    ),
    "encoding": (
        Annotated[
            str | None,
            typer.Option(help="Encoding of the text, such as cp1252; found out if not given.", rich_help_panel=TABLE),
        ],
        None,
    ),
    "sheet": (
        Annotated[
            str | None, typer.Option(help="Sheet of an Excel file; the first if not given.", rich_help_panel=TABLE)
        ],
        None,
    ),
}

Nu = Annotated[
    float, typer.Option(help="How strongly clusters of equal size are preferred, 0 (not at all) to 1; start at 1.")
]
Ridge = Annotated[
    float | None,
    typer.Option(
        help="How strongly directions of large variance are preferred, 0 or more: weight of the squared length of the "
        "coefficients.",
        show_default="0.3",
    ),
]
RidgeRoot = Annotated[float | None, typer.Option("-a", help="Root of --ridge, as in the paper.", show_default=False)]
Lambda = Annotated[
    float | None,
    typer.Option(
        "--lambda",
        "-l",
        help="How strongly few features are preferred, 0 (all are used) to about 1 (one is).",
        show_default="0",
    ),
]
LambdaRoot = Annotated[float | None, typer.Option("-c", help="Root of --lambda, as in the paper.", show_default=False)]
Tolerance = Annotated[
    float, typer.Option("--tol", help="How exact the proof is: the search ends when the two bounds are this close.")
]
Seconds = Annotated[
    float | None, typer.Option("--time-limit", help="Seconds for all of it; what was found by then is printed.")
]
Raw = Annotated[
    bool, typer.Option("--no-standardize", help="Leave features at their own scales instead of bringing all to one.")
]
Seed = Annotated[int, typer.Option(help="Start of the random numbers, a whole number from 0.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, for a program to read, and nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
Out = Annotated[Path | None, typer.Option("--out", "-o", help="Write the result to this CSV file.")]
Report = Annotated[Path | None, typer.Option(help="Write a report to this HTML file, which needs no other file.")]
OUTPUTS = ("out", "report")  # the options that name a file to write


def reads_a_table(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with the options of a table in place of its first parameter, a `Source`.

    What it is to write is looked at before it is called: see `refuse_outputs`.
    """
    signature = inspect.signature(command)
    own = list(signature.parameters.values())[1:]
    keyword = inspect.Parameter.KEYWORD_ONLY
    added = [inspect.Parameter("file", keyword, annotation=File)]
    added += [
        inspect.Parameter(name, keyword, default=default, annotation=kind) for name, (kind, default) in SOURCE.items()
    ]
    every = [*added, *(parameter.replace(kind=keyword) for parameter in own)]

    @functools.wraps(command)
    def with_table(**values: Any) -> None:
        taken = {name: values.pop(name) for name in ("file", *SOURCE)}
        if taken.pop("one_hot_all"):
            taken["one_hot"] = "all"
        for name in ("drop", "one_hot"):
            taken[name] = taken[name] if isinstance(taken[name], str) else tuple(taken[name] or ())
        source = Source(**taken)
        refuse_outputs(source, {f"--{name}": values[name] for name in OUTPUTS if values.get(name) is not None})
        command(source, **values)

    with_table.__signature__ = signature.replace(parameters=every)  # type: ignore[attr-defined]
    with_table.__annotations__ = {parameter.name: parameter.annotation for parameter in every}
    return with_table


def penalty_of(lam: float | None, c: float | None, ridge: float | None, a: float | None, default: float) -> Penalty:
    """Return the penalty of the options: weights, or their roots; ``default`` is the ridge where none is given.

    Raises
    ------
    ParameterError
        If a weight is given with its root, or is not usable.
    """
    for name, weight, flag, root in (("--lambda", lam, "-c", c), ("--ridge", ridge, "-a", a)):
        if weight is not None and root is not None:
            raise ParameterError(f"give {name} or its root {flag}, not both")
    sizes = {name: root for name, root in (("c", c), ("a", a)) if root is not None}
    weights = {} if c is not None else {"lam": lam or 0.0}
    weights |= {} if a is not None else {"ridge": default if ridge is None else ridge}
    return Penalty(**sizes, **weights)
