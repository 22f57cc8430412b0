"""``diffrac-cvx datasets``: the built-in data sets."""

import argparse
from typing import Any

from diffrac_cvx import datasets
from diffrac_cvx.app.cli.console import Console
from diffrac_cvx.app.cli.options import Parser
from diffrac_cvx.comparison.table import ReportTable
from diffrac_cvx.errors import DataError

LISTED_COLUMNS = ("name", "kind", "n", "d", "availability", "license")


def parser() -> Parser:
    """Return the parser of the command."""
    made = Parser("datasets", main)
    made.add_argument("action", choices=("list", "fetch"))
    made.add_argument("name", nargs="?", help="Data set to fetch.")
    made.add_argument("--url", help="URL of a mirror of the file to fetch.")
    made.add_argument("--json", action="store_true", help="Print the list as one JSON object.")
    made.set_defaults(quiet=False, time_limit=None)
    return made


def main(given: argparse.Namespace, console: Console) -> int:
    """List the built-in data sets and their availability, or download one and verify its checksum."""
    if given.action == "fetch":
        print(datasets.fetch(given.name or "", url=given.url))
        return 0
    kinds = ("two-class", "extra", "multi-label")
    rows = [describe_availability(name) for kind in kinds for name in datasets.names(kind)]
    console.echo(ReportTable.from_records(rows, {title: title for title in LISTED_COLUMNS}).text())
    return console.finish({"datasets": rows})


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
