"""Self-contained HTML reports from templates: inline figures, no scripts, all text escaped."""

import base64
import io
from datetime import datetime
from importlib import metadata
from typing import Any, NamedTuple

from diffrac_cvx.comparison.table import format_cell
from diffrac_cvx.plotting.canvas import without_pyplot

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"  # no scripts, no external resources


class EncodedPicture(NamedTuple):
    """Base64-encoded PNG figure with its caption."""

    coded: str
    caption: str


def encode_picture(display: Any, caption: str, **options: Any) -> EncodedPicture:
    """Return the encoded figure of a display."""
    with without_pyplot():  # its import takes half a second and may need a screen
        figure = display.plot(**options).figure_
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=150, metadata={"Software": None})
    return EncodedPicture(base64.b64encode(file.getvalue()).decode(), caption)


def render(template: str, **values: Any) -> str:
    """Return a report as HTML; every template receives the version and the date."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError:
        raise ImportError("reports need the package jinja2. Run: pip install 'diffrac-cvx[app]'") from None
    pages = Environment(
        loader=PackageLoader("diffrac_cvx.app"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    pages.filters["cell"] = format_cell
    now = datetime.now().astimezone().strftime("%d %B %Y, %H:%M")
    common = {"policy": POLICY, "version": metadata.version("diffrac-cvx"), "date": now}
    return pages.get_template(template).render(**common, **values)
