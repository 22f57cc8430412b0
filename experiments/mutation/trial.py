"""Try tests on a mutant: in a copy of this process, where the package is imported again, with one place changed."""

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
LONGER = 5.0  # times the usual seconds that a test may take on a mutant, of the processor
AT_LEAST = 4.0  # seconds
WAITING = 120.0  # seconds that may pass, and ten times those of all tests, before a process is ended
MEMORY = 6e9  # bytes more than the first process has
ENDED = "ended or too long"
QUIETLY = ("-qq", "-p", "no:cacheprovider", "-p", "no:faulthandler")


class FirstFailure:
    """A plugin of pytest that notes which test failed first, and ends the process where one takes too long."""

    def __init__(self, seconds: Mapping[str, float]) -> None:
        self.seconds, self.name = seconds, ""

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Let the signal SIGPROF, which nobody handles, come when the time is over."""
        signal.setitimer(signal.ITIMER_PROF, AT_LEAST + LONGER * self.seconds[nodeid])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a failure."""
        if report.failed and not self.name:
            self.name = report.nodeid


def first_failure(seconds: Mapping[str, float], file: str, number: int | None) -> str:
    """Return the test that fails first on a mutant, on the code as it is if there is no number; "" if none does.

    The tests come with the seconds that they usually take.
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
    gc.freeze()  # what was there before is neither looked at nor copied
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
    """Import once what the tests import; what is of this project, each copy of this process imports again."""
    with redirect_stdout(StringIO()):
        pytest.main(["--collect-only", *QUIETLY])


def put_mutant(path: Path, number: int) -> None:
    """Let the import of a file compile it with one place changed, whatever its byte code in the cache is."""
    usual = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, name: str) -> CodeType | None:
        if loader.path != str(path):
            return usual(loader, name)
        code: CodeType = compile(mutate(path.read_text(), number), path, "exec")
        return code

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign, assignment]


def confine() -> None:
    """Let this process write nowhere, and refuse it too much memory."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + int(MEMORY),) * 2)
