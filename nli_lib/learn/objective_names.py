"""Names of what generators learn, as `RunSpec.objective` has them; a run can be looked up by them without torch."""

import hashlib

import numpy as np
from numpy.typing import ArrayLike


def generate_name(unlikelihood: float = 0.5, wrong: str = "one") -> str:
    """Of `learn.generator.Generate` with these settings."""
    return f"generate, unlikelihood {unlikelihood:g} of {wrong}" if unlikelihood else "generate"


def debias_name(*masks: ArrayLike, alpha: float = 1.0) -> str:
    """Of `learn.generator.Debias` with these settings; masks: rejected, premise, hypothesis, whole."""
    packed = b"".join(np.packbits(np.asarray(each, bool)).tobytes() for each in masks)
    return f"debias, alpha {alpha:g}, mask {hashlib.sha256(packed).hexdigest()[:8]}"
