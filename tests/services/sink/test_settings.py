"""The settings that name a store, and choose the rows of a state."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from pydantic import SecretStr

from contracts import DeclarationError
from contracts.sinks import Windows
from services.sink.errors import WindowsError
from services.sink.settings import SinkSettings
from services.sink.stores import store_factory
from tests.services.sink.in_memory import URL
from tests.services.sink.records import STATE, TABLE


def configured(**settings: Any) -> SinkSettings:
    return SinkSettings(application="", sink_url=SecretStr(URL), **settings)


def test_a_state_whose_records_name_no_windows_has_only_the_newest() -> None:
    assert configured().target(TABLE).windows is Windows.NEWEST
    with pytest.raises(WindowsError, match=r"'flights' do not name their windows: .*STATELOOP_SINK_WINDOWS"):
        configured(sink_windows=Windows.ALL).target(TABLE)
    assert configured(sink_windows=Windows.ALL).target(STATE).windows is Windows.ALL


def test_the_retention_can_be_set() -> None:
    assert configured().retention(STATE) == timedelta(0)
    assert configured(sink_retention=timedelta(days=3)).retention(STATE) == timedelta(days=3)


def test_a_store_of_your_own_must_be_callable() -> None:
    with pytest.raises(DeclarationError, match="is not a StoreFactory"):
        store_factory(URL, "tests.services.sink.records:STATE")
