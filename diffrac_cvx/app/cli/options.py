"""Options of the commands, read from the signatures and docstrings of the functions whose parameters they set."""

import argparse
import inspect
import re
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any, NoReturn, get_args

from diffrac_cvx.datasets.tables import read_table
from diffrac_cvx.errors import ParameterError

FLAGS = {  # of parameters whose options have other names
    "label": ("--classes",),
    "lam": ("--lambda", "-l"),
    "methods": ("--method", "-m"),
    "n_clusters": ("--clusters",),
    "random_state": ("--seed",),
    "test_structure": ("--structure",),
}
AUTO = "auto"  # also a number of clusters
ID_HELP = "Column that identifies the rows, such as a sample ID: no feature, and the first column of the file of --out."
FILE_PARAMETERS = (  # of `read_table`, which also apply to a new file
    "missing", "header", "separator", "decimal", "thousands", "encoding", "na_values", "skip_rows", "skip_footer",
    "comment", "sheet",
)  # fmt: skip
TABLE_PARAMETERS = ("label", "drop", "one_hot", *FILE_PARAMETERS, "transpose", "top_variance")
FILE_HELP = (
    "Table file (.csv, .tsv, .txt, .xlsx, .parquet, .libsvm, also compressed as .gz; one point per row) or name of a "
    "data set."
)


class Parser(argparse.ArgumentParser):
    """Parser of a command, whose errors are exceptions."""

    def __init__(self, command: str, main: Callable[..., int]) -> None:
        kind = argparse.RawDescriptionHelpFormatter
        about = inspect.getdoc(main)
        super().__init__(f"diffrac-cvx {command}", description=about, allow_abbrev=False, formatter_class=kind)

    def error(self, message: str) -> NoReturn:
        """Raise an error that names the help."""
        raise ParameterError(f"{message}. Try {self.prog} --help.")


def flags_of(parameter: str) -> tuple[str, ...]:
    """Return the option of a parameter, its usual name first."""
    return FLAGS.get(parameter, (f"--{parameter.replace('_', '-')}",))


def parameter_texts(function: Callable[..., object]) -> dict[str, tuple[str, str]]:
    """Return choices, such as "low_rank|fista", and text on each parameter in a numpydoc docstring, without markup.

    The text is the first sentence or, for the k-th of several parameters with one entry, the k-th sentence.
    """
    section = (inspect.getdoc(function) or "").partition("Parameters\n----------\n")[2]
    texts: dict[str, tuple[str, str]] = {}
    for entry in re.split(r"\n(?=\S)", re.split(r"\n\n\S+\n---", section)[0]):
        head, _, body = entry.partition("\n")
        names, _, kind = head.partition(" : ")
        choices = "|".join(re.findall(r'"([^"]*)"', kind)) if kind.startswith("{") else ""
        text = " ".join(body.replace("`", "").split()).removeprefix("If True, ")
        sentences = re.split(r"(?<=\.) +(?=[A-Z])", f"{text[:1].upper()}{text[1:]}")
        texts |= {name: (choices, sentence) for name, sentence in zip(names.split(", "), sentences, strict=False)}
    return texts


def add_parameters(parser: Any, function: Callable[..., object], names: tuple[str, ...], **defaults: Any) -> None:
    """Add options for parameters of a function, whose ``defaults`` may differ in the program.

    The help of an option is the text of `parameter_texts`, its default that of the signature.
    """
    texts, parameters = parameter_texts(function), inspect.signature(function).parameters
    for name in names:
        default = defaults.get(name, parameters[name].default)
        default = [] if default == () else default
        choices, text = texts[name]
        kind = option_kind(name, parameters[name].annotation, default)
        kind |= {"metavar": choices} if choices else {}
        text += " May be repeated." if kind.get("action") == "append" else ""
        if isinstance(default, int | float | str) and not isinstance(default, bool) and "default" not in text:
            text = f"{text} Default: {default}."
        parser.add_argument(*flags_of(name), dest=name, default=default, help=text.replace("%", "%%"), **kind)


def option_kind(name: str, annotation: Any, default: Any) -> dict[str, Any]:
    """Return the settings of argparse for a parameter of this annotation and default."""
    if isinstance(default, bool):
        return {"action": argparse.BooleanOptionalAction if default else "store_true"}
    if name in PARSERS:
        return {"type": PARSERS[name][1], "metavar": PARSERS[name][0]}
    if isinstance(default, list) or name == "methods":
        return {"action": "append", "metavar": "NAME"}
    kinds = get_args(annotation) or (annotation,)
    kind = next((kind for kind in (float, int, str) if kind in kinds), int if name == "random_state" else str)
    return {"type": kind, "metavar": "TEXT" if kind is str else "NUMBER"}


def parse_lines(text: str) -> int | tuple[int, ...]:
    """Return the lines to skip: their number at the start, or indices of the lines of a range from 1 such as 2-2."""
    first, dash, last = text.partition("-")
    if not first.isdecimal() or (dash and not last.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text} is neither a number of lines nor a range of lines. Give 3, or 2-2.")
    return tuple(range(int(first) - 1, int(last))) if dash else int(first)


def parse_yes(text: str) -> bool:
    """Return whether a text is "yes" instead of "no"."""
    if text not in ("yes", "no"):
        raise argparse.ArgumentTypeError(f"{text!r} is neither yes nor no.")
    return text == "yes"


def parse_count(text: str) -> Any:
    """Return a number of clusters or "auto"."""
    try:
        return AUTO if text == AUTO else int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither an integer nor 'auto'.") from None


PARSERS = {  # of parameters whose options are written in another way
    "header": ("yes|no", parse_yes),
    "skip_rows": ("NUMBER|RANGE", parse_lines),
    "n_clusters": ("NUMBER|auto", parse_count),
}


def add_table(parser: Parser) -> None:
    """Add the file, the options of `read_table`, and the rules by which it reads, below all options."""
    parser.epilog = resources.files(__package__).joinpath("reading_rules.txt").read_text(encoding="utf-8")
    parser.add_argument("file", metavar="FILE", help=FILE_HELP)
    group = parser.add_argument_group("reading the table")
    add_parameters(group, read_table, TABLE_PARAMETERS)
    group.add_argument("--one-hot-all", action="store_true", help="Convert every categorical column to binary columns.")


def add_id(group: Any) -> None:
    """Add the option of the column that identifies the rows."""
    group.add_argument("--id", metavar="COLUMN", help=ID_HELP)


def add_output(parser: Parser, out: str) -> Any:
    """Add the options of output and time, and return their group."""
    group = parser.add_argument_group("output")
    text = "Time limit of the command in seconds; the best result so far is returned."
    group.add_argument("--time-limit", type=float, metavar="NUMBER", help=text)
    group.add_argument("--out", "-o", type=Path, metavar="FILE", help=out)
    group.add_argument("--json", action="store_true", help="Print one JSON object and nothing else.")
    group.add_argument("--quiet", "-q", action="store_true", help="Print errors only.")
    return group
