"""The catalogue of metrics: the one place that names the figures of every part, and says what they mean."""

from contracts.metrics import derive, job, query, worker
from contracts.metrics.metric import Metric

CATALOGUE: tuple[Metric, ...] = worker.CATALOGUE + job.CATALOGUE + derive.CATALOGUE + query.CATALOGUE

__all__ = ["CATALOGUE", "Metric", "derive", "job", "query", "worker"]
