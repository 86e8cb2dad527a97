"""The names of savepoints; tests/spark_app/test_savepoint.py makes and restores them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast
from unittest.mock import Mock

from examples.flights.application import app
from services.cli import savepoint
from spark_app.settings import JobSettings

if TYPE_CHECKING:
    import pytest


def test_two_savepoints_within_one_second_have_different_names_in_the_order_of_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("spark_app.savepoint.create", Mock())
    monkeypatch.setattr(savepoint, "CheckpointFolder", Mock())
    monkeypatch.setattr(savepoint, "_line", lambda path, _: path)
    settings = JobSettings(application="")
    for _ in range(20):
        savepoint.create(cast("Any", None), app, settings, "copies/")
    made = capsys.readouterr().out.splitlines()
    assert len(set(made)) == 20
    assert sorted(made) == made
    assert all(re.fullmatch(r"copies/flights-\d{8}T\d{6}\.\d{6}Z", one) for one in made)
