"""The paper's propositions, lemmas and conjectures as experiments."""

from collections.abc import Callable
from typing import Any, NamedTuple

from experiments.harness.sweep import Cell, Row, cross
from experiments.theory.label_recovery import NO_CLUSTERS, measure_perturbed, measure_procrustes
from experiments.theory.noise_columns import (
    LARGER_FRACTION,
    measure_balanced,
    measure_labels,
    measure_recovery,
    measure_sample_size,
)
from experiments.theory.sparse_direction import measure_sparse_direction


class Part(NamedTuple):
    """Measurement for a claim, and the cells of both grids."""

    measure: Callable[..., Row]
    full: list[Cell]
    smoke: list[Cell]


SHOWN = tuple(f"three-point {beta:g}" for beta in (1.0, 1.02, 1.1, 1.3, 3.0, 9.0))
UNBOUNDED = ("uniform", "gaussian", "laplace", "student")
BOUNDED = ("three-point 1.3", "uniform", "three-point 3", "three-point 6")
HEAVY = ("three-point 6", "three-point 9", "three-point 30")  # kurtosis above 3, so the variance can be small
POINTS = (12, 20, 28, 32, 36, 40, 50, 60, 80, 100, 140, 200, 300)
GROWTH = (6, 8, 10, 12, 14)
PARTS = {
    "recovery": Part(
        measure_recovery,
        cross(law=SHOWN + UNBOUNDED, n=POINTS, replication=range(20)),
        cross(law=["three-point 1", "three-point 1.1", "three-point 3"], n=[20, 60], replication=range(2)),
    ),
    "sample size": Part(
        measure_sample_size,
        cross(law=BOUNDED, d=range(3, 7), m=(0.5, 1.0), replication=range(10))
        + cross(law=HEAVY, d=range(3, 7), m=[0.0], replication=range(10)),
        cross(law=["three-point 1.3", "three-point 6"], d=[3], m=(0.5, 1.0), replication=range(2))
        + cross(law=["three-point 6"], d=[3], m=[0.0], replication=range(2)),
    ),
    "balanced": Part(measure_balanced, cross(d=GROWTH, replication=range(15)), cross(d=(4, 5, 6, 7), replication=[0])),
    "rank two": Part(
        measure_labels,
        cross(d=GROWTH, imbalance=LARGER_FRACTION, replication=range(15)),
        cross(d=(4, 5, 6, 7), imbalance=[0.25], replication=[0]),
    ),
    "many labels": Part(
        measure_labels,
        cross(k=range(2, 5), d=GROWTH, replication=range(15)),
        cross(k=[2], d=(4, 5, 6, 7), replication=[0]),
    ),
    "procrustes": Part(
        measure_procrustes, cross(k=range(1, 7), replication=range(60)), cross(k=[1, 3], replication=range(3))
    ),
    "perturbed": Part(
        measure_perturbed,
        cross(d=(6, 12, 24), noise=(0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, NO_CLUSTERS), replication=range(20)),
        cross(d=[6], noise=(0.0, 0.1, NO_CLUSTERS), replication=range(2)),
    ),
    "sparse direction": Part(
        measure_sparse_direction,
        cross(sparsity=(1, 2, 4), d=[20], n=(20, 40, 80, 160), replication=range(12)),
        cross(sparsity=[2], d=[8], n=[40], replication=range(2)),
    ),
}


def cells_of(grid: str) -> list[Cell]:
    """Return the cells of a grid, part by part."""
    return [
        {"part": name, **cell} for name, part in PARTS.items() for cell in (part.full if grid == "full" else part.smoke)
    ]


def measure(part: str, **cell: Any) -> Row:
    """Measure a cell of any part."""
    return PARTS[part].measure(**cell)
