"""The applications of `examples.departures` as a suite, with topics that no other test has."""

import os

from contracts import Suite
from examples.departures.application import counts
from examples.departures.state import CarrierDay, Departures

PREFIX = os.environ.get("WINDOWS_PREFIX", "")
suite = Suite(counts("departures", Departures, PREFIX), counts("carriers", CarrierDay, PREFIX))
