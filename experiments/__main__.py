"""Run an experiment: ``python -m experiments NAME [options]``; without a name, list the experiments."""

import ast
import sys
from importlib import import_module
from pathlib import Path

from experiments.harness.command import REFUSED, run

FOLDER = Path(__file__).parent


def find_experiments() -> dict[str, str]:
    """Return the description of each experiment: each folder whose ``experiment.py`` defines ``EXPERIMENT``."""
    paths = sorted(FOLDER.glob("*/experiment.py"))
    return {path.parent.name: ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "" for path in paths}


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
    return run(import_module(f"experiments.{name}.experiment").EXPERIMENT, known[name], arguments[1:])


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
