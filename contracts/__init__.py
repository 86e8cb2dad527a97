"""What all parts agree on. An application imports everything that it needs from here."""

from contracts.application import Application
from contracts.batch import Batch
from contracts.budget import Budget
from contracts.echo import Echo
from contracts.enrichment import Api, Enrichment, enrichment
from contracts.errors import Absent, DeclarationError, PermanentFailure, RetryableFailure, StateloopError
from contracts.event import Event
from contracts.named import Asked, Derived, NamedState
from contracts.near import Near
from contracts.policy import Breaker, Cache, Policy, Rate
from contracts.reducers import (
    Bitmap,
    Collect,
    Count,
    Distinct,
    DistinctApprox,
    Earliest,
    Enriched,
    Histogram,
    Latest,
    Max,
    Mean,
    Min,
    Quantiles,
    Recent,
    Sum,
    Variance,
)
from contracts.state import State
from contracts.topics import Topics

__all__ = [
    "Absent",
    "Api",
    "Application",
    "Asked",
    "Batch",
    "Bitmap",
    "Breaker",
    "Budget",
    "Cache",
    "Collect",
    "Count",
    "DeclarationError",
    "Derived",
    "Distinct",
    "DistinctApprox",
    "Earliest",
    "Echo",
    "Enriched",
    "Enrichment",
    "Event",
    "Histogram",
    "Latest",
    "Max",
    "Mean",
    "Min",
    "NamedState",
    "Near",
    "PermanentFailure",
    "Policy",
    "Quantiles",
    "Rate",
    "Recent",
    "RetryableFailure",
    "State",
    "StateloopError",
    "Sum",
    "Topics",
    "Variance",
    "enrichment",
]
