"""The tables in the pages that come from the package: data sets, methods of `compare`, displays."""

from pathlib import Path

import diffrac_cvx as dc
from diffrac_cvx.compare_methods import METHODS


def listed(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Return a list-table of reStructuredText."""
    lines = [".. list-table::", "   :header-rows: 1", ""]
    for row in [header, *rows]:
        lines += [("   * - " if j == 0 else "     - ") + entry for j, entry in enumerate(row)]
    return "\n".join(lines) + "\n"


def data_sets() -> str:
    """Return what is known of each data set."""
    rows = []
    for kind in ("two-class", "extra", "multi-label"):
        for name in dc.datasets.names(kind):
            known = dc.datasets.describe(name)
            where = "shipped" if known.shipped else "``fetch``" if known.url else "by hand"
            size = f"{known.n} × {known.d}"
            rows.append((f"``{name}``", kind, size, where, known.description, known.source, known.licence))
    return listed(("name", "kind", "n × d", "where", "what", "source", "licence"), rows)


def methods() -> str:
    """Return the methods that `compare` knows."""
    rows = [
        (f"``{name}``", method.problem, " and ".join(method.takes) or "no penalty", method.cost or "none")
        for name, method in METHODS.items()
    ]
    return listed(("method", "problem", "takes", "side of its cone"), rows)


def write(folder: Path) -> None:
    """Write all tables."""
    folder.mkdir(exist_ok=True)
    (folder / "data_sets.inc").write_text(data_sets())
    (folder / "methods.inc").write_text(methods())
