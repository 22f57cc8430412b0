"""Run the tests of many mutants from one process: it collects them once, and each mutant gets a copy of it (fork)."""

import contextlib
import gc
import os
import resource
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pytest

import diffrac_cvx as dc
from experiments.mutation.operators import Mutant
from experiments.mutation.patching import put

BUDGET = 8.0  # seconds of tests a mutant, as they take without one
LONGER = 5.0  # times the usual seconds that a test may take on a mutant, of the processor
AT_LEAST = 4.0  # seconds
WAITING = (
    120.0  # seconds that may pass, over ten times those of all tests, before a process is ended that may be waiting
)
MEMORY = 6e9  # bytes more than the first process has
PAUSE = 0.005  # seconds between two looks at the processes
ENDED = "killed: ended or too long"


class Outcome(NamedTuple):
    """What became of a mutant: killed, by a test or by the limits, or not; and how many tests there were to try."""

    mutant: Mutant
    verdict: str
    by: str
    tests: int


class Task(NamedTuple):
    """A mutant and the tests that are tried on it, in this order; or the test that killed it, tried without it."""

    mutant: Mutant
    tests: list[str]
    killed: Outcome | None = None


class Running(NamedTuple):
    """A process with its task, the end of the pipe to read from, and when it is to be ended."""

    task: Task
    pipe: int
    deadline: float


def within_budget(tests: Sequence[str], seconds: Mapping[str, float], budget: float = BUDGET) -> list[str]:
    """Return tests that together take no longer than the budget, the first ones that fit, and one at least."""
    chosen, total = list[str](), 0.0
    for test in tests:
        if not chosen or total + seconds[test] <= budget:
            chosen.append(test)
            total += seconds[test] + 0.01
    return chosen


class MutationRun:
    """A plugin of pytest: in place of running the tests, it runs those of each mutant in a process of its own.

    A test counts where it passes on the code as it is; this is tried when it first fails on a mutant.
    """

    def __init__(self, tasks: Sequence[Task], seconds: Mapping[str, float], jobs: int) -> None:
        self.waiting, self.seconds, self.jobs = list(reversed(tasks)), seconds, jobs
        self.tests_of = {task.mutant: task.tests for task in tasks}
        self.items: dict[str, pytest.Item] = {}
        self.steady: dict[str, bool] = {}
        self.failed = False
        self.outcomes: list[Outcome] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Try all mutants."""
        self.items = {item.nodeid: item for item in session.items}
        warm_up()
        gc.freeze()  # what is here is shared with all processes, and not visited by theirs
        for outcome in self.try_all():
            self.outcomes.append(outcome)
            self.keep(outcome)
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a failure."""
        self.failed = self.failed or report.failed

    def keep(self, outcome: Outcome) -> None:
        """Say how it goes."""
        mutant = outcome.mutant
        place = f"{mutant.file}:{mutant.line}"
        print(f"{len(self.waiting)} left; {place}, {mutant.change}: {outcome.verdict}", flush=True)

    def try_all(self) -> Iterator[Outcome]:
        """Yield the outcomes as they come, so many processes at a time."""
        running = dict[int, Running]()
        while self.waiting or running:
            while self.waiting and len(running) < self.jobs:
                task = self.waiting.pop()
                tests = [test for test in task.tests if test in self.items and self.steady.get(test, True)]
                if tests:
                    pid, started = self.start(task._replace(tests=tests))
                    running[pid] = started
                else:
                    yield Outcome(task.mutant, "not run by a test", "", 0)
            for pid in list(running):
                ended, _ = os.waitpid(pid, os.WNOHANG)
                if ended:
                    outcome = self.finish(running.pop(pid))
                    if outcome is not None:
                        yield outcome
                elif time.monotonic() > running[pid].deadline:
                    os.kill(pid, signal.SIGKILL)
            time.sleep(PAUSE)

    def start(self, task: Task) -> tuple[int, Running]:
        """Start the process of a task."""
        ours, theirs = os.pipe()
        pid = os.fork()
        if pid:
            os.close(theirs)
            longest = WAITING + 10.0 * sum(self.seconds[test] for test in task.tests)
            return pid, Running(task, ours, time.monotonic() + longest)
        said = b"not tried"
        try:
            confine()
            if task.killed is None:
                put(task.mutant)
            said = b"survived"
            for test in task.tests:
                self.failed = False
                item = self.items[test]
                signal.setitimer(signal.ITIMER_PROF, AT_LEAST + LONGER * self.seconds[test])  # SIGPROF ends it
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
                if self.failed:
                    said = b"killed by " + test.encode()
                    break
        finally:
            os.write(theirs, said)
            os._exit(0)

    def finish(self, running: Running) -> Outcome | None:
        """Return the outcome that a process said before it ended; None if something is to be done first."""
        task = running.task
        with contextlib.closing(os.fdopen(running.pipe, "rb")) as pipe:
            said = pipe.read().decode()
        verdict, _, by = said.partition(" by ")
        if task.killed is not None:
            self.steady[task.killed.by] = verdict == "survived"
            outcome = task.killed
        else:
            outcome = Outcome(task.mutant, verdict or ENDED, by, len(task.tests))
        if not outcome.by or self.steady.get(outcome.by):
            return outcome
        first = Task(task.mutant, self.tests_of[task.mutant])
        self.waiting.append(first if outcome.by in self.steady else Task(task.mutant, [outcome.by], outcome))
        return None


def warm_up() -> None:
    """Do once what all processes would do when they first call a solver: import what is imported late."""
    X = np.random.default_rng(0).standard_normal((8, 2))
    dc.low_rank(X, penalty=dc.Penalty.l1(0.1))
    dc.fista(X)
    for solver in ("CLARABEL", "SCS"):
        dc.solve(dc.v_space(X), solver)


def confine() -> None:
    """Let a process write nowhere, and refuse it too much memory."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + int(MEMORY),) * 2)
