"""The cells of the theory's experiments: one part for each claim, a cell names its part."""

from collections.abc import Callable
from typing import Any

from experiments.harness import Cell, Row
from experiments.theory import label_recovery, noise_columns, solution_support, spectrum

PARTS: dict[str, tuple[Callable[[bool], list[Cell]], Callable[..., Row]]] = {
    "spectrum": (spectrum.spectrum_cells, spectrum.measure_spectrum),
    "recovery": (noise_columns.recovery_cells, noise_columns.measure_recovery),
    "sample size": (noise_columns.sample_size_cells, noise_columns.measure_sample_size),
    "one dimension": (label_recovery.one_dimension_cells, label_recovery.measure_one_dimension),
    "rank two": (solution_support.rank_two_cells, solution_support.measure_rank_two),
    "lemma": (solution_support.lemma_cells, solution_support.measure_lemma),
    "family": (solution_support.family_cells, solution_support.measure_family),
    "many labels": (solution_support.many_labels_cells, solution_support.measure_many_labels),
    "sparse": (label_recovery.sparse_cells, label_recovery.measure_sparse),
}


def cells_of(grid: str) -> list[Cell]:
    """Return the cells of a grid, part by part."""
    return [{"part": part, **cell} for part, (cells, _) in PARTS.items() for cell in cells(grid == "full")]


def measure(part: str, **cell: Any) -> Row:
    """Measure a cell of any part."""
    return PARTS[part][1](**cell)
