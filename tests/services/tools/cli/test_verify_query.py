"""`stateloop verify` without a query service, which starts no Spark."""

from __future__ import annotations

import os
import time
from functools import partial
from typing import TYPE_CHECKING

from services.runtime.command_line import run
from services.tools.cli.commands.verify import VerifyOptions
from services.tools.cli.verify import ANSWER_S, verify

if TYPE_CHECKING:
    import pytest

    from spark_app.settings import JobSettings


def test_a_query_service_that_is_away_is_reported_before_spark_starts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def opened(settings: JobSettings) -> None:
        raise AssertionError(settings)

    for name in [name for name in os.environ if name.startswith("STATELOOP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("STATELOOP_APPLICATION", "examples.flights.application:app")
    monkeypatch.setenv("STATELOOP_URL", "http://127.0.0.1:1")
    began = time.monotonic()
    command = partial(verify, VerifyOptions(), opened)  # type: ignore[arg-type]
    assert run("verify", command) == 1
    assert time.monotonic() - began < 2 * ANSWER_S
    assert "http://127.0.0.1:1" in capsys.readouterr().err
