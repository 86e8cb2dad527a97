"""The test kit of reducers: checks on random values that a reducer's SQL and its fold agree, and the laws of `merge`.

It needs Hypothesis and a Spark session.
"""

from contracts.testing.reducers import check_reducer

__all__ = ["check_reducer"]
