from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import Mock

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from examples.flights.application import app
from examples.vitals.application import suite
from services.runtime import topic_owners
from services.runtime.kafka.admin import KafkaAdmin
from services.runtime.topic_owners import TopicOwners
from services.tools.broker.readiness import wait_until
from services.tools.cli import checks, doctor
from services.tools.cli.checks import CheckResult
from spark_app.checkpoint.generations import ROOT, Activation
from spark_app.checkpoint.identity import CheckpointFile, identity
from spark_app.errors import MissingPackageError
from spark_app.query.processor.step import PACKAGES
from spark_app.settings import JobSettings
from spark_app.topics.identity import TopicIdentity
from tests import processed
from tests.deadline import DEADLINE_S
from tests.services.enrichment import fleet
from tests.services.enrichment.cluster import Cluster
from tests.services.runtime.rivals import rival

if TYPE_CHECKING:
    from tests.services.tools.broker.embedded import EmbeddedBroker

CHECKOUT = Path(__file__).parents[4]
HERE = (ip_network("127.0.0.0/8"),)
SUBJECTS = ["Settings", "Python", "Java", "Jars", "Broker and topics", "Owners of topics"]
SUBJECTS += ["Clock of the broker", "Checkpoint", "API registry", "Clock of API registry"]
TOPICS = [TopicIdentity("flights.events", "AAAA", 4), TopicIdentity("flights.feedback", "BBBB", 4)]


def stateloop(command: str, topics_prefix: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    arguments = [sys.executable, "-m", "services.tools.cli", command]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("STATELOOP_")}
    overrides = {f"STATELOOP_{name.upper()}": value for name, value in environment.items()}
    prefix = {"FLEET_PREFIX": topics_prefix}
    env = clean | overrides | prefix
    return subprocess.run(arguments, cwd=CHECKOUT, env=env, capture_output=True, text=True, check=False)


def settings(checkpoint: str | Path) -> JobSettings:
    return JobSettings(application="examples.flights.application:app", checkpoint=str(checkpoint))


def test_wrong_settings_are_the_only_finding() -> None:
    done = stateloop("doctor", application="examples.flights.application:app", kafak="here:9092")
    assert done.returncode == 1
    (line,) = done.stdout.splitlines()
    assert line.startswith("failed  Settings: STATELOOP_KAFAK")
    assert "STATELOOP_KAFKA" in line


def test_an_api_that_the_application_does_not_call_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATELOOP_APPLICATION", "examples.weather.application:app")
    monkeypatch.setenv("STATELOOP_KAFKA", "127.0.0.1:1")
    monkeypatch.setenv("STATELOOP_API_HEADERS", '{"pagr": {"X-Key": "secret"}}')
    monkeypatch.setattr(checks, "runtime", lambda _: [])
    monkeypatch.setattr(checks, "topics", lambda *_: ([], []))
    (found,) = [one for one in doctor.findings() if one.result is CheckResult.WARNING]
    assert (found.subject, found.text.partition(";")[0]) == ("APIs", "STATELOOP_API_HEADERS: no API 'pagr'")


def test_a_raw_topic_is_checked_and_its_decoder_must_be_able_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    ((application, raw),) = suite.raw_sources()
    monkeypatch.setattr(checks, "identify_topic", lambda *_: TopicIdentity(raw.topic, "AAAA", 4))
    finding = checks.raw_source(settings(""), application, raw)
    assert (finding.subject, finding.result) == ("Raw topic vitals.waveforms", CheckResult.OK)
    monkeypatch.setattr(checks, "check_extra", Mock(side_effect=MissingPackageError("numpy", "raw")))
    finding = checks.raw_source(settings(""), application, raw)
    assert (finding.result, "stateloop[raw]" in finding.text) == (CheckResult.FAILED, True)


async def test_an_api_that_responds_with_any_status_is_ok() -> None:
    async with TestServer(web.Application()) as server:
        findings = await checks.apis({"city": str(server.make_url("/"))}, HERE)
    assert [(finding.subject, finding.result) for finding in findings] == [
        ("API city", CheckResult.OK),
        ("Clock of API city", CheckResult.OK),
    ]
    assert "status 404" in findings[0].text


async def clock_of(date: str) -> checks.Finding:
    """Return the finding on the clock of an API that responds with this date."""

    async def respond(_: web.Request) -> web.Response:
        return web.Response(headers={"Date": date})

    routes = web.Application()
    routes.router.add_get("/", respond)
    async with TestServer(routes) as server:
        _, clock = await checks.apis({"city": str(server.make_url("/"))}, HERE)
    return clock


