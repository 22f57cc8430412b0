"""The options that several commands share, each defined once."""

from pathlib import Path
from typing import Annotated

import typer

File = Annotated[
    str, typer.Argument(help="A table .csv, .tsv, .txt, .npz, .npy or .parquet, or the name of a data set.")
]
Label = Annotated[str | None, typer.Option(help="Column with the true labels, only to compare with.")]
Drop = Annotated[
    list[str] | None, typer.Option(help="Column to leave out, such as a sample's number; may be repeated.")
]
Missing = Annotated[str, typer.Option(help="Missing values: 'error', 'drop' the rows, or put the column's 'mean'.")]
Nu = Annotated[float, typer.Option(help="Weight of the imbalance of the clusters, in [0, 1].")]
Ridge = Annotated[float, typer.Option("--ridge", "-a", help="Weight a of the ridge a^2 ||v||^2.")]
Lambda = Annotated[float, typer.Option("--lambda", "-l", help="Weight of the sparse penalty lambda ||v||_1^2.")]
Tolerance = Annotated[float, typer.Option("--tol", help="Proved gap at which solvers stop; values lie in [0, 1].")]
Seconds = Annotated[float | None, typer.Option("--time-limit", help="Seconds for each solve.")]
Raw = Annotated[bool, typer.Option("--no-standardize", help="Leave the columns at their own scales.")]
Seed = Annotated[int, typer.Option(help="Seed of whatever is random.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
Out = Annotated[Path | None, typer.Option("--out", "-o", help="Where the result is written.")]
Report = Annotated[Path | None, typer.Option(help="Write a self-contained HTML report here.")]
