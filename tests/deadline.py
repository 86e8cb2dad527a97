"""The deadline of tests that wait for a condition."""

DEADLINE_S = 300
"""It ends a test that would never pass. A slow machine on which much else runs needs a fraction of it."""
