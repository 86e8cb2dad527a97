"""The catalogue of metrics: the names and meanings of the metrics of every part."""

from contracts.metrics import derive, job, query, sink, worker
from contracts.metrics.metric import Metric

CATALOGUE: tuple[Metric, ...] = worker.CATALOGUE + job.CATALOGUE + derive.CATALOGUE + sink.CATALOGUE + query.CATALOGUE

__all__ = ["CATALOGUE", "Metric", "derive", "job", "query", "sink", "worker"]
