"""A toy experiment for the tests of sweeps: its cells, its measurement, and the traces of a run."""

import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from diffrac_cvx.machine.writing import write_text
from experiments.harness import command
from experiments.harness.command import Experiment
from experiments.harness.findings import Finding, one_row
from experiments.harness.sweep import read_line

TEXTS = ("naïve", "=1+1", 'a, "b"\nc', "κ", "-0.5", "")
COUNT = 24


def cells(grid):
    return [{"k": k, "text": TEXTS[k % len(TEXTS)]} for k in range(COUNT if grid == "full" else 3)]


def measure(k, text):
    started = time.perf_counter()
    if "NOTED" in os.environ:
        with Path(os.environ["NOTED"]).open("a") as file:
            file.write(f"{k} {os.getpid()}\n")
    time.sleep(float(os.environ.get("PAUSE", "0")))
    return {
        "value": np.sin(k) * 10.0 ** (k % 40 - 20),
        "nothing": [None, np.nan, np.inf][k % 3],
        "pair": (k, str(k)),
        "said": text * 2,
        "seconds": time.perf_counter() - started,
    }


def interrupted(now):
    """Measure cells until a condition on k holds; then interrupt the run."""

    def measure_or_stop(k, text):
        if now(k):
            raise KeyboardInterrupt
        return measure(k, text)

    return measure_or_stop


def fail_variously(k, text):
    """One cell crashes, one exceeds the time limit, one the memory limit."""
    if k == 1:
        os.kill(os.getpid(), signal.SIGSEGV)
    if k == 2:
        time.sleep(120.0)
    if k == 3:
        np.ones(10**11)
    return measure(k, text)


def fail_for_two(k, text):
    if k == 2:
        raise OSError("no such data")
    return measure(k, text)


def draw(table, stem):
    write_text(stem.with_suffix(".png"), table.drop(columns="seconds").to_csv())


def findings(table):
    return [Finding("Values", one_row(values=len(table)))]


EXPERIMENT = Experiment("toy", cells, measure, draw, findings, {"tol": 1})


def run(*arguments, **changes):
    """Run the command of the toy experiment, some fields of which may be changed."""
    return command.run(replace(EXPERIMENT, **changes), None, ["--jobs", "2", *map(str, arguments)])


class Here:
    """A worker without its own process."""

    def __init__(self, memory_limit):
        self.peak = 0.0

    def call(self, function, *arguments, stopped=bool, **limits):
        assert not stopped()
        return function(*arguments)

    def close(self):
        pass


# What is there during a run and after it


def without_seconds(path="figures/toy.csv"):
    """The header and the rows of a table, as text."""
    table = pd.read_csv(path, dtype=str, keep_default_na=False).drop(columns="seconds")
    return [list(table), *table.to_numpy().tolist()]


def logged():
    """Return the keys of the complete lines in the log."""
    lines = [line for path in Path("build").glob("toy_full_*.log") for line in path.read_bytes().split(b"\n")[:-1]]
    return {read_line(line)[0] for line in lines if line}


def noted():
    """Return how often each cell was measured."""
    numbers = [int(line.split()[0]) for line in Path("noted").read_text().splitlines()]
    return {k: numbers.count(k) for k in numbers}


def forget_noted():
    Path("noted").write_text("")


def assert_rest_is_measured(expected, left, *arguments):
    """Check that a run measures exactly the cells that are not in the log, and that its table is the expected one."""
    forget_noted()
    assert run(*arguments) == 0
    assert sum(noted().values()) == COUNT - left
    assert without_seconds() == expected


def one_error(text):
    """Return the one line on standard error that begins with "error: "."""
    error = "error: " + text.partition("error: ")[2]
    assert error.count("\n") == 1, text
    return error


def are_gone(processes, seconds=90.0):
    """Return whether processes end by themselves; a terminated process that was not waited for counts as ended."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            states = [Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] for number in processes]
        except FileNotFoundError:
            processes = [number for number in processes if Path(f"/proc/{number}").exists()]
            continue
        if set(states) <= {"Z"}:
            return True
        time.sleep(0.05)
    return False
