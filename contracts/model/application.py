"""An application: the declaration of an event model, a state model and enrichments, checked when it is created."""

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Annotated, Any, get_args

from pydantic import create_model

from contracts.errors import DeclarationError
from contracts.model.alerts import Alerts, webhook_apis
from contracts.model.budget import Budget
from contracts.model.emit import EMIT_INTERVAL, Emit
from contracts.model.enrichment import Enrichment
from contracts.model.event import BaseEvent
from contracts.model.graph import ordered
from contracts.model.named_state import Derived, NamedState, QueryOptions, check_names
from contracts.model.policy import Policy
from contracts.model.processor import Processor, check_processor
from contracts.model.raw import Raw, check_raw
from contracts.model.reference import named_object
from contracts.model.state import State, annotations, field_aliases, reducers, slots
from contracts.model.table import Table
from contracts.model.topics import Topic, Topics, check_topic, check_topics
from contracts.model.tracing import check_event
from contracts.reducers import Enriched, Reducer
from contracts.types.columns import without_none
from contracts.types.declaration import Declaration, spelled
from contracts.types.filters import Filter
from contracts.types.key import SEPARATOR, Key, MaxBytes

MODULES = re.compile(r"\b(?:typing|datetime|contracts(?:\.[a-z_]+)*)\.(?=[A-Za-z])")
SMALLEST_RECORD = 4 * 1024
"""In bytes: the feedback of a failure must fit."""
LARGEST_RECORD = 960 * 1024
"""In bytes: librdkafka sends 1,000,000 with key and headers by default, and brokers take little more."""


