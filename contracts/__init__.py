"""The contracts between all parts. An application imports what it declares from `stateloop`, which exports it."""

from contracts.errors import AbsentError, DeclarationError, PermanentCallError, RetryableCallError, StateloopError
from contracts.model.alerts import AlertRule, Alerts
from contracts.model.application import Application
from contracts.model.batch import Batch
from contracts.model.budget import Budget
from contracts.model.emit import Emit
from contracts.model.enrichment import Api, Enrichment, enrichment
from contracts.model.event import BaseEvent, Event
from contracts.model.named_state import Derived, NamedState, QueryOptions
from contracts.model.policy import Breaker, Cache, Policy, RateLimit
from contracts.model.processor import Processor
from contracts.model.raw import Raw
from contracts.model.state import State
from contracts.model.suite import Suite
from contracts.model.table import Table
from contracts.model.topics import Topics
from contracts.model.webhook import Webhook
from contracts.reducers import (
    Bitmap,
    Collect,
    Count,
    Coverage,
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
    Rate,
    Recent,
    Reducer,
    Series,
    Sum,
    TopK,
    ValueCount,
    Variance,
)
from contracts.types.echo import Echo
from contracts.types.filters import Filter, field
from contracts.types.key import composite_key
from contracts.types.packed import PackedIntegers
from contracts.types.quantize import Quantize
from contracts.types.raw_record import FieldSource, FromHeader, FromKey, FromOrigin, FromTimestamp, FromValue, RawRecord

__all__ = [
    "AbsentError",
    "AlertRule",
    "Alerts",
    "Api",
    "Application",
    "BaseEvent",
    "Batch",
    "Bitmap",
    "Breaker",
    "Budget",
    "Cache",
    "Collect",
    "Count",
    "Coverage",
    "DeclarationError",
    "Derived",
    "Distinct",
    "DistinctApprox",
    "Earliest",
    "Echo",
    "Emit",
    "Enriched",
    "Enrichment",
    "Event",
    "FieldSource",
    "Filter",
    "FromHeader",
    "FromKey",
    "FromOrigin",
    "FromTimestamp",
    "FromValue",
    "Histogram",
    "Latest",
    "Max",
    "Mean",
    "Min",
    "NamedState",
    "PackedIntegers",
    "PermanentCallError",
    "Policy",
    "Processor",
    "Quantiles",
    "Quantize",
    "QueryOptions",
    "Rate",
    "RateLimit",
    "Raw",
    "RawRecord",
    "Recent",
    "Reducer",
    "RetryableCallError",
    "Series",
    "State",
    "StateloopError",
    "Suite",
    "Sum",
    "Table",
    "TopK",
    "Topics",
    "ValueCount",
    "Variance",
    "Webhook",
    "composite_key",
    "enrichment",
    "field",
]
