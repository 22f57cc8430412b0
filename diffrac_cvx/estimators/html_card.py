"""Small HTML table for notebooks, with inline styles, no scripts and all text escaped."""

from collections.abc import Mapping
from html import escape

CARD_STYLE = (
    "border:1px solid #8888;border-radius:4px;padding:0.5em 0.8em;margin:0.3em 0;width:fit-content;max-width:100%"
)
CELL_STYLE = "text-align:left;padding:0.1em 1em 0.1em 0;vertical-align:top;background:none;border:0"


def html_card(title: str, rows: Mapping[str, object]) -> str:
    """Return an HTML table of names and values under a title."""
    lines = "".join(
        f'<tr><td style="{CELL_STYLE}">{escape(name)}</td><td style="{CELL_STYLE}">{escape(str(value))}</td></tr>'
        for name, value in rows.items()
    )
    return f'<div style="{CARD_STYLE}"><strong>{escape(title)}</strong><table style="border:0">{lines}</table></div>'
