"""The doctor's check of the store of a sink."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import psycopg
import pytest

from contracts.model.suite import load_suite
from services.tools.cli import checks, doctor
from services.tools.cli.checks import CheckResult, Finding
from services.tools.cli.sink_check import sink_store

if TYPE_CHECKING:
    from tests.services.sink.servers import PostgresqlServer, RedisServer

APPLICATION = "examples.flights.application:app"
SECRET = "hunter2"  # noqa: S105  # looked for where it must not be


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in [name for name in os.environ if name.startswith("STATELOOP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("STATELOOP_APPLICATION", APPLICATION)
    return monkeypatch


async def check(environment: pytest.MonkeyPatch, url: str) -> Finding:
    environment.setenv("STATELOOP_SINK_URL", url)
    return await sink_store(load_suite(APPLICATION))


async def test_a_store_that_answers_is_ok_with_the_states_that_it_gets(
    environment: pytest.MonkeyPatch, redis_server: RedisServer
) -> None:
    finding = await check(environment, redis_server.url)
    assert (finding.subject, finding.result) == ("Store of the sink", CheckResult.OK), finding.text
    assert finding.text == "redis answers; a sink writes flights, aircraft"


async def test_a_database_answers_and_gets_no_table(
    environment: pytest.MonkeyPatch, postgresql_server: PostgresqlServer
) -> None:
    environment.setenv("STATELOOP_SINK_PREFIX", "unseen_")
    finding = await check(environment, postgresql_server.url)
    assert finding.result == CheckResult.OK, finding.text
    with psycopg.connect(postgresql_server.url) as connection:
        tables = connection.execute("SELECT count(*) FROM pg_tables WHERE tablename LIKE 'unseen_%'").fetchone()
    assert tables == (0,)


@pytest.mark.parametrize("scheme", ["redis", "postgresql"])
async def test_a_store_that_is_away_fails_without_the_password(environment: pytest.MonkeyPatch, scheme: str) -> None:
    finding = await check(environment, f"{scheme}://user:{SECRET}@127.0.0.1:1/0")
    assert finding.result == CheckResult.FAILED
    assert f"{scheme} does not answer" in finding.text
    assert "correct STATELOOP_SINK_URL" in finding.text
    assert SECRET not in finding.text


async def test_a_url_of_no_store_fails_with_the_setting(environment: pytest.MonkeyPatch) -> None:
    finding = await check(environment, "mysql://127.0.0.1/0")
    assert (finding.result, "STATELOOP_SINK_URL" in finding.text) == (CheckResult.FAILED, True)


async def test_an_own_store_is_not_called(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("STATELOOP_SINK_STORE", "services.sink.stores.redis:RedisStore")
    finding = await check(environment, "redis://127.0.0.1:1/0")
    assert finding.result == CheckResult.WARNING


def test_the_doctor_checks_it_only_where_a_sink_is_configured(environment: pytest.MonkeyPatch) -> None:
    environment.setattr(checks, "topics", lambda *_: ([], []))
    environment.setattr(checks, "apis", lambda *_: asyncio.sleep(0, []))
    environment.setenv("STATELOOP_KAFKA", "127.0.0.1:1")
    environment.setenv("STATELOOP_APIS", '{"reference": "http://127.0.0.1:1"}')
    assert "Store of the sink" not in [finding.subject for finding in doctor.findings()]
    environment.setenv("STATELOOP_SINK_URL", "redis://127.0.0.1:1/0")
    assert "Store of the sink" in [finding.subject for finding in doctor.findings()]
