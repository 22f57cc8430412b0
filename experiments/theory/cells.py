"""The cells of the theory's experiments: one part for each claim, a cell names its part."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from experiments.harness.sweep import Cell, Row, cross
from experiments.theory.label_recovery import measure_one_dimension, measure_sparse
from experiments.theory.noise_columns import LAWS, measure_recovery, measure_sample_size
from experiments.theory.solution_support import (
    SHARE,
    measure_family,
    measure_lemma,
    measure_many_labels,
    measure_rank_two,
)
from experiments.theory.spectrum import measure_spectrum


class Part(NamedTuple):
    """What is measured for a claim, and the cells of the two grids."""

    measure: Callable[..., Row]
    full: list[Cell]
    smoke: list[Cell]


def sparse_cells(dimensions: Iterable[int], multiples: Mapping[int, Sequence[float]], replications: int) -> list[Cell]:
    """Return cells over sparsity, dimension and the number of points, a multiple of d that grows with the sparsity."""
    return [
        cell
        for l, d in product(multiples, dimensions)
        for cell in cross(sparsity=[l], d=[d], n=[int(m * d) for m in multiples[l]], replication=range(replications))
    ]


M, BETA = (0.1, 0.5, 1.0, 2.0), (1.0, 1.3, 1.8, 3.0, 6.0, 9.0, 30.0)
POINTS = (12, 16, 20, 24, 28, 30, 32, 34, 36, 40, 44, 50, 60, 80, 100, 140, 200, 300)
STEPS = (0.0, 0.3, 0.6, 0.9)
MULTIPLES = {
    1: (0.25, 0.375, 0.5, 0.625, 0.75, 1, 1.5),
    2: (0.5, 1, 1.5, 2, 2.5, 3, 4),
    4: (1, 2, 3, 4, 5, 6, 8),
    8: (2, 3, 4, 6, 8, 10, 12),
}
PARTS = {
    "spectrum": Part(measure_spectrum, cross(d=range(3, 7), m=M, beta=BETA), cross(d=[3], m=M, beta=BETA)),
    "recovery": Part(
        measure_recovery,
        cross(law=LAWS, n=POINTS, replication=range(20)),
        cross(law=["three-point 1", "three-point 3"], n=[20, 60], replication=range(2)),
    ),
    "sample size": Part(
        measure_sample_size,
        cross(d=range(3, 7), m=(0.5, 1.0), beta=(1.3, 1.8, 3.0, 6.0), replication=range(20)),
        cross(d=[3], m=(0.5, 1.0), beta=(1.3, 1.8, 3.0, 6.0), replication=range(2)),
    ),
    "one dimension": Part(
        measure_one_dimension,
        cross(n=(10, 20, 40), noise=(0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0), replication=range(40)),
        cross(n=(10, 20, 40), noise=(0.3, 0.6), replication=range(2)),
    ),
    "rank two": Part(
        measure_rank_two,
        cross(d=(2, 3, 4, 6, 8, 10, 12, 14), imbalance=SHARE, replication=range(20)),
        cross(d=[4], imbalance=SHARE, replication=range(2)),
    ),
    "lemma": Part(
        measure_lemma,
        cross(d=[6], n=(12, 16, 26, 60), alpha_step=STEPS, replication=range(5)),
        cross(d=[6], n=(12, 40), alpha_step=STEPS, replication=[0]),
    ),
    "family": Part(
        measure_family,
        cross(k=range(1, 6), n=[*range(3, 25), 28, 32, 40, 60], replication=range(40)),
        cross(k=range(1, 6), n=[4, 20], replication=range(2)),
    ),
    "many labels": Part(
        measure_many_labels,
        cross(k=range(1, 5), d=(6, 8, 10, 12, 14), replication=range(20)),
        cross(k=range(1, 5), d=[6], replication=range(2)),
    ),
    "sparse": Part(
        measure_sparse,
        sparse_cells((20, 32, 44, 56, 68), MULTIPLES, 8),
        sparse_cells([20], {l: multiples[2::2] for l, multiples in MULTIPLES.items()}, 1),
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
