"""Captions of the figures: no legend lies on them."""

import importlib
from pathlib import Path

import pandas as pd
import pytest

import experiments
from experiments.harness import style

FOLDER = Path(experiments.__file__).parent
FIGURES = FOLDER.parent / "figures"
DRAWN = [path.parent.name for path in FOLDER.glob("*/plot.py") if (FIGURES / f"{path.parent.name}.csv").exists()]


@pytest.mark.parametrize("name", sorted(DRAWN))
def test_the_legend_of_a_figure_is_clear_of_its_caption(name, monkeypatch, tmp_path):
    def save(figure, stem):
        saved.append(stem)
        figure.canvas.draw()
        if figure.get_supxlabel():
            caption = figure._supxlabel.get_window_extent()
            assert not any(caption.overlaps(legend.get_window_extent()) for legend in figure.legends)
        style.plt.close(figure)

    saved = []
    monkeypatch.setattr(style, "save", save)
    draw = importlib.import_module(f"experiments.{name}.plot").draw
    draw(pd.read_csv(FIGURES / f"{name}.csv"), tmp_path / name)
    assert saved
