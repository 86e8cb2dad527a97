"""The test kit of applications: the whole loop in memory, without broker or Spark, with fake APIs and a fake clock.

`stateloop.testing.reducers` is the test kit of reducers, which needs Spark and Hypothesis, and
`stateloop.testing.stores` the test kit of a sink's stores.
"""

from contracts.testing import Clock, FakeApi, Loop

__all__ = ["Clock", "FakeApi", "Loop"]
