"""Code that measured a table: what counts as a change, and the report on the page."""

import json
from pathlib import Path

import pytest

from experiments.harness import provenance

ROOT = Path(__file__).parents[2]
SOURCES = {
    "diffrac_cvx": "if TYPE_CHECKING:\n    from diffrac_cvx.solvers import fit\n    from diffrac_cvx import words",
    "diffrac_cvx.solvers": "from diffrac_cvx.solvers.fast import fit\nfrom diffrac_cvx.solvers.slow import wait",
    "diffrac_cvx.solvers.fast": "def fit():\n    from diffrac_cvx.sums import add",
    "diffrac_cvx.solvers.slow": "",
    "diffrac_cvx.sums": "STEP = 1\ndef add(x: int) -> int:\n    return x + STEP",
    "diffrac_cvx.words": "",
    "diffrac_cvx.named": "",
    "diffrac_cvx.machine.processes": "import diffrac_cvx.words",
    "experiments.toy.cells": "import diffrac_cvx as dc\nfrom diffrac_cvx.machine.processes import run\ndc.fit()",
    "experiments.toy.other": "PLACE = 'diffrac_cvx.named:entry'",
}
TOY = "experiments.toy.cells"


def test_the_modules_of_a_table_are_those_its_numbers_depend_on():
    found = provenance.closure([TOY], SOURCES)
    assert list(found) == ["diffrac_cvx.solvers.fast", "diffrac_cvx.sums", TOY]
    assert "diffrac_cvx.named" in provenance.closure(["experiments.toy.other"], SOURCES)


@pytest.mark.parametrize(
    ("before", "after", "changes"),
    [
        ("STEP = 1", "STEP = 2", True),
        ("x + STEP", "x - STEP", True),
        ("STEP = 1", "STEP = 1  # of a unit", False),
        ("x: int", "x: float", False),
        ("    return", "    '''Return a sum.'''\n    return", False),
    ],
)
def test_what_the_code_does_counts_and_its_words_do_not(before, after, changes):
    text = SOURCES["diffrac_cvx.sums"].replace(before, after)
    now, then = (provenance.closure([TOY], SOURCES | extra) for extra in ({"diffrac_cvx.sums": text}, {}))
    assert text != SOURCES["diffrac_cvx.sums"]
    assert [name for name in now if now[name] != then[name]] == (["diffrac_cvx.sums"] if changes else [])


def test_a_table_measured_by_other_code_is_named_with_what_has_changed(tmp_path):
    sources = provenance.read_sources()
    provenance.record(["noise", "unbalanced"], sources, tmp_path)
    assert provenance.find_stale(tmp_path) == {}
    assert provenance.describe_stale(tmp_path) == "All 2 tables were measured by the current code."
    other = sources | {"diffrac_cvx.metrics": sources["diffrac_cvx.metrics"] + "\nMORE = 1\n"}
    provenance.record(["noise"], other, tmp_path)
    assert provenance.find_stale(tmp_path) == {"noise": ["diffrac_cvx.metrics"]}
    assert "1 of 2 tables" in provenance.describe_stale(tmp_path)
    assert provenance.describe_stale(tmp_path).endswith("- `noise.csv`: `diffrac_cvx.metrics`")


def test_solvers_and_certificates_are_among_the_modules_of_what_they_solve():
    found = provenance.modules_of("phase_transition", provenance.read_sources())
    assert {"diffrac_cvx.solvers.factored.solver", "experiments.phase_transition.cells"} <= set(found)
    assert {"diffrac_cvx.solvers.reference", "diffrac_cvx.certificates.direction_bounds"} <= set(found)
    assert not any(name.startswith("experiments.harness") for name in found)


def test_every_table_is_recorded():
    recorded = json.loads((ROOT / "figures" / provenance.FILE).read_text())
    assert set(recorded) == {path.stem for path in (ROOT / "figures").glob("*.csv")}
    assert all(recorded.values())
