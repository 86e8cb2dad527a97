"""JSON Schema of everything on the wire, generated from the models."""

from typing import Any

from pydantic import BaseModel, Field, create_model

from contracts.model.application import Application
from contracts.model.tracing import FIELD
from contracts.records.record import Reason
from contracts.records.shape import feedback_shape
from contracts.wire import Answer, DeadLetter, Snapshot
from contracts.wire.announcement import Announcement


def schemas(application: Application) -> dict[str, dict[str, Any]]:
    """The schema of each of the application's topics, by the catalogue's name of its model."""
    models: dict[str, type[BaseModel]] = {
        "event": application.event_shape,
        "feedback": feedback_shape(application),
        "snapshot": snapshot_shape(application),
        "dead_letter": DeadLetter,
        "instance": Announcement,
    }
    documents = {name: model.model_json_schema(by_alias=False, mode="serialization") for name, model in models.items()}
    absent = (*(() if application.traced else (FIELD,)), *(("event_offset",) if application.state.is_windowed else ()))
    for name in absent:
        del documents["snapshot"]["properties"][name]
    documents["dead_letter"]["properties"]["reason"]["examples"] = [reason.value for reason in Reason]
    return documents


def snapshot_shape(application: Application) -> type[BaseModel]:
    """The model of this application's snapshots: its state without the slots, and an answer for each enrichment."""
    fields = application.state.model_fields
    kept: dict[str, Any] = {
        name: (_missing(fields[name].annotation), Field(None, json_schema_extra=_extra(application, name)))
        for name in application.fields
    }
    slots: dict[str, Any] = {
        enrichment.name: (_answer(enrichment.name, enrichment.result) | None, None)
        for enrichment in application.enrichments
    }
    state, answers = create_model(application.state.__name__, **kept), create_model("Enrichments", **slots)
    own: dict[str, Any] = {"state": (state, ...), "enrichments": (answers, ...)}
    return create_model(f"{application.state.__name__}Snapshot", __base__=Snapshot, **own)


def _extra(application: Application, name: str) -> Any:
    """Return what the reducer of a field adds to its schema."""
    reducer = application.reducers.get(name)
    return None if reducer is None else reducer.schema


def _missing(annotation: Any) -> Any:
    """A null field is left out of a snapshot."""
    return annotation | None


def _answer(name: str, result: type[BaseModel]) -> Any:
    own: dict[str, Any] = {"result": (result | None, None)}
    return create_model(f"{name.title().replace('_', '')}Answer", __base__=Answer, **own)
