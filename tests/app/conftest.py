"""Fixture: the program in this process."""

import pytest

from diffrac_cvx.app.cli import console
from diffrac_cvx.app.cli.program import run_command_line


@pytest.fixture
def command(capsys, monkeypatch):
    """Return a function that runs the program without progress and returns exit status, output and errors."""

    def run_command(*arguments):
        status = run_command_line(list(map(str, arguments)))
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    monkeypatch.setattr(console, "FIRST_LINE_SECONDS", 1e6)
    return run_command
