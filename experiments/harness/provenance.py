"""Provenance of each table: version and commit of the code, machine, and processor seconds of its measurement."""

import json
import platform
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import diffrac_cvx as dc
from diffrac_cvx.machine.writing import write_text

ROOT, FIGURES = Path(__file__).parents[2], Path("figures")
FILE, RECHECKS = "provenance.json", "recheck.json"  # what measured a table; what measuring it again gave


def read_commit() -> str:
    """Return the commit of the code, with a plus if files have changed since; "unknown" outside a repository."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no", "--", "diffrac_cvx", "experiments")
        return git("rev-parse", "--short=12", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def read_machine() -> str:
    """Return the system and the processor, without names of people or hosts."""
    cpu = Path("/proc/cpuinfo")
    named = re.search(r"model name\s*: (.*)", cpu.read_text()) if cpu.exists() else None
    model = named[1] if named else platform.processor() or platform.machine()
    return f"{platform.system()}, {model}, Python {platform.python_version()}"


def record(names: Iterable[str], seconds: float, folder: Path = FIGURES) -> None:
    """Record the code, the machine and the processor seconds of tables that were just measured."""
    entry = {"version": dc.__version__, "commit": read_commit(), "machine": read_machine(), "seconds": round(seconds)}
    write_records(read_records(folder) | dict.fromkeys(names, entry), folder / FILE)


def read_records(folder: Path = FIGURES, file: str = FILE) -> dict[str, dict[str, Any]]:
    """Return the records of the tables in a folder, by the names of the tables; empty without the file."""
    path = folder / file
    found: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


def write_records(records: dict[str, dict[str, Any]], path: Path) -> None:
    """Write records, one line for each table."""
    lines = [f"{json.dumps(name)}: {json.dumps(records[name])}" for name in sorted(records)]
    write_text(path, "{\n" + ",\n".join(lines) + "\n}\n")
