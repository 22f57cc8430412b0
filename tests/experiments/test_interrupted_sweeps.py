"""Sweeps under faults: killed, no space, no permission, a damaged log, another grid.

The final table is that of an undisturbed run, except for times; otherwise there is one message and the old table.
Children are forked, so a kill costs no imports; in the fast tests they measure in their own process.
"""

import errno
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import pytest
from toy import (
    COUNT,
    TEXTS,
    are_gone,
    assert_rest_is_measured,
    cells,
    forget_noted,
    interrupted,
    logged,
    measure,
    noted,
    one_error,
    run,
    without_seconds,
)  # fmt: skip

import experiments.harness.sweep as runner
from diffrac_cvx.machine.processes import WorkerDiedError
from experiments.harness.command import INTERRUPTED, REFUSED
from experiments.harness.sweep import Log, Task, measure_cell

pytestmark = pytest.mark.usefixtures("folder")


def fork(*arguments, prepare=lambda: None):
    """Start a run in another process, with output in the files out and err, and return its process ID."""
    child = os.fork()
    if child:
        return child
    status = 99
    try:
        sys.stdout, sys.stderr = (open(name, "a", buffering=1) for name in ("out", "err"))  # noqa: SIM115
        prepare()
        status = run(*arguments)
    finally:
        os._exit(status)


