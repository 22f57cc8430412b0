"""Self-contained HTML reports from templates: pictures inline, no other files, no scripts, all text escaped."""

import base64
import io
from datetime import datetime
from importlib import metadata
from typing import Any, NamedTuple

from diffrac_cvx.comparison.table import format_cell
from diffrac_cvx.plotting.canvas import without_pyplot

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"  # no scripts, nothing from elsewhere


class EncodedPicture(NamedTuple):
    """A picture, coded as text, and what it shows."""

    coded: str
    caption: str


def encode_picture(display: Any, caption: str, **options: Any) -> EncodedPicture:
    """Return a display, drawn, as a picture."""
    with without_pyplot():  # which takes half a second to import, and a display if there is one
        figure = display.plot(**options).figure_
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=150, metadata={"Software": None})
    return EncodedPicture(base64.b64encode(file.getvalue()).decode(), caption)


def render(template: str, **values: Any) -> str:
    """Return a report as HTML; every template is given the version and the date."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError:
        raise ImportError("a report needs jinja2: pip install 'diffrac-cvx[app]'") from None
    pages = Environment(
        loader=PackageLoader("diffrac_cvx.app"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    pages.filters["cell"] = format_cell
    now = datetime.now().astimezone().strftime("%d %B %Y, %H:%M")
    common = {"policy": POLICY, "version": metadata.version("diffrac-cvx"), "date": now}
    return pages.get_template(template).render(**common, **values)
