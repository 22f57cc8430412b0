"""Examples of the README run and print the output that it shows."""

import contextlib
import io
import os
import re
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer

import diffrac_cvx as dc
from diffrac_cvx.problem.formatting import format_ends
from experiments.benchmark.claims import passage
from experiments.readme import FIGURES, PASSAGES, with_passage, with_passages

README = (Path(__file__).parents[2] / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
OUTPUTS = re.findall(r"```text\n(.*?)```", README, flags=re.DOTALL)


def run(code: str, names: dict) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(code, "README.md", "exec"), names)
    return printed.getvalue()


def test_every_example_runs_on_its_own_and_prints_what_the_readme_shows():
    spaces = [{} for _ in BLOCKS]
    assert list(map(run, BLOCKS, spaces)) == [OUTPUTS[0], OUTPUTS[1], "", OUTPUTS[2]]
    path = spaces[2]["path"]
    assert path == sorted(path)
    assert path[-1] == pytest.approx(spaces[0]["oracle"].value, abs=1e-4)


def test_every_relaxation_is_in_the_table_and_every_make_target_that_is_named_exists():
    for name in dc.registry.RELAXATIONS:
        assert f"`{name}(" in README
    makefile = (Path(__file__).parents[2] / "Makefile").read_text()
    for target in re.findall(r"make ([a-z-]+)", README):
        if target not in {"alone"}:
            assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


def test_what_the_readme_says_of_experiments_is_what_their_tables_say():
    figures = Path(__file__).parents[2] / FIGURES
    assert with_passages(README, figures) == README
    for name in PASSAGES:
        assert (figures / f"{name}.csv").exists()
        assert README.count(f"<!-- from figures/{name}.csv -->") == 1


def test_the_numbers_below_the_picture_of_the_answer_are_those_of_the_default():
    X, kinds = load_breast_cancer(return_X_y=True)
    model = dc.DiffracClustering().fit(X)
    agree = max(np.sum(model.labels_ == kinds), np.sum(model.labels_ != kinds))
    lower, cost = format_ends(model.lower_bound_, model.lower_bound_ + model.label_gap_)
    words = " ".join(README.split())
    assert f"{agree} of {len(X)} agree" in words
    assert f"No split of these points costs less than {lower}; this one costs {cost}." in words


def test_the_passage_on_the_benchmark_is_replaced_and_nothing_else():
    names = ["planted 1000 x 50, 0.01", "planted 1000 x 50, 0.01", "dense 1000 x 40, 0"]
    table = pd.DataFrame({"instance": names, "method": ["low_rank", "CVXPY + SCS", "low_rank"], "reason": ["", "", ""]})
    times = {"seconds": 0.05, "time_to_1e-2": 0.01, "time_to_1e-4": [0.05, float("nan"), 0.05], "gram_seconds": 1e-4}
    gaps = {"own_lower": 0.1, "own_upper": 0.11, "relative_gap": 3e-5}
    table = table.assign(n=1000, d=50, peak_MB=7.0, data_MB=0.4, limit=15.0, **times, **gaps)
    written = with_passage(README, "benchmark", passage(table))
    assert "| low_rank | 0.01; 0.05 | 3.1e-05 in 0.05 | 7 |\n| CVXPY + SCS | 0.01; no |" in written
    assert "On all 2 instances" in written
    assert written == with_passage(written, "benchmark", passage(table))
    mark = "<!-- from figures/benchmark.csv -->"
    assert written.split(mark)[0] == README.split(mark)[0]
    assert written.split(mark)[1].split("<!-- end -->")[1] == README.split(mark)[1].split("<!-- end -->")[1]


def test_make_uses_every_core_whatever_the_threads_of_a_process():
    outside = {name: value for name, value in os.environ.items() if "MAKE" not in name and name != "JOBS"}
    environment = {**outside, "OMP_NUM_THREADS": "1"}
    printed = subprocess.run(
        ["make", "--no-print-directory", "help"], cwd=Path(__file__).parents[2], env=environment, capture_output=True,
        text=True, check=True,
    ).stdout  # fmt: skip
    assert f"JOBS={len(os.sched_getaffinity(0))} " in printed
