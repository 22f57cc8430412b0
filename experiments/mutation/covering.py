"""Tests that run the code changed by a mutant, with their durations, from the data of ``make coverage``."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

from diffrac_cvx.errors import DataError

DATA, REPORT = Path("build/coverage"), Path("build/tests.xml")
BUDGET = 8.0  # seconds of tests per mutant, by their times without it


def choose_tests(file: str, line: int, named_in: Iterable[str]) -> list[str]:
    """Return tests that run a line of a file, the most promising first, as many as the budget allows.

    For a constant of the module, they are the tests that run a line of the files `named_in` with its name.
    """
    source, seconds = Path(file).read_text(), read_seconds()
    names, lines = surroundings(source, line)
    if names:
        places = [(other, found) for other in named_in for found in lines_that_name(Path(other).read_text(), names)]
    else:
        places = [(file, found) for found in lines]
    tests = {test for place, found in places for test in read_contexts(place).get(found, ())}
    return within_budget(alternating(tests & seconds.keys(), seconds), seconds)


def surroundings(source: str, line: int) -> tuple[set[str], range]:
    """Return the names that a line defines in the module, or else the lines of the innermost statement around it.

    For a default value, they are the lines of the function's body.
    """
    names, lines = set[str](), range(0)
    tree = ast.parse(source)
    for node in ast.walk(tree):  # from the outermost to the innermost
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or line):
            begin = node.lineno
            if isinstance(node, ast.FunctionDef):
                begin = node.body[0].lineno
            elif node in tree.body and isinstance(node, ast.Assign):
                names = {target.id for target in node.targets if isinstance(target, ast.Name)}
            lines = range(begin, (node.end_lineno or line) + 1)
    return names, lines


def lines_that_name(text: str, names: set[str]) -> Iterator[int]:
    """Yield the first lines of the statements that use any of these names."""
    for node in ast.walk(ast.parse(text)) if any(name in text for name in names) else ():
        if isinstance(node, ast.stmt) and not isinstance(node, ast.FunctionDef | ast.ClassDef):
            used = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
            yield from [node.lineno] if used & names else []


def alternating(tests: Iterable[str], seconds: Mapping[str, float]) -> list[str]:
    """Return tests sorted by time; the time of the second case of a test function counts twice, and so on."""
    seen: dict[str, int] = {}
    rank = {}
    for test in sorted(tests, key=lambda test: (seconds[test], test)):
        function = test.partition("[")[0]
        seen[function] = rank[test] = seen.get(function, 0) + 1
    return sorted(rank, key=lambda test: (rank[test] * seconds[test], test))


def within_budget(tests: Iterable[str], seconds: Mapping[str, float], budget: float = BUDGET) -> list[str]:
    """Return tests that together fit in the budget, the first that fit, and at least one."""
    chosen, total = list[str](), 0.0
    for test in tests:
        if not chosen or total + seconds[test] <= budget:
            chosen.append(test)
            total += seconds[test] + 0.01
    return chosen


@cache
def read_contexts(file: str) -> dict[int, set[str]]:
    """Return the tests that run each line of a file, from the data of coverage.py."""
    import coverage  # only this command needs it

    data = coverage.CoverageData(str(DATA))
    data.read()
    lines = data.contexts_by_lineno(str(Path(file).resolve()))
    return {line: {test.partition("|")[0] for test in tests} - {""} for line, tests in lines.items()}


@cache
def read_seconds() -> dict[str, float]:
    """Return the seconds of each test that passed, from the report of the tests (JUnit's XML)."""
    if not (DATA.exists() and REPORT.exists()):
        raise DataError(f"{DATA} or {REPORT} is missing. Run make coverage first.")
    cases = [case for case in ElementTree.parse(REPORT).iter("testcase") if not len(case)]  # a local, trusted file
    names = [f"{case.attrib['classname'].replace('.', '/')}.py::{case.attrib['name']}" for case in cases]
    return dict(zip(names, (float(case.attrib["time"]) for case in cases), strict=True))
