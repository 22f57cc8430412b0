"""Record the code that measured each table, and find stale tables: ``python -m experiments.stale``.

A full run stores, next to its table, a checksum of each module that its numbers depend on: the module that measures
its cells and everything it imports from this package and from the experiments.  Docstrings, comments, formatting and
types do not count, nor does code that runs cells, draws figures or judges claims.
"""

import ast
import json
import subprocess
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from hashlib import sha256
from importlib import import_module
from io import BytesIO
from pathlib import Path
from textwrap import indent
from typing import NamedTuple

from diffrac_cvx.machine.writing import write_text

ROOT, FIGURES = Path(__file__).parents[2], Path("figures")
FILE = "provenance.json"
SHOWN = 4  # number of modules named for a stale table
PACKAGES = ("diffrac_cvx", "experiments")
RUNNING = ("experiments.harness", "diffrac_cvx.machine")  # runs cells and stores rows; does not change the numbers
WHOLE = {"mutation": "diffrac_cvx", "coverage": "diffrac_cvx"}  # tables that depend on all modules
Sources = Mapping[str, str]  # module name to source text


def read_sources(root: Path = ROOT) -> dict[str, str]:
    """Return the sources of all modules in a folder that contains the packages."""
    paths = [path for package in PACKAGES for path in sorted((root / package).rglob("*.py*")) if is_source(path)]
    return with_stubs({path.relative_to(root): path.read_text(encoding="utf-8") for path in paths})


def read_commit(commit: str) -> dict[str, str]:
    """Return the sources of all modules at a commit."""
    packed = subprocess.run(["git", "archive", commit, *PACKAGES], cwd=ROOT, capture_output=True, check=True).stdout
    found = {}
    with tarfile.open(fileobj=BytesIO(packed)) as files:
        for member in files:
            content = files.extractfile(member) if is_source(Path(member.name)) else None
            if content is not None:
                found[Path(member.name)] = content.read().decode()
    return with_stubs(found)


def is_source(path: Path) -> bool:
    """Return whether a file is a module or a stub."""
    return path.suffix in (".py", ".pyi")


def with_stubs(texts: Mapping[Path, str]) -> dict[str, str]:
    """Return the source of each module by name; imports of a stub, from its own package, count as types only."""
    found = {}
    for path, text in texts.items():
        if path.suffix == ".py":
            stub = texts.get(path.with_suffix(".pyi"), "").replace("from . ", f"from {name_of(path)} ")
            types = indent(stub.replace("from .", f"from {name_of(path)}."), "    ")
            found[name_of(path)] = f"{text}\nif TYPE_CHECKING:\n{types}" if types else text
    return found


def name_of(path: Path) -> str:
    """Return the name of the module in a file."""
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


class Code(NamedTuple):
    """Checksum of a module, the (module, name) pairs that it imports, and the names that it re-exports."""

    checksum: str
    needs: list[tuple[str, str]]
    passed_on: dict[str, str]


def closure(start: Iterable[str], sources: Sources) -> dict[str, str]:
    """Return the modules on which the given modules depend, including themselves, with their checksums."""
    found: dict[str, str] = {}
    waiting = list(start)
    while waiting:
        name = waiting.pop()
        if name in found or name.startswith(RUNNING):
            continue
        code = read_code(sources[name])
        found[name] = code.checksum
        waiting += [source_of(module, part, sources) for module, part in code.needs if module in sources]
    return dict(sorted(found.items()))


def source_of(module: str, name: str, sources: Sources) -> str:
    """Return the module that defines a name, following re-exports of packages."""
    if f"{module}.{name}" in sources:
        return f"{module}.{name}"
    origin = read_code(sources[module]).passed_on.get(name, "")
    return source_of(origin, name, sources) if origin in sources and is_package(module, sources) else module


def is_package(module: str, sources: Sources) -> bool:
    """Return whether a module is a package."""
    return any(name.startswith(f"{module}.") for name in sources)


@cache
def read_code(text: str) -> Code:
    """Return the checksum and the imports of the source of a module."""
    tree = ast.parse(text)
    origins = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    passed_on = {alias.asname or alias.name: str(node.module) for node in origins for alias in node.names}
    return Code(checksum_of(tree), sorted(set(needs_of(without_types(tree)))), passed_on)