def status_of(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


# Killed


@pytest.mark.slow
def test_fifty_kills_of_runs_with_processes_of_their_own_lose_nothing(expected, monkeypatch):
    """After each kill, all earlier rows are still there, and are not measured again."""
    monkeypatch.setenv("PAUSE", "0.01")
    random.seed(2018)
    kills, before = 0, {}
    while kills < 50:
        child = fork()
        if random.random() < 0.5:
            time.sleep(random.uniform(0.0, 3.0))
        else:
            rows = min(len(logged()) + random.randint(1, COUNT // 2), COUNT - 1)
            while len(logged()) < rows and os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                time.sleep(0.001)
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            assert os.waitstatus_to_exitcode(status) == 0, Path("err").read_text()
            before = {}
            forget_noted()
        else:
            lists = [path.read_text() for path in Path(f"/proc/{child}/task").glob("*/children")]  # of any thread
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            assert are_gone([int(number) for text in lists for number in text.split()]), "no process outlives the run"
            kills += 1
        assert without_seconds() == expected, "the table that was there stays until the new one is whole"
        counts, there = noted(), logged()
        assert set(before) <= there or not there, "rows leave the log once they are in the table"
        for key in set(before) & there:
            assert counts[json.loads(key)["k"]] == before[key], "what is in the log is not measured again"
        before = {key: counts[json.loads(key)["k"]] for key in there}
    assert status_of(fork()) == 0
    assert without_seconds() == expected
    assert not list(Path("build").glob("*.log"))


@pytest.mark.parametrize(
    ("code", "deaths", "calls", "reason"),
    [
        (-signal.SIGKILL, 2, 3, None),
        (-signal.SIGTERM, 1, 2, None),
        (-signal.SIGKILL, 9, 3, "the process died: SIGKILL"),
        (-signal.SIGSEGV, 1, 1, "the process died: SIGSEGV"),
        (3, 1, 1, "the process died: exit code 3"),
    ],
)
def test_a_death_is_a_row_unless_it_came_from_outside_and_does_not_repeat(monkeypatch, code, deaths, calls, reason):
    seen = []

    class Dying:
        def __init__(self, memory_limit):
            pass

        def call(self, *call, **limits):
            seen.append(code)
            if len(seen) <= deaths:
                raise WorkerDiedError(code)
            return {"value": 1}

    monkeypatch.setattr(runner, "Worker", Dying)
    monkeypatch.setattr(runner, "PROCESSES", {})
    assert measure_cell(Task(measure), {}) == ({"reason": reason} if reason else {"value": 1})
    assert len(seen) == calls


# No room, no rights


@pytest.mark.parametrize("size", [0, 1500])
def test_without_room_for_the_log_there_is_a_sentence_and_later_the_rest(expected, here, size):
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    before = Path("figures/toy.csv").read_bytes()

    def prepare():
        if size < 1000:  # no space for messages either
            sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, limit))

    assert status_of(fork(prepare=prepare)) == REFUSED
    assert Path("figures/toy.csv").read_bytes() == before
    there, counts = logged(), noted()
    if size > 1000:
        assert there
        assert "the same command goes on from there" in Path("err").read_text().splitlines()[-1]
    assert run() == 0
    assert all(noted()[json.loads(key)["k"]] == counts[json.loads(key)["k"]] for key in there)
    assert without_seconds() == expected


@pytest.mark.parametrize("which", ["csv", "png"])
def test_without_room_for_the_results_the_old_ones_stay(expected, here, capsys, monkeypatch, which):
    write = Path.write_text

    def write_half(path, text, **options):
        if path.name.endswith(f".{which}"):
            write(path, text[: len(text) // 2], **options)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(path, text, **options)

    before = {name: Path(f"figures/toy.{name}").read_bytes() for name in ("csv", "png")}
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", write_half)
        assert run() == REFUSED
    said = one_error(capsys.readouterr().err)
    assert "No space left on device" in said
    assert f"toy.{which}" in said
    assert Path("figures/toy.png").read_bytes() == before["png"]
    assert which == "png" or Path("figures/toy.csv").read_bytes() == before["csv"]
    assert {path.name for path in Path("figures").iterdir()} == {"toy.csv", "toy.png", "provenance.json"}
    counts = noted()
    assert run() == 0
    assert noted() == counts, "all rows are in the log"
    assert without_seconds() == expected


@pytest.mark.parametrize("place", ["out", "build"])
def test_a_folder_without_rights_is_a_sentence_before_anything_is_measured(here, place):
    readonly, free = (Path(tempfile.mkdtemp(dir="/tmp")) for _ in range(2))
    readonly.chmod(0o555)
    free.chmod(0o777)
    os.environ["NOTED"] = str(free / "noted")

    def prepare():
        os.chdir(free if place == "out" else readonly)
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)

    try:
        assert status_of(fork("--out", readonly if place == "out" else free, prepare=prepare)) == REFUSED
        assert "cannot be written" in one_error(Path("err").read_text())
        assert not list(readonly.iterdir())
        assert not (free / "noted").exists()
    finally:
        shutil.rmtree(free)
        shutil.rmtree(readonly)


# Damaged logs, other grids, other settings


@pytest.fixture
def log_of_six(expected, here):
    """The lines of the log of a run that ended after six rows; the third contains UTF-8 text."""
    before = Path("figures/toy.csv").read_bytes()
    assert run("--jobs", 1, measure=interrupted(lambda k: len(noted()) == 6)) == INTERRUPTED
    assert Path("figures/toy.csv").read_bytes() == before
    (path,) = Path("build").glob("*.log")
    lines = path.read_bytes().lstrip().splitlines(keepends=True)
    assert len(lines) == 6
    lines[2] = json.dumps(json.loads(lines[2]), ensure_ascii=False).encode() + b"\n"
    return path, lines


DAMAGES = {  # a log with this damage, and the rows of the six that remain readable
    "none": (lambda whole, line: whole, 6),
    "torn last line": (lambda whole, line: whole[:-20], 5),
    "torn character": (lambda whole, line: whole + b'["{\\"k\\": 1}", {"said": "' + "κ".encode()[:1], 6),
    "zeros inside": (lambda whole, line: whole.replace(line, bytes(len(line) - 1) + b"\n"), 5),
    "two lines in one": (lambda whole, line: whole.replace(line, line[:-1]), 4),
    "other things": (lambda whole, line: whole.replace(line, b'{"a": 1, "b": 2}\n'), 5),
    "twice": (lambda whole, line: whole + b"\n" + line, 6),
}


@pytest.mark.parametrize("which", DAMAGES)
def test_an_interrupted_run_goes_on_and_of_a_damaged_log_all_is_kept_that_can_be_read(log_of_six, expected, which):
    path, lines = log_of_six
    damage, left = DAMAGES[which]
    path.write_bytes(damage(b"".join(lines), lines[2]))
    assert_rest_is_measured(expected, left)


def test_a_log_that_is_cut_loses_one_line_at_most(log_of_six):
    path, lines = log_of_six
    whole = b"".join(lines)
    for size in range(len(whole) - len(lines[-1]) - 3, len(whole) + 1, 3):
        path.write_bytes(whole[:size])
        log = Log(path)
        assert len(log.rows) >= whole[:size].count(b"\n")
        log.add({"k": "next"}, {"value": size})
        assert Log(path).rows == log.rows


def test_a_changed_grid_gives_the_table_of_a_run_on_it(log_of_six):
    grid = [{"k": k, "text": "other" if k == 3 else TEXTS[k % len(TEXTS)]} for k in range(0, COUNT + 9, 3)]
    for folder in ("resumed", "fresh"):
        assert run("--out", folder, cells=lambda name: grid) == 0
    assert without_seconds("resumed/toy.csv") == without_seconds("fresh/toy.csv")


def test_other_settings_neither_use_nor_lose_the_rows(log_of_six, expected):
    forget_noted()
    assert run("--out", "other", settings={"tol": 2}) == 0
    assert sum(noted().values()) == COUNT
    assert_rest_is_measured(expected, 6)


# A part never takes the place of the whole


def test_a_run_of_fewer_cells_leaves_the_whole_table(expected, here, capsys):
    before = Path("figures/toy.csv").read_bytes()
    assert run("--grid", "smoke") == 0
    assert run("--grid", "smoke", "--out", "figures") == 0
    assert run(cells=lambda grid: cells(grid)[:5]) == 0, "such as if a data set is not on this machine"
    said = capsys.readouterr().out
    assert "figures/toy.csv has 24 rows, and this run measures 3; it is kept" in said
    assert "the results are written to build/partial" in said
    assert Path("figures/toy.csv").read_bytes() == before
    assert len(without_seconds("build/partial/toy.csv")) == 6
    assert run("--replace", cells=lambda grid: cells(grid)[:5]) == 0
    assert len(without_seconds()) == 6


@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe\x00", b"a,b\n1,2,3\n1,2,3,4\n"])
def test_a_table_that_is_missing_or_none_is_a_sentence(here, capsys, content):
    Path("figures").mkdir()
    if content is not None:
        Path("figures/toy.csv").write_bytes(content)
    assert run("--draw-only") == REFUSED
    said = "cannot be read (No such file" if content is None else "is not a table"
    assert f"figures/toy.csv {said}" in one_error(capsys.readouterr().err)
    assert run() == (0 if content is None else REFUSED)


@pytest.mark.parametrize("jobs", ["0", "two"])
def test_jobs_are_a_whole_number_from_one_on(capsys, jobs):
    with pytest.raises(SystemExit) as end:
        run("--jobs", jobs)
    assert end.value.code == REFUSED
    assert "is not a positive integer" in capsys.readouterr().err


def test_a_task_may_measure_a_second_sweep_after_the_first_has_ended(here, tmp_path):
    task = Task(dict)
    first, second = (
        runner.sweep([{"value": 1}], task, runner.Log(tmp_path / f"{k}.log"), jobs=1, title="") for k in range(2)
    )
    assert first.equals(second)
    assert len(second) == 1
