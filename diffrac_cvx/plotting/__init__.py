"""Plots of results, directions and paths, similar to the displays of scikit-learn.

A display stores arrays: its class methods compute them, and ``plot`` draws them and returns the display, with ``axes_``
(one for each panel), ``ax_`` (the first of them), its ``figure_`` and the artists.  ``ax`` may also be an empty figure,
which gets the axes and the size of a new one.  matplotlib is imported only when something is drawn, and no global
settings are changed.
"""

from diffrac_cvx.plotting.direction import DirectionDisplay, ProjectionDisplay
from diffrac_cvx.plotting.path import PathDisplay
from diffrac_cvx.plotting.solution import BracketDisplay, SpectrumDisplay, StructureDisplay

__all__ = [
    "BracketDisplay", "DirectionDisplay", "PathDisplay", "ProjectionDisplay", "SpectrumDisplay", "StructureDisplay",
]  # fmt: skip
