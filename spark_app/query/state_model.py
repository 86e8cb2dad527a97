"""The state model of a checkpoint: all that the layout and the meaning of the stored state depend on.

Spark finds the buffers of aggregates by their position, so the aggregates are in the order of their names: the order in
which the application declares its fields has no effect. Rules that only accept or refuse records (bounds, `skew`,
`lifetime`, `grace`) are not part of the model: a change of them applies to later records and leaves the state valid.
Reducers of positions in the window (`Coverage`, `Series`) have the size of the windows in their SQL: with one of them,
another `lifetime` is another model.
"""

import hashlib
from dataclasses import fields

from pydantic import BaseModel, ConfigDict

from contracts.model.application import Application
from contracts.model.tracing import FIELD
from contracts.reducers import Enriched, Reducer
from contracts.types.columns import sql_type
from spark_app.query.columns import (
    DEDUPLICATION,
    DEVICE_PARTITION,
    EVENT_OFFSET,
    RECORD_PARTITION,
    RECORD_TIME,
    answer_column,
    delta_types,
    event_column,
    lifted_column,
    state_column,
    state_key,
)
from spark_app.query.lift import DELTA_IDS
from spark_app.query.processor.stored import StoredWindow

COMPARED = ("key", "filter", "window", "every", "offset", "grouping", "deduplication", "tracing", "processor")
"""The parts of the state model, other than fields and aggregates, whose differences have a sentence each."""


class StateField(BaseModel):
    """One field of the state: the SQL type of its values, and how the job reduces them."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    type: str
    reducer: str
    """The reducer as the application declares it, for messages, with the size of the windows if its SQL has that. The
    comparison uses `sql`."""
    sql: str
    """The aggregate, and the SQL of its input if that is no field of the event."""


class StateModel(BaseModel):
    """The model of the state in stateloop.json."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    fields: dict[str, StateField]
    key: str
    """The event's fields that identify the key."""
    filter: str | None = None
    """The SQL of the state's filter, over the names of the event's fields."""
    window: str | None = None
    """The size, the interval and the offset of the windows of a windowed state: a checkpoint of another alignment has
    the sums of other spans."""
    every: str | None = None
    offset: str | None = None
    grouping: list[str]
    """The columns of the state's key."""
    deduplication: dict[str, str] | None
    """The columns in which copies of a delta are equal, and the expressions of a delta's id."""
    tracing: bool
    aggregates: list[str]
    """The expressions of the aggregates, in the order of their buffers; what is stored with a processor's windows."""
    processor: str | None = None
    """The class of the processor, and its version."""

    def differences(self, stored: "StateModel") -> list[str]:
        """Return the differences of this model from the one of a checkpoint, a sentence for each field."""
        named = [
            text
            for name in sorted(self.fields.keys() | stored.fields.keys())
            for text in _field_differences(name, stored.fields.get(name), self.fields.get(name))
        ]
        others = [
            f"the {name} of its state is {then}, the application's is {now}"
            for name in COMPARED
            if (then := getattr(stored, name)) != (now := getattr(self, name))
        ]
        if named or others or self.aggregates == stored.aggregates:
            return named + others
        return [f"this release merges its state by {self.aggregates}, and it was merged by {stored.aggregates}"]

    def digest(self) -> str:
        """Return the digest of the model."""
        meaning = self.model_dump_json(exclude={"fields": {"__all__": {"reducer"}}})
        return hashlib.blake2b(meaning.encode(), digest_size=6).hexdigest()


def state_model(application: Application) -> StateModel:
    """Return the state model of an application."""
    processor = application.processor
    return StateModel(
        fields={name: _field(application, name) for name in sorted(application.state.model_fields)},
        key=application.key_name,
        filter=None if application.state.where is None else application.state.where.sql(str),
        **_windows(application),
        grouping=state_key(application),
        deduplication={"columns": ", ".join(DEDUPLICATION), **DELTA_IDS} if application.deduplicate else None,
        tracing=application.traced,
        aggregates=_stored(application),
        processor=f"{processor.name}, version {processor.version}" if processor else None,
    )