def needs_of(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield the imports of a module: statements, strings that name a module, and attributes of a package (`dc`)."""
    imported = [alias for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    packages = {alias.asname or alias.name for alias in imported if alias.name in PACKAGES}
    yield from ((alias.name, "") for alias in imported if alias.name not in PACKAGES)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from ((node.module or "", alias.name) for alias in node.names)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in packages:
            yield "diffrac_cvx", node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith(PACKAGES):
            yield node.value.partition(":")[0], ""


def without_types(tree: ast.Module) -> ast.Module:
    """Return a module without its ``TYPE_CHECKING`` blocks."""
    body = [node for node in tree.body if not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test))]
    return ast.Module(body, [])


def checksum_of(tree: ast.Module) -> str:
    """Return a checksum of the behaviour of a module, independent of comments, layout and Python version."""
    return sha256(repr(shape_of(tree)).encode()).hexdigest()[:8]


def shape_of(node: object) -> object:
    """Return a syntax tree as nested tuples, without docstrings and annotations."""
    if isinstance(node, list):
        return tuple(shape_of(entry) for entry in node if not is_docstring(entry))
    if not isinstance(node, ast.AST):
        return repr(node)
    left_out = ("annotation", "returns", "type_comment", "type_params", "kind", "ctx")
    fields = [
        (name, value) for name, value in ast.iter_fields(node) if name not in left_out and value not in (None, [])
    ]
    return (type(node).__name__, *((name, shape_of(value)) for name, value in fields))


def is_docstring(node: object) -> bool:
    """Return whether a statement is a string on its own."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


@cache
def tables() -> dict[str, str]:
    """Return the tables, each with the folder or module of `experiments` that measures it."""
    folders = [path.parent.name for path in sorted((ROOT / "experiments").glob("*/cells.py"))]
    names = {import_module(f"experiments.{folder}.experiment").EXPERIMENT.name: f"{folder}.cells" for folder in folders}
    return {**names, "phase_transition_agreement": names["phase_transition"], "answer": "answer"}


def modules_of(table: str, sources: Sources) -> dict[str, str]:
    """Return the modules that a table depends on, with their checksums; empty for an unknown table."""
    if table in WHOLE:
        return closure((name for name in sources if name.startswith(WHOLE[table])), sources)
    start = f"experiments.{tables().get(table, '')}"
    return closure([start], sources) if start in sources else {}


def record(names: Iterable[str], sources: Sources, folder: Path = FIGURES) -> None:
    """Record the code by which tables were measured; ignore unknown tables."""
    measured = {name: modules for name in names if (modules := modules_of(name, sources))}
    if measured:
        records = read_records(folder) | measured
        lines = [f"{json.dumps(name)}: {json.dumps(records[name])}" for name in sorted(records)]
        write_text(folder / FILE, "{\n" + ",\n".join(lines) + "\n}\n")


def read_records(folder: Path = FIGURES) -> dict[str, dict[str, str]]:
    """Return the recorded modules and checksums of each table."""
    path = folder / FILE
    found: dict[str, dict[str, str]] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


def find_stale(folder: Path = FIGURES) -> dict[str, list[str]]:
    """Return the tables whose recorded code differs from today's, each with the changed modules."""
    sources, found = read_sources(), {}
    for name, before in sorted(read_records(folder).items()):
        now = modules_of(name, sources)
        changed = [module for module in sorted({*before, *now}) if before.get(module) != now.get(module)]
        if changed:
            found[name] = changed
    return found


def describe_stale(folder: Path = FIGURES) -> str:
    """Describe the stale tables: the first changed modules of each, and how many more."""
    stale, count = find_stale(folder), len(read_records(folder))
    if not stale:
        return f"All {count} tables were measured by the current code."
    lines = [f"{len(stale)} of {count} tables were measured by earlier code. Modules changed since then:", ""]
    for name, modules in stale.items():
        more = f" and {len(modules) - SHOWN} more" if len(modules) > SHOWN else ""
        lines.append(f"- `{name}.csv`: {', '.join(f'`{module}`' for module in modules[:SHOWN])}{more}")
    return "\n".join(lines)
