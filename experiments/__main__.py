"""Run an experiment: ``python -m experiments NAME [options]``; without a name, list the experiments."""

import ast
import sys
from importlib import import_module
from pathlib import Path

from experiments.harness.command import REFUSED, run

FOLDER = Path(__file__).parent


def find_modules() -> dict[str, str]:
    """Return the module of each experiment, which defines ``EXPERIMENT``: FOLDER/experiment.py, or FOLDER/NAME.py."""
    paths = [path for path in FOLDER.glob("*/*.py") if "\nEXPERIMENT = " in path.read_text(encoding="utf-8")]
    names = {path.parent.name if path.stem == "experiment" else path.stem: path for path in paths}
    return {name: f"experiments.{names[name].parent.name}.{names[name].stem}" for name in sorted(names)}


def find_experiments() -> dict[str, str]:
    """Return the description of each experiment, the docstring of its module."""
    paths = {name: FOLDER.parent / f"{module.replace('.', '/')}.py" for name, module in find_modules().items()}
    return {name: ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "" for name, path in paths.items()}


def main(arguments: list[str]) -> int:
    """Run the command and return its exit status."""
    known = find_experiments()
    if not arguments or arguments[0] in ("-h", "--help"):
        print("python -m experiments NAME [--grid smoke] [--jobs 4] [--help], where NAME is one of")
        for name, about in known.items():
            print(f"  {name:<18}{about.partition(chr(10))[0]}")
        return 0
    name = arguments[0].replace("-", "_")
    if name not in known:
        print(f"error: unknown experiment: {arguments[0]}. Choose one of {', '.join(known)}.", file=sys.stderr)
        return REFUSED
    return run(import_module(find_modules()[name]).EXPERIMENT, known[name], arguments[1:])


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
