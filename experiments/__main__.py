"""Run an experiment: ``python -m experiments NAME [options]``; without a name, list the experiments."""

import ast
import sys

from experiments.harness.command import REFUSED, find_experiments, load, run


def main(arguments: list[str]) -> int:
    """Run the command and return its exit status."""
    known = find_experiments()
    about = {name: ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "" for name, path in known.items()}
    if not arguments or arguments[0] in ("-h", "--help"):
        print("python -m experiments NAME [--grid smoke] [--jobs 4] [--help], where NAME is one of")
        for name, text in about.items():
            print(f"  {name:<18}{text.partition(chr(10))[0]}")
        return 0
    name = arguments[0].replace("-", "_")
    if name not in known:
        print(f"error: unknown experiment: {arguments[0]}. Choose one of {', '.join(known)}.", file=sys.stderr)
        return REFUSED
    return run(load(name), about[name], arguments[1:])


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