async def test_an_api_with_another_clock_is_a_warning() -> None:
    clock = await clock_of(format_datetime(datetime.now(UTC) + timedelta(minutes=5), usegmt=True))
    assert clock.result == CheckResult.WARNING
    assert "by NTP" in clock.text


@pytest.mark.parametrize("date", ["today", "Sun, 06 Nov 1994 08:49:37 +99999999999999999"])
async def test_an_api_whose_date_is_no_time_is_a_warning(date: str) -> None:
    clock = await clock_of(date)
    assert (clock.result, clock.text) == (CheckResult.WARNING, f"not compared: its header Date is {date!r}")


async def test_the_date_of_an_api_without_a_zone_is_in_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        clock = await clock_of(f"{datetime.now(UTC):%a, %d %b %Y %H:%M:%S} -0000")
    finally:
        monkeypatch.undo()
        time.tzset()
    assert clock.result == CheckResult.OK


async def test_an_api_at_a_private_address_fails_with_the_setting_that_allows_it() -> None:
    async with TestServer(web.Application()) as server:
        (finding,) = await checks.apis({"city": str(server.make_url("/"))}, ())
    assert finding.result == CheckResult.FAILED
    assert "STATELOOP_ALLOWED_NETWORKS" in finding.text


async def test_an_api_that_does_not_respond_fails() -> None:
    for url in ("http://127.0.0.1:1", "http://city..example/"):
        (finding,) = await checks.apis({"city": url}, HERE)
        assert finding.result == CheckResult.FAILED
        assert f"{url} does not respond" in finding.text


def test_a_checkpoint_that_is_not_there_is_ok(tmp_path: Path) -> None:
    (finding,) = checks.checkpoint(settings(tmp_path / "none"), app, TOPICS)
    assert finding.result == CheckResult.OK


def test_a_checkpoint_of_this_application_is_ok_with_its_epoch(tmp_path: Path) -> None:
    stored = CheckpointFile(format=1, epoch=17, identity=identity(app, TOPICS, 4))
    (tmp_path / "stateloop.json").write_text(stored.model_dump_json())
    (finding,) = checks.checkpoint(settings(tmp_path), app, TOPICS)
    assert (finding.result, finding.text) == (CheckResult.OK, f"{tmp_path}, epoch 17")


def test_a_checkpoint_of_other_topics_fails_with_the_difference(tmp_path: Path) -> None:
    stored = CheckpointFile(format=1, epoch=17, identity=identity(app, TOPICS[:1], 4))
    (tmp_path / "stateloop.json").write_text(stored.model_dump_json())
    (finding,) = checks.checkpoint(settings(tmp_path), app, TOPICS)
    assert finding.result == CheckResult.FAILED
    assert "flights.feedback" in finding.text