class Application(Declaration):
    """An event model, a state model and enrichments. Raises DeclarationError, with what to write instead.

    `apis` has a policy for each API that needs another than `Policy()`. `budget` limits the requests of each device.
    `skew` is the maximum lead of a device's clock over the record's timestamp. With `deduplicate`, events with the
    same `event_id` count once. `largest_record` bounds, in bytes, the records that the job reads, results, derived
    values, and the states of a processor; a snapshot of any state has 1,000,000 at most. `traced` carries the trace
    context of events and feedback through the state. `emit` chooses when the job writes a snapshot, and
    `emit_interval` is the interval of `Emit.BATCH` and `Emit.CLOSE`. `processor` computes the state, whose fields then
    have no reducers. `query` has the options of queries of the state, under the application's name; `derived` and
    `states` are further states that can be queried. `tables` are reference tables, and `alerts` are conditions by the
    rules of a table. `raw` are topics of records that the job decodes to events.
    """

    written_as = "the applications one by one, as in Suite(fleet, trips)"

    def __init__(  # noqa: PLR0913  # one argument for each declaration
        self,
        *,
        name: str,
        event: type[BaseEvent],
        state: type[State],
        enrichments: tuple[Enrichment, ...] = (),
        apis: Mapping[str, Policy] | None = None,
        budget: Budget | None = None,
        topics: Topics | None = None,
        skew: timedelta = timedelta(minutes=1),
        deduplicate: bool = True,
        largest_record: int = 256 * 1024,
        traced: bool = False,
        emit: Emit = Emit.EVENT,
        emit_interval: timedelta = EMIT_INTERVAL,
        processor: Processor | None = None,
        query: QueryOptions | None = None,
        derived: tuple[Derived, ...] = (),
        tables: tuple[Table, ...] = (),
        alerts: tuple[Alerts, ...] = (),
        states: tuple[NamedState, ...] = (),
        raw: tuple[Raw, ...] = (),
    ) -> None:
        self.name = name
        self.event = event
        self.state = state
        self.budget = budget
        self.topics = topics or Topics()
        self.skew = _checked_skew(name, skew)
        self.deduplicate = deduplicate
        self.largest_record = _checked_size(name, largest_record)
        _check_event(event, state, deduplicate=deduplicate)
        self.processor = processor
        if processor is not None:
            check_processor(processor, event, state, emit)
        self.sources = _sources(event, state) if processor is None else {}
        _check_largest(state, largest_record)
        _check_filter(f"{state.__name__}(where=…)", state.where, event)
        self.traced = traced
        if traced:
            check_event(event)
        aliases = field_aliases(state)
        self.enrichments = tuple(_renamed(enrichment, aliases) for enrichment in ordered(state, enrichments))
        self.emit, self.emit_interval = emit, emit_interval
        _check_emit(name, emit, emit_interval, enrichments)
        self.apis = _policies(name, enrichments, alerts, apis or {})
        self.query = query or QueryOptions()
        self.derived = derived
        self.tables = tables
        self.alerts = alerts
        _check_tables(name, alerts, derived, tables)
        self.states = states
        check_names(self.state_names)
        self.raw = raw
        check_topics(self.topics, (*derived, *alerts), tables)
        _check_raw(event, raw, {self.topics.events, *self.outputs})

    @cached_property
    def event_shape(self) -> type[BaseEvent]:
        """The event as its records are read: the fields of the key are bounded as keys are."""
        keys = {name: self.event.model_fields[name] for name in self.state.keys}
        fields: dict[str, Any] = {
            name: (Annotated[key.annotation, *key.metadata, *get_args(Key)[1:]], ...)
            for name, key in keys.items()
            if not any(isinstance(part, MaxBytes) for part in key.metadata)
        }
        if not fields:
            return self.event
        return create_model(self.event.__name__, __base__=self.event, __doc__=self.event.__doc__, **fields)

    @property
    def state_names(self) -> tuple[str, ...]:
        """The names of its states: its own, those derived from it, its alerts and tables, and other topics."""
        tables, states = (table.name for table in self.tables), (state.name for state in self.states)
        return (self.name, *self.derived_names, *tables, *states)

    @property
    def derived_names(self) -> tuple[str, ...]:
        """The names of the derived states and the alerts, which a derive worker writes."""
        return (*(derived.name for derived in self.derived), *(alerts.name for alerts in self.alerts))

    @property
    def layout_topic(self) -> str:
        """The topic whose number of partitions decides the partition of a key. Partitions are added to it last.

        No other application has it, also without enrichments: several may share the topic of events.
        """
        return self.topics.feedback

    @property
    def outputs(self) -> tuple[str, ...]:
        """The topics that it writes, and no other application. Other applications may read its events."""
        topics = self.topics
        derived = (topics.derived(name) for name in self.derived_names)
        tables = (topics.table(table) for table in self.tables)
        return (*topics.written, *derived, *tables)

    def catalogue(self) -> tuple[Topic, ...]:
        """Return all its topics with their settings."""
        return (
            *self.topics.catalogue(self.state, self.query, tuple(raw.topic for raw in self.raw)),
            *self.topics.table_topics(self.tables),
            *self.topics.alert_topics(self.state, self.alerts, self.query),
            *self.topics.query_topics(self.state, self.derived),
        )

    @property
    def reads_tables(self) -> bool:
        """Whether a derive worker reads reference tables and stores the present states."""
        return bool(self.alerts) or any(derived.tables for derived in self.derived)

    @property
    def key_name(self) -> str:
        """The fields of the key, for messages."""
        return SEPARATOR.join(self.state.keys)

    @property
    def enrichment_group(self) -> str:
        """The consumer group of the enrichment workers, unless STATELOOP_GROUP names another."""
        return f"{self.name}-enrichment"

    @property
    def derive_group(self) -> str:
        """The consumer group of the derive workers, unless STATELOOP_GROUP names another."""
        return f"{self.name}-derive"

    def webhook_group(self, alerts: Alerts) -> str:
        """The consumer group of the workers that deliver these alerts, unless STATELOOP_GROUP names another."""
        return f"{self.name}-{alerts.name}-webhook"

    @property
    def called_apis(self) -> tuple[str, ...]:
        """The APIs that enrichment workers call: for enrichments, and as webhooks."""
        return (*(enrichment.api for enrichment in self.enrichments), *sorted(webhook_apis(self.alerts)))

    @cached_property
    def kept_for(self) -> timedelta:
        """The time after a window's start in which the job accepts records of it."""
        return self.state.lifetime + self.state.grace

    @cached_property
    def limited(self) -> bool:
        """Whether a budget or an interval limits a device's requests."""
        return self.budget is not None or any(enrichment.at_most_every for enrichment in self.enrichments)

    @cached_property
    def by_name(self) -> dict[str, Enrichment]:
        """The enrichments by name, each after its dependencies."""
        return {enrichment.name: enrichment for enrichment in self.enrichments}

    @cached_property
    def by_recorded_name(self) -> dict[str, Enrichment]:
        """The enrichments by their names in feedback and dead letters."""
        return {enrichment.recorded_as: enrichment for enrichment in self.enrichments}

    @cached_property
    def reducers(self) -> dict[str, Reducer]:
        """The reducer of each field of the state that has one, slots included."""
        return {name: reducer for name, (reducer, _) in annotations(self.state).items() if reducer is not None}

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The fields of the state in its snapshots: all but the slots."""
        return tuple(name for name in annotations(self.state) if name not in self.slots)

    @cached_property
    def slots(self) -> dict[str, Any]:
        """The annotations of the fields that enrichments write."""
        return slots(self.state)


def _renamed(enrichment: Enrichment, aliases: Mapping[str, str]) -> Enrichment:
    """Return the enrichment with the first names of its slot and its inputs."""
    names = (enrichment.name, *(need.name for need in enrichment.needs))
    own = {name: aliases[name] for name in names if name in aliases}
    return replace(enrichment, aliases=own) if own else enrichment


def _checked_size(name: str, largest_record: int) -> int:
    if SMALLEST_RECORD <= largest_record <= LARGEST_RECORD:
        return largest_record
    problem = "cannot hold a failure's feedback" if largest_record < SMALLEST_RECORD else "is more than Kafka takes"
    write = f"Write a number of bytes from {SMALLEST_RECORD} to {LARGEST_RECORD}"
    raise DeclarationError(f"{name}(largest_record={largest_record})", problem, write)


def _checked_skew(name: str, skew: timedelta) -> timedelta:
    if skew < timedelta(0):
        raise DeclarationError(f"{name}(skew={spelled(skew)})", "is negative", "Write timedelta(seconds=60)")
    return skew


def _check_tables(
    name: str, alerts: tuple[Alerts, ...], derived: tuple[Derived, ...], tables: tuple[Table, ...]
) -> None:
    """Refuse alerts and derived states that use a table which is not declared."""
    used = [(f"Alerts({declared.name!r})", declared.rules) for declared in alerts]
    used += [(f"Derived({declared.name!r})", table) for declared in derived for table in declared.tables]
    for where, table in used:
        if table not in tables:
            raise DeclarationError(where, f"the table {table.name!r} is not declared", f"Write tables=(…,) in {name}")


def _policies(
    name: str, enrichments: tuple[Enrichment, ...], alerts: tuple[Alerts, ...], declared: Mapping[str, Policy]
) -> dict[str, Policy]:
    """The policy of each API that an enrichment calls."""
    hooks = webhook_apis(alerts)
    called = sorted({enrichment.api for enrichment in enrichments})
    for api in declared:
        if api not in called:
            problem = "only a webhook calls this API" if api in hooks else "no enrichment calls this API"
            known = f"Name one of these: {', '.join(called) or 'none is called'}"
            write = f"Write Webhook({api!r}, policy=Policy(…))" if api in hooks else known
            raise DeclarationError(f"{name}(apis={api!r})", problem, write)
    return {api: declared.get(api, Policy()) for api in called}


def _check_event(event: type[BaseEvent], state: type[State], *, deduplicate: bool) -> None:
    """Refuse an event without the fields that its state needs."""
    for name in state.keys:
        if not _is_required(event, name, str):
            possible = [field for field in event.model_fields if _is_required(event, field, str)]
            write = f"Write class {state.__name__}(State, key={(possible or ['device_id'])[0]!r}, …)"
            texts = f"; the required texts of {event.__name__} are {', '.join(possible)}"
            write += texts if possible else f", and device_id: str in {event.__name__}"
            problem = f"is not a required str of {event.__name__}"
            raise DeclarationError(f"{state.__name__}(key={name!r})", problem, write)
    if not state.is_windowed and not _is_required(event, "first_seen", datetime):
        problem = f"has no required first_seen, with which the window of {state.__name__} starts"
        write = "Write `first_seen: AwareDatetime`, or declare the state with window=timedelta(hours=1)"
        raise DeclarationError(event.__name__, problem, write)
    if deduplicate and not _is_required(event, "event_id", str):
        problem = "has no required event_id, by which copies of an event are known"
        raise DeclarationError(event.__name__, problem, "Write `event_id: str`, or Application(deduplicate=False)")


def _check_raw(event: type[BaseEvent], raw: tuple[Raw, ...], used: set[str]) -> None:
    """Refuse a raw source whose topic has another use, or whose fields do not fit the event."""
    for source in raw:
        where = f"Raw({source.topic!r})"
        check_topic(where, source.topic)
        if source.topic in used:
            raise DeclarationError(where, "is a topic of another use", "Name the topic of raw records")
        used = used | {source.topic}
        check_raw(source, event)


def _is_required(event: type[BaseEvent], name: str, kind: type) -> bool:
    field = event.model_fields.get(name)
    return field is not None and field.is_required() and without_none(field.annotation) == (kind, False)


def _sources(event: type[BaseEvent], state: type[State]) -> dict[str, str]:
    """Return the event's field by the reduced field of the state that it feeds."""
    sources = {}
    for name, (reducer, annotation) in reducers(state).items():
        where = f"{state.__name__}.{name}"
        source = reducer.of or name
        if isinstance(reducer, Enriched):
            _check_fit(where, reducer, annotation, annotation)
            continue
        if source not in event.model_fields:
            fields = ", ".join(event.model_fields)
            write = f"Write {type(reducer).__name__}(of=…) with one of these: {fields}"
            raise DeclarationError(where, f"{event.__name__} has no field {source!r}", write)
        _check_fit(where, reducer, annotation, event.model_fields[source].annotation)
        _check_filter(where, reducer.where, event)
        sources[name] = source
    return sources


