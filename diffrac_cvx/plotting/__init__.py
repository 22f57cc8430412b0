"""Plots of results, directions, paths and phase maps, in the manner of scikit-learn's displays.

A display holds arrays; its class methods compute them, and ``plot`` draws them and returns the display, with ``ax_``,
``figure_`` and the artists.  Importing this needs no matplotlib, drawing does.  Nothing global is changed.
"""

from diffrac_cvx.plotting.bracket_and_spectrum import BracketDisplay, SpectrumDisplay
from diffrac_cvx.plotting.direction import DirectionDisplay
from diffrac_cvx.plotting.duality import DualityDisplay
from diffrac_cvx.plotting.path import PathDisplay
from diffrac_cvx.plotting.phase_map import PhaseMapDisplay
from diffrac_cvx.plotting.projection import ProjectionDisplay

__all__ = [
    "BracketDisplay",
    "DirectionDisplay",
    "DualityDisplay",
    "PathDisplay",
    "PhaseMapDisplay",
    "ProjectionDisplay",
    "SpectrumDisplay",
]
