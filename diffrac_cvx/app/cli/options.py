"""Options shared by several commands, each with one help text."""

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from diffrac_cvx.app.cli.data import TableSource, parse_skip_rows, refuse_outputs
from diffrac_cvx.errors import ParameterError
from diffrac_cvx.points.checks import one_of
from diffrac_cvx.problem.penalty import Penalty

DEFAULT_RIDGE, DEFAULT_TOL = 0.3, 1e-4  # as in the estimators
FILE_HELP = (
    "Table file (.csv, .tsv, .txt, .xlsx, .parquet, .npz, .npy, .libsvm, also as .gz, .bz2, .xz or .zip; one point per "
    "row) or name of a data set."
)

READING_RULES = "\n\n".join(
    (
        "Rules for reading a table; notes say what was assumed, and the option changes it.",
        "1. Text is UTF-8 or UTF-16, else cp1252 (--encoding); the separator occurs equally often in most "
        "lines (--separator).",
        "2. Blank lines, lines starting with # and lines with few entries above the names are skipped (--skip-rows, "
        "--comment).",
        "3. The first line has the names if every entry is text or a whole number, whole numbers increase or decrease "
        "(count up by one if the table has whole numbers only), and no text recurs in its column unless another is "
        "above numbers (--header).",
        "4. A first column without a name has row names and is excluded.",
        "5. Each column has the decimal mark with which all its entries are numbers; if both are possible, the other "
        "columns decide, but none that is excluded (--decimal, --thousands).",
        "6. Missing are empty entries and those that pandas knows, such as NA (--na-values, --missing).",
        "7. Text is trimmed, and is an error among the features (--drop, --one-hot, --reference-column).",
        "8. Unlabelled in --known are empty entries and, beside two or more other values, -1 (--unlabelled).",
        "9. Columns are features; with --transpose every numeric column is a point.",
        "10. Suspicious values such as -999, row numbers and last rows such as Total are used as they are, with a note "
        "(--drop, --skip-footer).",
        "11. Rows of data are counted from 0, before any is dropped.",
    )
)


def table_option(kind: Any, help_text: str, *names: str, **settings: Any) -> Any:
    """Return the type of an option of `read_table`."""
    return Annotated[kind, typer.Option(*names, help=help_text, rich_help_panel="Reading the table", **settings)]


MISSING_HELP = "Missing values: stop with an 'error', 'drop' the rows, or impute the column 'mean'."
Missing = table_option(str, MISSING_HELP)
MissingOrSaved = table_option(str | None, MISSING_HELP, show_default="as saved in the model")
Header = table_option(
    str | None,
    "Whether the first line has the column names.  By default it does if every entry is text or a whole number and the "
    "whole numbers increase or decrease.",
    metavar="yes|no",
)
Separator = table_option(str | None, "Field separator; by default the one that occurs equally often in most lines.")
Decimal = table_option(
    str | None,
    "Decimal mark, '.' or ','; by default, column by column, the one with which all entries are numbers.",
)
Thousands = table_option(str | None, "Thousands separator, '.' or ',', if numbers such as 1.204 leave it open.")
Encoding = table_option(str | None, "Text encoding, such as cp1252; by default UTF-8, else cp1252.")
NaValues = table_option(
    list[str] | None, "Text of a missing value, such as ? or -999, besides those of pandas; may be repeated."
)
SkipRows = table_option(str | None, "Number of lines to skip at the start, or a range of lines such as 2-2 (units).")
SkipFooter = table_option(int, "Number of lines to skip at the end, such as totals.")
Comment = table_option(
    str | None, "Start of comments; by default lines above the table that start with # are skipped, and with '' none."
)
Sheet = table_option(str | None, "Sheet of an Excel file; the first by default.")
FILE_OPTIONS = {  # that also apply to a new file, by parameters of `read_table`
    "header": Header,
    "separator": Separator,
    "decimal": Decimal,
    "thousands": Thousands,
    "encoding": Encoding,
    "na_values": NaValues,
    "skip_rows": SkipRows,
    "skip_footer": SkipFooter,
    "comment": Comment,
    "sheet": Sheet,
}
TABLE_OPTIONS = {  # by the parameters of `TableSource`
    "label": table_option(
        str | None, "Column with reference labels; used for evaluation only.", "--reference-column", "--label"
    ),
    "drop": table_option(list[str] | None, "Column to exclude, such as a sample ID; may be repeated."),
    "one_hot": table_option(
        list[str] | None, "Categorical column to convert to binary (one-hot) columns; may be repeated."
    ),
    "one_hot_all": table_option(bool, "Convert every categorical column to binary columns.", "--one-hot-all"),
    "missing": Missing,
    **FILE_OPTIONS,
    "transpose": table_option(
        bool, "Features are the rows of the file, as is usual for genes, and points its columns.", "--transpose"
    ),
    "top_variance": table_option(
        int | None, "Number of features to select, those of the largest variance before scaling."
    ),
}

