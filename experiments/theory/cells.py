"""The cells of the theory's experiments: one part for each claim, a cell names its part."""

from collections.abc import Callable
from typing import Any

from experiments.harness.sweep import Row
from experiments.theory import label_cells as theory_labels
from experiments.theory import noise_cells as theory_noise

PARTS: dict[str, tuple[Callable[[bool], list[dict[str, Any]]], Callable[..., Row]]] = {
    "spectrum": (theory_noise.spectrum_cells, theory_noise.spectrum),
    "recovery": (theory_noise.recovery_cells, theory_noise.recovery),
    "sample size": (theory_noise.sample_size_cells, theory_noise.sample_size),
    "one dimension": (theory_noise.one_dimension_cells, theory_noise.one_dimension),
    "rank two": (theory_labels.rank_two_cells, theory_labels.rank_two),
    "lemma": (theory_labels.lemma_cells, theory_labels.lemma),
    "family": (theory_labels.family_cells, theory_labels.family),
    "many labels": (theory_labels.many_labels_cells, theory_labels.many_labels),
    "sparse": (theory_labels.sparse_cells, theory_labels.sparse),
}
SETTINGS: dict[str, Any] = {}


def cells_of(grid: str) -> list[dict[str, Any]]:
    """Return the cells of a grid, part by part."""
    return [{"part": part, **cell} for part, (cells, _) in PARTS.items() for cell in cells(grid == "full")]


def measure(part: str, **cell: Any) -> Row:
    """Measure a cell of any part."""
    return PARTS[part][1](**cell)
