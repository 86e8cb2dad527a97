"""Paths against the schema of a real application."""

from __future__ import annotations

import pytest

from contracts.records.schema import schemas
from examples.flights.application import app
from services.client.paths import has_path, unknown_path

SCHEMA = schemas(app)["snapshot"]


@pytest.mark.parametrize(
    "path",
    ["device_id", "state", "state.delay", "enrichments.aircraft.result.seats", "enrichments.weather.reason"],
)
def test_fields_of_the_state_are_known(path: str) -> None:
    assert unknown_path(SCHEMA, path) is None


@pytest.mark.parametrize(
    ("path", "parent", "name"),
    [
        ("delay", "", "state"),
        ("state.dely", "state", "delay"),
        ("enrichments.aircraft.result.seat", "enrichments.aircraft.result", "seats"),
    ],
)
def test_an_unknown_field_is_reported_with_its_siblings(path: str, parent: str, name: str) -> None:
    unknown = unknown_path(SCHEMA, path)
    assert unknown
    assert (unknown.path, unknown.parent) == (path, parent)
    assert name in unknown.names


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object"},
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"type": "object", "properties": {"a": {}}, "additionalProperties": True},
        {"$ref": "#/definitions/other"},
    ],
    ids=str,
)
def test_an_open_object_may_have_any_field(schema: dict[str, object]) -> None:
    assert unknown_path(schema, "b.c") is None


def test_a_record_has_a_field_that_is_null() -> None:
    value = {"state": {"gate": None, "status": "landed"}}
    assert has_path(value, "state.gate")
    assert not has_path(value, "state.delay")
    assert not has_path(value, "state.status.letter")