def _stored(application: Application) -> list[str]:
    if application.processor is not None:
        return [f"{field.name}: {field.type}" for field in fields(StoredWindow)]
    return [f"{column}: {sql}" for column, sql in aggregates(application).items()]


def state_name(application: Application) -> str:
    """Return the digest of the application's state model."""
    return f"{application.state.__name__}-{state_model(application).digest()}"


def aggregates(application: Application) -> dict[str, str]:
    """Return the SQL of each column of the merged state, in the order of Spark's buffers."""
    state = {state_column(name): _aggregate(application, name) for name in sorted(application.sources)}
    answers = {answer_column(name): _aggregate(application, name) for name in sorted(application.slots)}
    # Nulls are the least: an untraced record that came last is no part of the trace of those before it.
    context = {FIELD: f"max(struct({RECORD_TIME}, {FIELD})).{FIELD}"} if application.traced else {}
    merged = {"version": "count(1)", "as_of": f"max({RECORD_TIME})"}
    return merged | _origin(application) | state | answers | context


def _origin(application: Application) -> dict[str, str]:
    """The SQL of where the events come from. Those of one key of a windowed state are in any partition."""
    if application.state.is_windowed:
        return {}
    # Events are where their producer put the device, and all that the job writes of the device follows them there.
    partition = f"coalesce(max({DEVICE_PARTITION}), max({RECORD_PARTITION}))"
    return {"partition": partition, "event_offset": f"max({EVENT_OFFSET})"}


def _windows(application: Application) -> dict[str, str]:
    state = application.state
    return {name: str(getattr(state, name)) for name in ("window", "every", "offset")} if state.is_windowed else {}


def lifted(application: Application) -> dict[str, str]:
    """Return the SQL of the columns that reducers compute of each event, before they aggregate."""
    return {
        lifted_column(name): sql
        for name in sorted(application.sources)
        if (sql := application.reducers[name].lift_sql(_values(application, name))) != _values(application, name)
    }


def _aggregate(application: Application, name: str) -> str:
    """Return the SQL of a field's reducer, over its lifted values."""
    is_lifted = lifted_column(name) in lifted(application)
    return application.reducers[name].sql(lifted_column(name) if is_lifted else _values(application, name))


def _values(application: Application, name: str) -> str:
    """Return the SQL of the values that a field is reduced from: the values of events that pass its filter."""
    where, column = application.reducers[name].where, _source(application, name)
    return column if where is None else f"CASE WHEN {where.sql(event_column)} THEN {column} END"


def _source(application: Application, name: str) -> str:
    """Return the column of a delta that a field is reduced from."""
    is_slot = isinstance(application.reducers[name], Enriched)
    return answer_column(name) if is_slot else event_column(application.sources[name])


def _field(application: Application, name: str) -> StateField:
    if name not in application.reducers:
        return StateField(type=sql_type(application.state.model_fields[name].annotation, name), reducer="", sql="")
    kind, sql = delta_types(application)[_source(application, name)], _aggregate(application, name)
    own = lifted(application).get(lifted_column(name))
    meaning = sql if own is None else f"{sql}, {lifted_column(name)}: {own}"
    return StateField(type=kind, reducer=_declared(application, name), sql=meaning)


def _declared(application: Application, name: str) -> str:
    reducer = application.reducers[name]
    has_window = type(reducer).within is not Reducer.within
    return f"{reducer} in windows of {application.state.lifetime}" if has_window else str(reducer)


def _field_differences(name: str, then: StateField | None, now: StateField | None) -> list[str]:
    if then is None or now is None:
        return [f"the application {'adds' if then is None else 'removes'} the field {name}"]
    differences = []
    if then.type != now.type:
        differences.append(f"the type of the field {name} changes from {then.type} to {now.type}")
    if then.sql != now.sql:
        same = then.reducer == now.reducer
        change = (then.sql, now.sql) if same else (then.reducer, now.reducer)
        part = "SQL" if same else "reducer"
        differences.append(f"the {part} of the field {name} changes from {change[0]} to {change[1]}")
    return differences