def _check_largest(state: type[State], largest_record: int) -> None:
    """Refuse reducers whose values would be larger together than a record may be."""
    sizes = {name: reducer.largest or 0 for name, (reducer, _) in annotations(state).items() if reducer is not None}
    if sum(sizes.values()) > largest_record:
        largest = max(sizes, key=lambda name: sizes[name])
        problem = f"may have {sizes[largest]} bytes, and a snapshot has {largest_record} at most"
        write = "Write a shorter window, or a larger Application(largest_record=…)"
        raise DeclarationError(f"{state.__name__}.{largest}", problem, write)


def _check_filter(where: str, declared: Filter | None, event: type[BaseEvent]) -> None:
    """Refuse a filter that does not fit the event."""
    if declared is not None:
        declared.check(event, where)


def _check_fit(where: str, reducer: Reducer, annotation: Any, source: Any) -> None:
    kind = type(reducer).__name__
    try:
        expected = reducer.gives(source)
    except TypeError as error:
        raise DeclarationError(where, f"{kind} {error}", "Choose another reducer, or another field") from error
    if without_none(annotation) != without_none(expected):
        spelled, declared = _spelled(expected), _spelled(annotation)
        problem = f"{kind} gives {spelled}, and the field is declared as {declared}"
        raise DeclarationError(where, problem, f"Write Annotated[{spelled}, {kind}(…)]")


def _spelled(annotation: Any) -> str:
    """Return an annotation as an application writes it, without the modules of Python's types and Stateloop's."""
    return MODULES.sub("", repr(annotation).replace("<class '", "").replace("'>", ""))


def _check_emit(name: str, emit: Emit, interval: timedelta, enrichments: tuple[Enrichment, ...]) -> None:
    if interval <= timedelta(0):
        raise DeclarationError(f"{name}(emit_interval=…)", "must be positive", "Write timedelta(seconds=1)")
    if emit is Emit.CLOSE and enrichments:
        problem = "enrichments need the snapshots of a window while it is open"
        raise DeclarationError(f"{name}(emit=Emit.CLOSE)", problem, "Write Emit.EVENT or Emit.BATCH, or no enrichments")


def load(reference: str) -> Application:
    """The application that `package.module:name` names.

    Raises DeclarationError when there is none; an error in the application's own code is its own.
    """
    application = named_object(reference)
    if not isinstance(application, Application):
        raise DeclarationError(repr(reference), "is not an Application", "Write package.module:name")
    return application
