"""``diffrac-cvx datasets``: the built-in data sets."""

from typing import Annotated, Any

import typer

from diffrac_cvx import datasets
from diffrac_cvx.app.cli import options
from diffrac_cvx.app.cli.console import Console
from diffrac_cvx.comparison.table import ReportTable
from diffrac_cvx.errors import DataError

LISTED_COLUMNS = ("name", "kind", "n", "d", "availability", "license")
datasets_app = typer.Typer(help="List and download the built-in data sets.", no_args_is_help=True)


@datasets_app.command("list")
def list_sets(as_json: options.Json = False) -> None:
    """List the data sets and their availability."""
    console = Console(as_json)
    rows = [
        describe_availability(name) for kind in ("two-class", "extra", "multi-label") for name in datasets.names(kind)
    ]
    console.echo(ReportTable.from_records(rows, {title: title for title in LISTED_COLUMNS}).text())
    console.echo_json({"datasets": rows})


@datasets_app.command("fetch")
def fetch_set(name: str, url: Annotated[str | None, typer.Option(help="URL of a mirror of the file.")] = None) -> None:
    """Download a data set, verify its checksum and store it."""
    print(datasets.fetch(name, url=url))


def describe_availability(name: str) -> dict[str, Any]:
    """Return the metadata and the availability of a data set."""
    record = datasets.describe(name)
    try:
        datasets.load(name)
        availability = "shipped" if record.shipped else "downloaded"
    except DataError:
        availability = "to download" if record.url else "manual download"
    fields = ("kind", "n", "d", "license", "description", "source")
    return {"name": name, "availability": availability, **{field: getattr(record, field) for field in fields}}
