"""What `stateloop state get` prints of a state."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from services.tools.cli import state
from spark_app.settings import JobSettings
from tests.everything import app

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.spark
def test_windows_are_as_they_are_in_a_pipe_and_control_no_terminal(
    spark: SparkSession, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, rows = SimpleNamespace(batch=3, epoch=7), spark.sql("SELECT 'k\x9b2J' AS key, 5 AS window_start")

    def export(*arguments: Any) -> object:
        arguments[-1](rows, made)
        return made

    monkeypatch.setattr(state, "export", export)
    monkeypatch.setattr(state, "read", JobSettings.model_construct)
    monkeypatch.setattr(state, "require_broker", lambda _: None)
    monkeypatch.setattr(state, "spark_session", lambda _: nullcontext(spark))
    monkeypatch.setattr(state, "selected", lambda settings, _: [(app, settings)])
    monkeypatch.setattr(state, "declared", lambda rows, _: rows)
    assert state.print_key("k\x9b2J", None) == 1
    assert capsys.readouterr().out == '{"key":"k\x9b2J","window_start":5}\n'
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert state.print_key("k\x9b2J", None) == 1
    assert capsys.readouterr().out == '{"key":"k\\x9b2J","window_start":5}\n'
