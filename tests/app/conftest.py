"""Fixtures: the program in this process, and a worker process for the page."""

import pytest

from diffrac_cvx.app.cli import console
from diffrac_cvx.app.cli.program import run_command_line
from diffrac_cvx.machine.processes import Worker


@pytest.fixture
def command(capsys, monkeypatch):
    """Return a function that runs the program without progress and returns exit status, output and errors."""

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
