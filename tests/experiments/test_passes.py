"""A sweep in passes: a table and a figure after each pass, which state the progress."""

from dataclasses import replace

import pandas as pd
import pytest
import toy

from experiments.harness.command import run
from experiments.harness.style import NOTE, noted
from experiments.phase_transition.cells import PASSES, cells_of, pass_of


@pytest.fixture
def drawn():
    """What was drawn: the note, the number of rows, the folder."""
    return []


@pytest.fixture
def experiment(drawn):
    """The toy experiment; each pass measures every second of the remaining cells."""

    def draw(table, stem):
        drawn.append((NOTE.get(), len(table), stem.parent.name))

    return replace(
        toy.EXPERIMENT, draw=draw, passes=lambda cell: 0 if cell["k"] % 4 == 0 else 1 if cell["k"] % 2 == 0 else 2
    )


def test_the_table_is_drawn_after_each_pass_and_the_last_is_the_whole(folder, here, experiment, drawn, capsys):
    assert run(experiment, None, []) == 0
    passes = [("pass 1 of 3: 6 of 24 cells", 6), ("pass 2 of 3: 12 of 24 cells", 12), ("", 24)]
    assert drawn == [(*each, "figures") for each in passes]
    assert sorted(map(int, (folder / "noted").read_text().split())) == list(range(24))
    assert "going on from there" not in capsys.readouterr().out
    by_passes = (folder / "figures/toy.csv").read_bytes().splitlines()
    run(toy.EXPERIMENT, None, ["--out", "at_once"])
    at_once = (folder / "at_once/toy.csv").read_bytes().splitlines()
    assert [line.rsplit(b",", 1)[0] for line in by_passes] == [
        line.rsplit(b",", 1)[0] for line in at_once
    ]  # no seconds


def test_a_complete_table_stays_while_passes_are_drawn_beside_it(folder, here, experiment, drawn):
    run(toy.EXPERIMENT, None, [])
    before = (folder / "figures/toy.csv").read_bytes()

    def stop(k, text):
        if k % 4:
            raise KeyboardInterrupt
        return toy.measure(k, text)

    run(replace(experiment, measure=stop), None, [])
    assert [place for *_, place in drawn] == ["partial"]
    assert (folder / "figures/toy.csv").read_bytes() == before
    assert len(pd.read_csv(folder / "build/partial/toy.csv")) == 6


def test_a_note_ends_with_its_block():
    with noted("half"):
        assert NOTE.get() == "half"
    assert not NOTE.get()


def test_the_first_figure_has_two_replications_of_every_cell_and_the_last_all():
    cells = pd.DataFrame(cells_of("full"))
    cells["pass"] = [pass_of(cell) for cell in cells.to_dict("records")]
    places = ["panel", "d", "n"]
    first = cells[cells["pass"] == 0].groupby(places).size()
    assert (first == PASSES[0]).all()
    assert len(first) == cells.groupby(places).ngroups
    assert cells["pass"].max() == len(PASSES)
