"""Rows of a dask array: the workers compute the sums over their chunks, and only sums are sent."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from diffrac_cvx.errors import ResourceError
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.chunks import Chunks, as_block
from diffrac_cvx.points.rows import Indices
from diffrac_cvx.points.sliced import take_rows
from diffrac_cvx.points.streamed import StreamedRows, run_part

MIN_SAMPLE_ENTRIES = 2**21  # of the largest sample: 16 MB
ROWS_PER_SAMPLE_ROW = 50  # rows of the table for each row of a larger sample


@dataclass(frozen=True, eq=False)
class DaskRows(StreamedRows):
    """Streamed rows whose parts are the chunks of a dask array; one task computes the results of each chunk."""

    table: Chunks

    is_distributed = True

    def bounds(self) -> list[tuple[int, int]]:
        return self.table.bounds

    def run_parts(self, function: Callable[..., Any], aligned: tuple[Array, ...]) -> Iterable[tuple[Any, Array]]:
        arguments = [(i, *(values[i:j] for values in aligned)) for i, j in self.bounds()]
        return self.table.run(partial(run_chunk, self.with_table(None), function), arguments)

    @property
    def max_sample(self) -> int:
        n, D = self.shape
        return min(max(n // ROWS_PER_SAMPLE_ROW, MIN_SAMPLE_ENTRIES // D), n // 2)

    def fits(self, copies: float, available: float) -> bool:  # noqa: ARG002
        """Return False: the rows stay on the cluster."""
        return False

    def array(self) -> Array:
        n, D = self.shape
        raise ResourceError(
            f"the {n} points and {D} features of a dask array would be needed in the memory of this process. "
            "Pass X.compute() if they fit."
        )

    def take(self, indices: Indices) -> Array:
        return self.with_table(take_rows(self.table, indices)).array()


def run_chunk(rows: StreamedRows, function: Callable[..., Any], chunk: Any, first: int, *aligned: Array) -> Any:
    """Return the results of a chunk, with its checksum; `rows` holds the transformation but no table."""
    return run_part(function, rows.with_table(as_block(chunk), first), *aligned)
