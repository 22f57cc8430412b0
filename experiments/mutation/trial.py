"""Run tests on a mutant, in a fork of this process in which the package is imported again with one change."""

import gc
import os
import resource
import signal
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from functools import cache
from importlib.machinery import SourceFileLoader
from io import StringIO
from multiprocessing import Pipe
from pathlib import Path
from types import CodeType

import pytest

from experiments.mutation.operators import mutate

ROOT = Path(__file__).parents[2]
LONGER = 5.0  # factor of the usual processor time that a test may take on a mutant
AT_LEAST = 4.0  # seconds
WAITING = 120.0  # seconds, plus ten times those of all tests, before a process is killed
MEMORY = 6e9  # bytes in addition to those of the parent process
ENDED = "ended or too long"
QUIETLY = ("-qq", "-p", "no:cacheprovider", "-p", "no:faulthandler")


class FirstFailure:
    """Pytest plugin that records the first failing test, and ends the process if a test takes too long."""

    def __init__(self, seconds: Mapping[str, float]) -> None:
        self.seconds, self.name = seconds, ""

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Raise the unhandled signal SIGPROF when the time is over."""
        signal.setitimer(signal.ITIMER_PROF, AT_LEAST + LONGER * self.seconds[nodeid])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record a failure."""
        if report.failed and not self.name:
            self.name = report.nodeid


def first_failure(seconds: Mapping[str, float], file: str, number: int | None) -> str:
    """Return the first test that fails on a mutant (without a number, on the original code); "" if none does.

    The tests come with their usual seconds.
    """
    warm_up()
    ours, theirs = Pipe(duplex=False)
    child = os.fork()
    if not child:
        try:
            theirs.send(run_tests(seconds, file, number))
        finally:
            os._exit(0)
    theirs.close()
    ours.poll(WAITING + 10.0 * sum(seconds.values()))  # an answer, or the end of the process
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with ours:
        try:
            found: str = ours.recv() if ours.poll() else ENDED
        except EOFError:
            return ENDED
    return found


def run_tests(seconds: Mapping[str, float], file: str, number: int | None) -> str:
    """Run tests on a mutant until one fails, and return its name."""
    gc.freeze()  # existing objects are neither scanned nor copied
    confine()
    for name, module in list(sys.modules.items()):
        places = [str(Path(ROOT, folder)) for folder in ("diffrac_cvx", "experiments", "tests")]
        if (getattr(module, "__file__", None) or "").startswith(tuple(places)):
            del sys.modules[name]
    if number is not None:
        put_mutant(ROOT / file, number)
    plugin = FirstFailure(seconds)
    status = pytest.main(["-x", *QUIETLY, *seconds], plugins=[plugin])
    return plugin.name or ("" if status == 0 else "the tests cannot be collected")


@cache
def warm_up() -> None:
    """Import the modules of the tests once; modules of this project are imported again in each fork."""
    with redirect_stdout(StringIO()):
        pytest.main(["--collect-only", *QUIETLY])


def put_mutant(path: Path, number: int) -> None:
    """Make the import of a file compile it with one change, regardless of cached byte code."""
    usual = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, name: str) -> CodeType | None:
        if loader.path != str(path):
            return usual(loader, name)
        code: CodeType = compile(mutate(path.read_text(), number), path, "exec")
        return code

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign, assignment]


def confine() -> None:
    """Deny this process writing and excessive memory."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + int(MEMORY),) * 2)
