"""The applications of `examples.vitals`, with topics that no other test has."""

import os

from examples.vitals.application import vitals

suite = vitals(os.environ.get("WINDOWS_PREFIX", ""))
