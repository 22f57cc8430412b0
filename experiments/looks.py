"""One look for all figures: column width of a journal page, readable in grey, PDF and PNG."""

from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

PAGE = 6.75  # inches, the text width of a journal page
GREY = "#555555"
ACCENT = "#b2182b"
SECOND = "#2166ac"

STYLE: Any = {
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "legend.fontsize": 7,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.2,
    "figure.constrained_layout.use": True,
    "savefig.dpi": 200,
    "pdf.fonttype": 42,
    "svg.hashsalt": "diffrac",
}


def save(figure: Figure, stem: Path) -> None:
    """Write a figure as PDF and PNG, without dates so that the same table gives the same files."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(stem.with_suffix(".pdf"), metadata={"CreationDate": None, "Creator": None, "Producer": None})
    figure.savefig(stem.with_suffix(".png"), metadata={"Software": None})
    plt.close(figure)
