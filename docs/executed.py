"""Directives of these pages: Python, and lines of the command line, that run when the pages are built.

What they print is shown below them.  An exception, or an exit status other than the one announced, ends the build.
"""

import contextlib
import io
import re
import shlex
import tempfile
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.typing import ExtensionMetadata

from diffrac_cvx.app.cli import console
from diffrac_cvx.app.cli.program import run_command_line

WIDTH = 88  # characters of a line that a page shows without a scroll bar
NAMES: dict[str, dict[str, Any]] = {}  # of each page, shared by its blocks
FOLDERS: dict[str, "tempfile.TemporaryDirectory[str]"] = {}  # where each page's blocks work


def wrap(line: str) -> str:
    """Return a line in parts that fit the page, broken after spaces and commas; a line of a table as it is."""
    if len(line) <= WIDTH or len(re.findall(r"\S {2,}\S", line)) > 1:
        return line
    end = " \\" if line.startswith("$ ") else ""  # so that a command in parts can be pasted
    parts = [""]
    words = r'(?:"[^"]*"|[^ ,])*[ ,]?' if end else r"[^ ,]*[ ,]?"  # quoted text in a command stays in one part
    for word in re.findall(words, line):
        if parts[-1].strip() and len(parts[-1] + word.rstrip()) > WIDTH - len(end):
            parts.append("    ")
        parts[-1] += word
    return f"{end}\n".join(part.rstrip() for part in parts)


def listing(text: str, language: str) -> nodes.literal_block:
    """Return a block of code, or of what was printed."""
    text = text if language == "python" else "\n".join(map(wrap, text.splitlines()))
    return nodes.literal_block(text, text, language=language)


def printed_by(page: str, call: Any) -> tuple[Any, str]:
    """Return what a call returns and what it prints, run in the page's own folder."""
    folder = FOLDERS.setdefault(page, tempfile.TemporaryDirectory())
    printed = io.StringIO()
    with contextlib.chdir(folder.name), contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        outcome = call()
    return outcome, printed.getvalue().rstrip("\n")


class RunPython(SphinxDirective):
    """``.. run-python::`` runs its content after that of the blocks before it on the page."""

    has_content = True
    option_spec: ClassVar = {"hidden": directives.flag}

    def run(self) -> list[nodes.Node]:
        """Run the block; show it and what it prints."""
        page, text = self.env.docname, "\n".join(self.content)
        code = compile(text, f"{page}, line {self.lineno}", "exec")
        _, printed = printed_by(page, lambda: exec(code, NAMES.setdefault(page, {})))
        if "hidden" in self.options:
            return []
        return [listing(text, "python"), *([listing(printed, "text")] if printed else [])]


class RunProgram(SphinxDirective):
    """``.. run-program::`` runs lines such as ``diffrac-cvx --version``; ``:exit:`` is their exit status.

    ``:lines:`` is how many lines of what each prints are shown.
    """

    has_content = True
    option_spec: ClassVar = {"exit": directives.nonnegative_int, "lines": directives.positive_int}

    def run(self) -> list[nodes.Node]:
        """Run each line; show it and what it prints."""
        expected, shown = self.options.get("exit", 0), []
        for line in self.content:
            program, *arguments = shlex.split(line)
            if program != "diffrac-cvx":
                raise self.error(f"{program} is not the program of this package")
            status, printed = printed_by(self.env.docname, lambda given=arguments: run_command_line(given))
            if status != expected:
                raise self.error(f"{line} ended with {status}, not {expected}: {printed}")
            lines = printed.splitlines()
            most = self.options.get("lines", len(lines))
            shown += [f"$ {line}", *lines[:most], *(["..."] if len(lines) > most else [])]
        return [listing("\n".join(shown), "console")]


def setup(app: Sphinx) -> ExtensionMetadata:
    """Add the directives."""
    console.FIRST_LINE_SECONDS = 1e6  # how long a command takes is no part of a page
    app.add_directive("run-python", RunPython)
    app.add_directive("run-program", RunProgram)
    return {"parallel_read_safe": False}
