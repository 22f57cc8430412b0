"""Plots of results, directions, paths and phase maps, in the manner of scikit-learn's displays.

A display holds arrays; its class methods compute them, and ``plot`` draws them and returns the display, with ``ax_``,
``figure_`` and the artists.  Importing this does not import matplotlib, drawing does.  Nothing global is changed.
"""

from diffrac_cvx.plotting.bracket import BracketDisplay
from diffrac_cvx.plotting.choice import ChoiceDisplay
from diffrac_cvx.plotting.direction import DirectionDisplay
from diffrac_cvx.plotting.duality import DualityDisplay
from diffrac_cvx.plotting.path import PathDisplay
from diffrac_cvx.plotting.phase_map import PhaseMapDisplay
from diffrac_cvx.plotting.projection import ProjectionDisplay
from diffrac_cvx.plotting.spectrum import SpectrumDisplay

__all__ = [
    "BracketDisplay",
    "ChoiceDisplay",
    "DirectionDisplay",
    "DualityDisplay",
    "PathDisplay",
    "PhaseMapDisplay",
    "ProjectionDisplay",
    "SpectrumDisplay",
]
