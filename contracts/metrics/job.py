"""The figures of the Spark job, known anew at the end of each batch."""

from functools import partial

from contracts.metrics.metric import Metric, listed

_counter = partial(Metric, "job", "counter")
_gauge = partial(Metric, "job", "gauge")

BATCHES = _counter("batches", "Batches committed.")

CATALOGUE = listed(dict(globals()))
