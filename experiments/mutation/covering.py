"""Which tests run a line, and how long each takes: from the data that ``make coverage`` leaves."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from experiments.mutation.operators import Mutant


@dataclass(frozen=True)
class Coverage:
    """What the fast tests run.

    Attributes
    ----------
    contexts : mapping
        From a file to a mapping from its lines to the tests that run them.
    seconds : mapping
        From a test to the seconds that it takes.
    """

    contexts: Mapping[str, Mapping[int, list[str]]]
    seconds: Mapping[str, float]

    def tests_of(self, mutant: Mutant, source: str) -> list[str]:
        """Return the tests that run what a mutant changes, in the order in which they are to be tried."""
        here = self.contexts[mutant.file].get(mutant.line)
        if mutant.function and here:
            tests = set(here)
        elif mutant.function:  # a line of an expression, or a default
            tests = self.tests_of_lines(mutant.file, lines_of_function(source, mutant.function, mutant.line))
        else:
            tests = self.tests_of_name(source, mutant.line)
        return alternating(tests & self.seconds.keys(), self.seconds)

    def tests_of_lines(self, file: str, lines: Iterable[int]) -> set[str]:
        """Return the tests that run any of these lines of a file."""
        return {test for line in lines for test in self.contexts[file].get(line, [])}

    def tests_of_name(self, source: str, line: int) -> set[str]:
        """Return the tests that run a line of any file where a constant is named, the one that a line defines."""
        names = {
            node.id
            for statement in ast.parse(source).body
            if statement.lineno <= line <= (statement.end_lineno or line)
            for node in ast.walk(statement)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        found = set()
        for file in self.contexts:
            text = Path(file).read_text()
            if any(name in text for name in names):
                found |= self.tests_of_lines(file, lines_that_name(text, names))
        return found


def lines_of_function(source: str, name: str, line: int) -> range:
    """Return the lines of a statement's surroundings: those of the innermost statement, or else of the function."""
    best = range(0)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or line):
            if isinstance(node, ast.FunctionDef) and line < node.body[0].lineno:
                return range(node.body[0].lineno, (node.end_lineno or line) + 1)
            best = range(node.lineno, (node.end_lineno or line) + 1)
    return best


def lines_that_name(text: str, names: set[str]) -> Iterator[int]:
    """Yield the first lines of the statements that use any of these names."""
    for statement in ast.walk(ast.parse(text)):
        if not isinstance(statement, ast.stmt) or isinstance(statement, ast.FunctionDef | ast.ClassDef):
            continue
        if any(isinstance(node, ast.Name) and node.id in names for node in ast.walk(statement)):
            yield statement.lineno


def alternating(tests: Iterable[str], seconds: Mapping[str, float]) -> list[str]:
    """Return tests by their time, that of the second case of a test function counted twice, and so on."""
    seen: dict[str, int] = {}
    rank = {}
    for test in sorted(tests, key=lambda test: (seconds[test], test)):
        function = test.partition("[")[0]
        seen[function] = rank[test] = seen.get(function, -1) + 1
    return sorted(rank, key=lambda test: ((rank[test] + 1) * seconds[test], test))


def read_coverage(data: Path, report: Path, files: Iterable[str], root: Path) -> Coverage:
    """Read the contexts from the data of coverage.py, and the times from the report of the tests (JUnit's XML)."""
    import coverage  # only this command needs it

    read = coverage.CoverageData(str(data))
    read.read()
    return Coverage(Contexts(read, root, files), seconds_of(report))


class Contexts(Mapping[str, Mapping[int, list[str]]]):
    """From a file to a mapping from its lines to the tests that run them, read when a file is first asked for."""

    def __init__(self, data: Any, root: Path, files: Iterable[str]) -> None:
        self.data, self.root, self.files = data, root, list(files)
        self.known: dict[str, dict[int, list[str]]] = {}

    def __getitem__(self, file: str) -> Mapping[int, list[str]]:
        if file not in self.known:
            lines = self.data.contexts_by_lineno(str(self.root / file))
            self.known[file] = {i: sorted({test.partition("|")[0] for test in lines[i]} - {""}) for i in lines}
        return self.known[file]

    def __iter__(self) -> Iterator[str]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)


def seconds_of(report: Path) -> dict[str, float]:
    """Return the seconds of each test that passed."""
    found = {}
    for case in ElementTree.parse(report).iter("testcase"):  # our own file
        if not len(case):
            file = case.attrib["classname"].replace(".", "/") + ".py"
            found[f"{file}::{case.attrib['name']}"] = float(case.attrib["time"])
    return found
