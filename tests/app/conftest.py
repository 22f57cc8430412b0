"""The program in this process, and another process for the page."""

import pytest

from diffrac_cvx.app.cli import console
from diffrac_cvx.app.cli.program import run_command_line
from diffrac_cvx.machine.processes import Worker


@pytest.fixture
def command(capsys, monkeypatch):
    """A function that runs the program and gives its exit status, its output and its errors; no progress is shown."""

    def run_command(*arguments):
        status = run_command_line(list(map(str, arguments)))
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    monkeypatch.setattr(console, "FIRST_LINE_SECONDS", 1e6)
    return run_command


@pytest.fixture(scope="session")
def worker():
    worker = Worker()
    worker.start()
    yield worker
    worker.close()
