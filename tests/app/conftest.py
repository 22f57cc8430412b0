"""Fixtures: the program in this process, and a headless browser."""

import shutil

import pytest

from diffrac_cvx.app.cli import console
from diffrac_cvx.app.cli.program import run_command_line

FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip


@pytest.fixture(scope="session")
def browser():
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert path, "Chromium is not installed"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def command(capsys, monkeypatch):
    """Return a function that runs the program without progress and returns exit status, output and errors."""

    def run_command(*arguments):
        status = run_command_line(list(map(str, arguments)))
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    monkeypatch.setattr(console, "FIRST_LINE_SECONDS", 1e6)
    return run_command
