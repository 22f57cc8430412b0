"""List the tables measured by an earlier version of the code: ``python -m experiments.stale``.

``--at COMMIT NAME ...`` records tables as measured by the code of a commit.
"""

import argparse

from experiments.harness import provenance


def main(arguments: list[str] | None = None) -> int:
    """List the stale tables (status 1 if there are any), or record tables as measured by the code of a commit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--at", metavar="COMMIT", help="record the named tables as measured by the code of this commit")
    parser.add_argument("names", nargs="*", help="names of tables, without .csv")
    values = parser.parse_args(arguments)
    if values.at:
        provenance.record(values.names, provenance.read_commit(values.at))
    print(provenance.describe_stale())
    return int(bool(provenance.find_stale()))


if __name__ == "__main__":
    raise SystemExit(main())
