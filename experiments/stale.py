"""Name the tables that were measured by other code than today's: ``python -m experiments.stale``.

``--at COMMIT NAME ...`` records tables as measured by the code of a commit.
"""

import argparse

from experiments.harness import provenance


def main(arguments: list[str] | None = None) -> int:
    """List the stale tables, or record some by the code of a commit; 1 where there is a stale one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--at", metavar="COMMIT", help="record the tables named by the code of this commit")
    parser.add_argument("names", nargs="*", help="tables, without .csv")
    values = parser.parse_args(arguments)
    if values.at:
        provenance.record(values.names, provenance.read_commit(values.at))
    print(provenance.describe_stale())
    return int(bool(provenance.find_stale()))


if __name__ == "__main__":
    raise SystemExit(main())
