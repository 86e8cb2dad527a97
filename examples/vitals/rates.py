"""The heart rate of a waveform, as heartpy computes it."""

import math
import warnings
from collections.abc import Sequence


def heart_rate(samples: Sequence[int], rate: float) -> float | None:
    """The beats a minute; None where heartpy finds too few beats."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of pkg_resources, and of arithmetic on a waveform without beats
        import heartpy  # noqa: PLC0415  # it takes seconds
        import numpy as np  # noqa: PLC0415

        try:
            _, measures = heartpy.process(np.array(samples, dtype=float), rate)
        except heartpy.exceptions.BadSignalWarning:
            return None
    bpm = float(measures["bpm"])
    return round(bpm, 6) if math.isfinite(bpm) else None
