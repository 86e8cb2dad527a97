"""The deadline of tests that wait for a condition."""

import os

VARIABLE = "TEST_DEADLINE_S"
DEADLINE_S = int(os.environ.get(VARIABLE, "300"))
"""It ends a test that would never pass. A slow machine on which much else runs needs a fraction of it.

`make guards` shortens it, since without a guard a test may wait for what never happens.
"""