NU_HELP = "Strength of the preference for clusters of equal size, from 0 (none) to 1."
Nu = Annotated[float, typer.Option(help=NU_HELP)]
RIDGE_HELP = (
    "Weight of the squared penalty on the coefficients, 0 or more; larger values favour directions of large variance."
)
RIDGE_DEFAULT = "0.3"
Ridge = Annotated[float | None, typer.Option(help=RIDGE_HELP, show_default=RIDGE_DEFAULT)]
RidgeRoot = Annotated[
    float | None, typer.Option("-a", help="Square root of --ridge, as in the paper.", show_default=False)
]
LAMBDA_HELP = (
    "Weight of the l1 penalty; 0 disables feature selection.  Typically about half of the features or fewer keep a "
    "non-negligible coefficient at 0.1, and a third or fewer at 1.  This depends on the table: try several values."
)
LAMBDA_DEFAULT = "0"
Lambda = Annotated[float | None, typer.Option("--lambda", "-l", help=LAMBDA_HELP, show_default=LAMBDA_DEFAULT)]
LambdaRoot = Annotated[
    float | None, typer.Option("-c", help="Square root of --lambda, as in the paper.", show_default=False)
]
Tolerance = Annotated[
    float, typer.Option("--tol", help="Absolute tolerance on the duality gap, the upper minus the lower bound.")
]
TimeLimit = Annotated[
    float | None,
    typer.Option("--time-limit", help="Time limit of the command in seconds; the best result so far is returned."),
]
NoStandardize = Annotated[bool, typer.Option("--no-standardize", help="Do not standardise the features.")]
Seed = Annotated[int, typer.Option(help="Seed of the random number generator, a non-negative integer.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]
OutFile = Annotated[Path | None, typer.Option("--out", "-o", help="CSV file for the result.")]
ReportFile = Annotated[Path | None, typer.Option(help="HTML file for a self-contained report.")]
SaveFile = Annotated[Path | None, typer.Option(help="JSON file for the fitted model, to be read by `predict`.")]
OUTPUT_OPTIONS = ("out", "report", "features", "save")  # that name an output file


def with_table_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command whose first parameter, a `TableSource`, is replaced by the table options."""
    signature, keyword = inspect.signature(command), inspect.Parameter.KEYWORD_ONLY
    defaults = {"one_hot_all": False, "missing": "error", "transpose": False, "skip_footer": 0}  # the others: None
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
        read_options |= parse_file_options(read_options)
        source = TableSource(values.pop("file"), **read_options)
        refuse_outputs(source, {f"--{name}": values[name] for name in OUTPUT_OPTIONS if values.get(name) is not None})
        command(source, **values)

    with_table.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    with_table.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return with_table


def parse_file_options(given: dict[str, Any]) -> dict[str, Any]:
    """Return the options of reading a file as parameters of `read_table`."""
    header, skip_rows = given["header"], given["skip_rows"]
    return {name: given[name] for name in FILE_OPTIONS} | {
        "header": None if header is None else one_of(header, "--header", ("yes", "no")) == "yes",
        "na_values": tuple(given["na_values"] or ()),
        "skip_rows": 0 if skip_rows is None else parse_skip_rows(skip_rows),
    }


def penalty_from_options(
    lam: float | None, c: float | None, ridge: float | None, a: float | None, default: float
) -> Penalty:
    """Return the penalty given by weights or by their roots; ``default`` is the ridge if none is given."""
    for name, weight, flag, root in (("--lambda", lam, "-c", c), ("--ridge", ridge, "-a", a)):
        if weight is not None and root is not None:
            raise ParameterError(
                f"{name} {weight:g} and its square root {flag} {root:g} are both given. Give one of them."
            )
    l1 = {"lam": lam or 0.0} if c is None else {"c": c}
    l2 = {"ridge": default if ridge is None else ridge} if a is None else {"a": a}
    return Penalty(**l1, **l2)
