"""Where randomness comes from: a generator or a seed that is passed, never a global state."""

import numpy as np

from diffrac_cvx.errors import ParameterError


def as_generator(rng: np.random.Generator | int) -> np.random.Generator:
    """Return the generator itself, or a new one from a seed, a whole number >= 0."""
    if isinstance(rng, np.random.Generator):
        return rng
    if not isinstance(rng, (int, np.integer)) or isinstance(rng, bool) or rng < 0:
        raise ParameterError(f"rng = {rng!r} must be a numpy.random.Generator or a seed, a whole number >= 0")
    return np.random.default_rng(int(rng))
