"""How often Python looks for garbage: for what holds itself in circles, and is not given back by itself."""

from __future__ import annotations

import gc

NEW_OBJECTS = 300_000
"""How many there must be more than at the last look. A thousand calls of aiohttp are a hundred thousand objects, and
with Python's own 700 it would look at them all the time: that took four tenths of the CPU."""
YOUNG_LOOKS, OLD_LOOKS = 50, 100
"""How many looks at what is new there are for each at what survived one, and of those for each at all."""


def seldom() -> None:
    """Look seldom from now on, and never at what there is already. The worker leaves no circles with responses."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS, YOUNG_LOOKS, OLD_LOOKS)