def test_a_checkpoint_without_its_identity_or_with_a_damaged_one_fails(tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    (finding,) = checks.checkpoint(settings(tmp_path), app, TOPICS)
    assert (finding.result, "has no stateloop.json" in finding.text) == (CheckResult.FAILED, True)
    (tmp_path / "stateloop.json").write_text("{")
    (finding,) = checks.checkpoint(settings(tmp_path), app, TOPICS)
    assert finding.result == CheckResult.FAILED


def test_the_active_generation_of_a_checkpoint_is_checked(tmp_path: Path) -> None:
    former = CheckpointFile(format=1, epoch=17, identity=identity(app, TOPICS[:1], 4))
    stored = CheckpointFile(format=1, epoch=20, identity=identity(app, TOPICS, 4))
    built = tmp_path / "generation-20"
    built.mkdir()
    (tmp_path / "stateloop.json").write_text(former.model_dump_json())
    (built / "stateloop.json").write_text(stored.model_dump_json())
    for number, active in (
        (9, Activation(generation=ROOT, epoch=19)),
        (10, Activation(generation=built.name, epoch=21)),
    ):
        (tmp_path / f"stateloop.active.{number}").write_text(active.model_dump_json())
    (finding,) = checks.checkpoint(settings(tmp_path), app, TOPICS)
    assert (finding.result, finding.text) == (CheckResult.OK, f"{built}, epoch 21")
    (finding,) = checks.checkpoint(settings(tmp_path), app, TOPICS[:1])
    assert (finding.result, str(built) in finding.text) == (CheckResult.FAILED, True)


def test_an_active_generation_that_is_lost_fails(tmp_path: Path) -> None:
    activation = Activation(generation="generation-7", epoch=9)
    (tmp_path / "stateloop.active.1").write_text(activation.model_dump_json())
    (finding,) = checks.checkpoint(settings(tmp_path), app, TOPICS)
    assert finding.result == CheckResult.FAILED
    assert "run `stateloop rebuild`" in finding.text


def test_a_checkpoint_that_cannot_be_read_fails(tmp_path: Path) -> None:
    (tmp_path / "stateloop.active.1").write_text("{")
    (finding,) = checks.checkpoint(settings(tmp_path), app, TOPICS)
    assert (finding.result, "an activation is not readable" in finding.text) == (CheckResult.FAILED, True)
    (finding,) = checks.checkpoint(settings(tmp_path / "stateloop.active.1"), app, TOPICS)
    assert (finding.result, "Not a directory" in finding.text) == (CheckResult.FAILED, True)


def test_missing_jars_fail_with_the_command(tmp_path: Path) -> None:
    *_, jars = checks.runtime(tmp_path)
    assert (jars.result, "stateloop jars" in jars.text) == (CheckResult.FAILED, True)


@pytest.mark.parametrize(("ahead_s", "result"), [(-60, CheckResult.OK), (1, CheckResult.OK), (60, CheckResult.WARNING)])
def test_a_newest_record_from_the_future_is_a_warning(
    broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path, ahead_s: int, result: CheckResult
) -> None:
    cluster = Cluster(broker.bootstrap, topics_prefix, tmp_path)
    here = settings(tmp_path).model_copy(update={"kafka": broker.bootstrap})

    def compared() -> checks.Finding:
        now = datetime.now(UTC).timestamp()
        (finding,) = checks.broker_clock(here, fleet.application(topics_prefix), now - ahead_s)
        return finding

    # A new topic has no leader for a moment.
    wait_until(lambda: compared().result == CheckResult.OK, "the topic has its leaders", DEADLINE_S)
    empty = compared()
    assert (empty.result, "is empty" in empty.text) == (CheckResult.OK, True), empty.text
    cluster.produce(("device", b"{}"))
    assert compared().result == result


def test_topics_of_another_application_fail_with_its_name(
    broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path
) -> None:
    ours, theirs = rival("ours", topics_prefix), rival("theirs", topics_prefix)
    cluster = Cluster(broker.bootstrap, topics_prefix, tmp_path)
    cluster.create(*(ours.topics.derived(state.name) for state in ours.derived))
    here = settings(tmp_path).model_copy(update={"kafka": broker.bootstrap})
    (free,) = checks.owners(here, ours)
    assert (free.result, "no other application" in free.text) == (CheckResult.OK, True)
    TopicOwners(theirs, KafkaAdmin(here.client(), "topic-owners"), pytest.fail).claim()
    (finding,) = checks.owners(here, ours)
    assert finding.result == CheckResult.FAILED
    assert f"'{ours.topics.feedback}' (feedback of 'theirs')" in finding.text
    assert checks.owners(here, theirs)[0].result == CheckResult.OK


def test_owners_that_the_broker_does_not_return_are_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_owners, "ANSWER_S", 0.0)
    monkeypatch.setattr(topic_owners, "TRY_S", 0.1)
    (finding,) = checks.owners(settings(tmp_path).model_copy(update={"kafka": "127.0.0.1:1"}), app)
    assert (finding.result, "are unknown" in finding.text) == (CheckResult.WARNING, True)


async def test_a_set_up_without_its_topics_fails_and_one_with_them_has_no_problem(
    broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path
) -> None:
    async with TestServer(web.Application()) as server:
        environment = {
            "application": "tests.services.enrichment.fleet:app",
            "kafka": broker.bootstrap,
            "checkpoint": str(tmp_path / "checkpoint"),
            "apis": json.dumps({"registry": str(server.make_url("/"))}),
            "allowed_networks": '["127.0.0.0/8"]',
            "jars": str(CHECKOUT / ".stateloop/jars"),
        }
        missing = await asyncio.to_thread(stateloop, "doctor", topics_prefix, **environment)
        assert missing.returncode == 1
        assert "failed  Broker and topics: topic " in missing.stdout
        assert "run `stateloop topics` once" in missing.stdout
        made = await asyncio.to_thread(stateloop, "topics", topics_prefix, **environment)
        assert made.returncode == 0, made.stderr
        done = await asyncio.to_thread(stateloop, "doctor", topics_prefix, **environment)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stdout
    assert all(line.startswith("ok ") for line in lines), done.stdout
    assert [line[8:].partition(":")[0] for line in lines] == SUBJECTS


def test_the_packages_of_a_processor_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    assert checks.processor(app) == []
    (finding,) = checks.processor(processed.tallies)
    assert (finding.result, finding.text) == (CheckResult.OK, "tests.processed.Tally")
    monkeypatch.setitem(PACKAGES, "no.such.module", "no-such-package")
    (finding,) = checks.processor(processed.tallies)
    assert (finding.result, "stateloop[processor]" in finding.text) == (CheckResult.FAILED, True)
