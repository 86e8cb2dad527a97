"""The test kit of applications: the whole loop in memory, without broker or Spark, with fake APIs and a fake clock.

`stateloop.testing.reducers` is the test kit of reducers, which needs Spark and Hypothesis.
"""

from contracts.testing.clock import Clock
from contracts.testing.fake_api import FakeApi
from contracts.testing.loop import Loop

__all__ = ["Clock", "FakeApi", "Loop"]
