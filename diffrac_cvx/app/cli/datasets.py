"""``diffrac-cvx datasets``: the data sets that are known by name."""

from typing import Annotated, Any

import typer

from diffrac_cvx import datasets
from diffrac_cvx.app.cli import options
from diffrac_cvx.app.cli.console import Console
from diffrac_cvx.comparison.table import ReportTable
from diffrac_cvx.errors import DataError

LISTED_COLUMNS = ("name", "kind", "n", "d", "where", "license")
datasets_app = typer.Typer(help="The data sets that are known by name.", no_args_is_help=True)


@datasets_app.command("list")
def list_sets(as_json: options.Json = False) -> None:
    """List the data sets, and say which of them are on this machine."""
    console = Console(as_json)
    rows = [
        describe_availability(name) for kind in ("two-class", "extra", "multi-label") for name in datasets.names(kind)
    ]
    console.echo(ReportTable.from_records(rows, {title: title for title in LISTED_COLUMNS}).text())
    console.echo_json({"datasets": rows})


@datasets_app.command("fetch")
def fetch_set(name: str, url: Annotated[str | None, typer.Option(help="A mirror of the file.")] = None) -> None:
    """Download a data set, check it, and keep it."""
    print(datasets.fetch(name, url=url))


def describe_availability(name: str) -> dict[str, Any]:
    """Return what is known of a data set, and whether it is on this machine."""
    record = datasets.describe(name)
    try:
        datasets.load(name)
        where = "shipped" if record.shipped else "here"
    except DataError:
        where = "to be fetched" if record.url else "to be put there by hand"
    fields = ("kind", "n", "d", "license", "description", "source")
    return {"name": name, "where": where, **{field: getattr(record, field) for field in fields}}
