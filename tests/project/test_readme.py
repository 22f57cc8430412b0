"""Examples of the README run and print the output that it shows."""

import contextlib
import io
import os
import re
import subprocess
from inspect import signature
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer

import diffrac_cvx as dc
from diffrac_cvx.problem.formatting import format_ends
from experiments.benchmark.findings import SHOWN
from experiments.harness.command import find_experiments
from experiments.harness.reproduction import FIGURES, PASSAGES, with_passage
from experiments.problems import INSTANCES, NOISE, SPARSITY, timed_data_of
from experiments.structure.findings import HEADLINE
from experiments.wide.cells import KINDS
from experiments.wide.methods import OWN, RIVALS

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
WORDS = " ".join(README.split())
BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
OUTPUTS = re.findall(r"```text\n(.*?)```", README, flags=re.DOTALL)


def run(code: str, names: dict) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(code, "README.md", "exec"), names)
    return printed.getvalue()


def test_every_example_runs_on_its_own_and_prints_what_the_readme_shows():
    first, second = (run(block, {}) for block in BLOCKS)
    assert [first] == OUTPUTS
    assert f"prints `{second.strip()}`" in WORDS


def test_a_row_on_a_relaxation_is_its_record_and_every_make_target_that_is_named_exists():
    rows = re.findall(r"^\| [^|]* \| ((?:Eq|Sec)[^|]*) \| `(\w+)\(.*\)` \| .* \| (.*) \|$", README, flags=re.MULTILINE)
    assert len(rows) >= 7
    assert "the relaxations above that have a penalty accept [must-link" in WORDS
    for equations, name, penalty in rows:
        record = dc.registry.RELAXATIONS[name]
        assert ("constraints" in record.takes) == bool(record.penalty)
        assert sorted(re.findall(r"\d+", equations)) == sorted(re.findall(r"\d+", " ".join(record.equations)))
        assert penalty == (", ".join(part for part in ("ridge", "l1") if part in record.penalty) or "none")
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    targets += [name.replace("_", "-") for name in find_experiments()]
    assert set(re.findall(r"make ([a-z-]+)", README)) <= set(targets)


def test_what_the_readme_says_of_experiments_is_what_their_tables_say():
    figures = ROOT / FIGURES
    for name, written in PASSAGES.items():
        assert README.count(f"<!-- from figures/{name}.csv -->") == 1
        table = pd.read_csv(figures / f"{name}.csv")
        assert with_passage(README, f"from figures/{name}.csv", written(table)) == README


def test_the_numbers_below_the_picture_of_the_answer_are_those_of_the_default():
    X, kinds = load_breast_cancer(return_X_y=True)
    model = dc.DiffracClustering().fit(X)
    agree = max(np.sum(model.labels_ == kinds), np.sum(model.labels_ != kinds))
    lower, cost = format_ends(model.lower_bound_, model.lower_bound_ + model.label_gap_)
    assert f"{agree} of {len(X)} agree" in WORDS
    assert f"No split of these points costs less than {lower}; this one costs {cost}." in WORDS


def test_false_alarms_and_power_of_the_structure_test_are_counted_by_the_same_verdict():
    table = pd.read_csv(ROOT / FIGURES / "structure.csv")
    assert set(table["verdict"]) <= {"separated", "not separated"}
    noise, separated = table[table["groups"] == 0], table["verdict"] == "separated"
    assert f"Called separated: {(separated & (table['groups'] == 0)).sum()} of {len(noise)} tables" in WORDS
    for family in HEADLINE:
        is_family = table["family"] == family
        assert f"{family} {(separated & is_family).sum()} of {is_family.sum()}" in WORDS


def test_the_readme_is_short_and_every_file_that_it_links_to_exists():
    assert README.count("\n") <= 225
    links = re.findall(r"\]\((?!https?:|#)([^)]*)\)", README)
    assert [link for link in links if not (ROOT / link).is_file()] == []


def test_what_takes_constraints_besides_relaxations_is_named():
    assert "`fista`, `low_rank`, the clustering estimators and" in WORDS
    assert "`rounding.procrustes` does not." in WORDS
    for function in (dc.fista, dc.low_rank, dc.DiffracClustering.fit, dc.DiffracClusteringCV.fit):
        assert "constraints" in signature(function).parameters
    assert "constraints" not in signature(dc.rounding.procrustes).parameters


def test_the_default_weights_are_those_of_the_library_and_of_the_estimator():
    assert "have a default ridge of 0.3" in WORDS
    assert dc.DiffracClustering().ridge == 0.3
    assert dc.Penalty() == dc.Penalty(ridge=0.0, lam=0.0)


def test_the_numbers_on_the_largest_file_are_those_of_its_table():
    table = pd.read_csv(ROOT / FIGURES / "scale.csv")
    row = table[table["kind"] == "rows"].iloc[-1]
    assert row["gap"] <= 0.001
    passes = f"{row['n'] / 1e6:.0f} million rows and {row['d']} columns takes {row['passes']:.0f} passes to `tol=0.001`"
    assert f"{passes}; the gap is then {100 * row['gap'] / row['value']:.0f} % of the optimal value" in WORDS


def test_the_labels_of_the_instances_of_the_benchmark_that_are_shown_are_recovered_with_the_errors_named():
    errors = []
    for name in SHOWN:
        lam = INSTANCES[name].lam
        data, n, d, *_ = INSTANCES[name]
        if data == "planted":
            rng = np.random.default_rng([2017, 7, n, d])
            X, y, _ = dc.datasets.make_planted(n, d, SPARSITY, noise=NOISE, rng=rng)
            np.testing.assert_array_equal(X, timed_data_of(name))
        else:
            X, y = dc.datasets.load(data, scaling="standardize")
        result = dc.low_rank(X, lam=lam)
        errors.append(dc.metrics.clustering_error(y, dc.rounding.kmeans_centered(result.F)))
        assert np.abs(result.V - np.diag(np.diag(result.V))).sum() > 0.2 * np.abs(result.V).sum()
    first, second = sorted(errors)
    assert f"with errors of {first:.3f} and {second:.3f}" in WORDS


def test_the_methods_with_a_higher_mean_index_on_real_pairs_are_named():
    table = pd.read_csv(ROOT / FIGURES / "wide.csv")
    means = table[table["kind"].isin(KINDS)].pivot_table(index="kind", columns="method", values="index")
    assert "spectral clustering has a higher mean index" in WORDS
    higher = [name for name in means if name in RIVALS and (means[name] > means[OWN]).all()]
    assert higher == ["spectral"]


def test_make_lists_every_experiment_and_uses_every_core_whatever_the_threads_of_a_process():
    outside = {name: value for name, value in os.environ.items() if "MAKE" not in name and name != "JOBS"}
    environment = {**outside, "OMP_NUM_THREADS": "1"}
    printed = subprocess.run(
        ["make", "--no-print-directory", "help"], cwd=ROOT, env=environment, capture_output=True,
        text=True, check=True,
    ).stdout  # fmt: skip
    assert f"JOBS={len(os.sched_getaffinity(0))} " in printed
    for name in find_experiments():
        assert re.search(rf"^{name.replace('_', '-')} +\w.*[^\"]$", printed, flags=re.MULTILINE), name
