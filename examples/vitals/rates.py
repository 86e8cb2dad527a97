"""The heart rate of a waveform, as heartpy computes it."""

import math
import warnings
from collections.abc import Sequence

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it imports pkg_resources
    import heartpy


def heart_rate(samples: Sequence[int], rate: float) -> float | None:
    """The beats a minute; None where heartpy finds too few beats."""
    import numpy as np  # noqa: PLC0415

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of arithmetic on a waveform without beats
        try:
            _, measures = heartpy.process(np.array(samples, dtype=float), rate)
        except heartpy.exceptions.BadSignalWarning:
            return None
    bpm = float(measures["bpm"])
    return round(bpm, 6) if math.isfinite(bpm) else None
