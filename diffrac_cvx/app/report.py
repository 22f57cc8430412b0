"""Self-contained HTML reports: pictures inline, no other files, no scripts."""

import base64
import io
import os
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Any

from diffrac_cvx.comparison.table import Table
from diffrac_cvx.plotting.canvas import pyplot
from diffrac_cvx.writing import write_text

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"  # no scripts, nothing from elsewhere
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
h1, h2 { font-weight: 600; line-height: 1.2 } h2 { margin-top: 2rem }
table { border-collapse: collapse; font-size: 0.85rem; margin: 1rem 0; display: block; overflow-x: auto }
th, td { text-align: left; padding: 0.2rem 0.7rem; border-bottom: 1px solid #ddd; white-space: nowrap }
figure { margin: 1rem 0 } figcaption { color: #555; font-size: 0.9rem }
img { width: 38rem; max-width: 100%; height: auto }
pre { background: #f5f5f5; padding: 1rem; overflow-x: auto }
"""


def picture(display: Any, caption: str, **options: Any) -> str:
    """Return a display, drawn, as a figure with its picture inside."""
    os.environ.setdefault("MPLBACKEND", "Agg")
    figure = display.plot(**options).figure_
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=150, bbox_inches="tight", metadata={"Software": None})
    pyplot().close(figure)
    coded = base64.b64encode(file.getvalue()).decode()
    text = escape(caption)
    return f'<figure><img alt="{text}" src="data:image/png;base64,{coded}"><figcaption>{text}</figcaption></figure>'


def facts(rows: Iterable[tuple[str, object]]) -> str:
    """Return pairs as a table."""
    return Table(("finding", "value"), tuple(rows)).html()


def code(text: str) -> str:
    """Return Python as text."""
    return f"<pre>{escape(text.strip())}</pre>"


def section(title: str, *parts: str) -> str:
    """Return parts under a heading."""
    return f"<h2>{escape(title)}</h2>{''.join(parts)}"


def write(path: Path, title: str, *sections: str) -> None:
    """Write a report."""
    policy = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    head = f'<meta charset="utf-8">{policy}<title>{escape(title)}</title><style>{STYLE}</style>'
    body = f"<h1>{escape(title)}</h1>{''.join(sections)}"
    page = f'<!DOCTYPE html><html lang="en"><head>{head}</head><body>{body}</body></html>'
    write_text(path, page)
