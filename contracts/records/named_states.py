"""The named states of an application: its own, those derived from it, its alerts and tables, and other topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import create_model

from contracts.model.emit import Emit
from contracts.model.named_state import CoverageField, NamedState
from contracts.records.indexes import check_indexes
from contracts.records.schema import schemas
from contracts.records.tables import table_shape
from contracts.reducers import Coverage
from contracts.wire import DerivedRecord
from contracts.wire.alert_record import AlertRecord

if TYPE_CHECKING:
    from contracts.model.alerts import Alerts
    from contracts.model.application import Application
    from contracts.model.named_state import Derived
    from contracts.model.suite import Suite
    from contracts.model.table import Table


def named(application: Application) -> dict[str, NamedState]:
    """Return all states that can be queried, by name. Raises DeclarationError for an index of an unknown field."""
    own = NamedState(
        name=application.name,
        topic=application.topics.snapshots,
        schema=schemas(application)["snapshot"],
        partitions=application.topics.partitions,
        key="device_id",
        windowed=True,
        event_offset=None if application.state.is_windowed else "event_offset",
        layout_topic=application.layout_topic,
        lifetime=application.state.lifetime,
        grace=application.state.grace + application.skew,
        expires_by_clock=not application.topics.replay,
        emits_closed=application.emit is Emit.CLOSE,
        query=application.query,
        window=application.state.window,
        every=application.state.every,
        coverage=_coverage(application),
    )
    derived = (_derived(application, declared) for declared in application.derived)
    alerts = (_alerts(application, declared) for declared in application.alerts)
    tables = (_table(application, table) for table in application.tables)
    states = {state.name: state for state in (own, *derived, *alerts, *tables, *application.states)}
    for state in states.values():
        check_indexes(state)
    return states


def named_in(suite: Suite) -> dict[str, NamedState]:
    """Return all states of a suite that can be queried, by name."""
    return {name: state for application in suite.applications for name, state in named(application).items()}


def derived_shape(derived: Derived) -> type[DerivedRecord]:
    """The model of a derived state's records."""
    value: dict[str, Any] = {"value": (derived.model, ...)}
    return create_model(f"Derived{derived.model.__name__}", __base__=DerivedRecord, **value)


def _coverage(application: Application) -> tuple[CoverageField, ...]:
    """The Coverage fields of a windowed state."""
    if not application.state.is_windowed:
        return ()
    return tuple(
        CoverageField(f"state.{name}", reducer.step)
        for name, reducer in application.reducers.items()
        if isinstance(reducer, Coverage)
    )


def _derived(application: Application, derived: Derived) -> NamedState:
    return NamedState(
        name=derived.name,
        topic=application.topics.derived(derived.name),
        schema=derived_shape(derived).model_json_schema(mode="serialization"),
        partitions=application.topics.partitions,
        key="key",
        epoch="layout" if derived.tables else "epoch",
        version=None if derived.tables else "version",
        source="device_id",
        copied_from="copied_from" if derived.tables else None,
        layout_topic=application.layout_topic,
        lifetime=derived.lifetime or application.state.lifetime,
        grace=application.state.grace + application.skew,
        expires_by_clock=not application.topics.replay,
        query=derived.query,
    )


def _alerts(application: Application, alerts: Alerts) -> NamedState:
    """A record of each change. Two of them may have the same snapshot, so the version is the offset.

    Another partition has other offsets, but then also another layout.
    """
    return NamedState(
        name=alerts.name,
        topic=application.topics.derived(alerts.name),
        schema=AlertRecord.model_json_schema(mode="serialization"),
        partitions=application.topics.partitions,
        key="device_id",
        epoch="layout",
        version=None,
        copied_from="copied_from",
        windowed=True,
        layout_topic=application.layout_topic,
        lifetime=application.state.lifetime,
        grace=application.state.grace + application.skew,
        expires_by_clock=not application.topics.replay,
        query=alerts.query,
        window=application.state.window,
        every=application.state.every,
    )


def _table(application: Application, table: Table) -> NamedState:
    """The versions are the offsets, and a row stays until it is removed."""
    return NamedState(
        name=table.name,
        topic=application.topics.table(table),
        schema=table_shape(table).model_json_schema(mode="serialization"),
        partitions=application.topics.partitions,
        window_start=None,
        epoch=None,
        version=None,
        event_time=None,
        query=table.query,
    )
