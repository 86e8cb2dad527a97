"""Interactive queries of Kafka Streams, as the benchmark runs and measures them."""

from __future__ import annotations

import json
import shutil
import time
from contextlib import suppress
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from bench.harness import topics
from bench.harness.load import keyed
from bench.harness.measure import Site
from bench.harness.process import RunningJob
from bench.peers.build import FOLDER, up_to_date
from bench.query.service import Keys, service_facts
from bench.query.services import KSTREAMS_QUERIES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.services.tools.broker.embedded import EmbeddedBroker

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.skipif(
        not up_to_date(FOLDER / "kstreams", "kstreams"), reason="not built: python -m bench.peers.build builds it"
    ),
]

KEYS = Keys("keys", 2_000, rate=200, seconds=1)
WITHIN_S = 60.0
ODD = 'a/b+"ü" %'


def ignore(what: str) -> None:
    assert what


@pytest.fixture
def site(broker: EmbeddedBroker, tmp_path: Path) -> Site:
    return Site(broker.bootstrap, tmp_path, tmp_path, (broker.pid,))


def record(version: int) -> bytes:
    return b'{"device_id":"d","state":{"version":99},"version":%d,"text":"xxx"}' % version


@pytest.fixture
def port(site: Site) -> Iterator[int]:
    """Yield its port, for a topic of four records of which one is a tombstone."""
    topics.renew(site.boot, "snapshots")
    made = keyed(site.boot, linger_ms=0)
    for key, value in {"k1": record(1), ODD: record(3), "gone": None}.items():
        made.produce("snapshots", value, key)
    made.produce("snapshots", record(2), "k1")
    made.flush()
    with (
        service_facts(site, "kstreams-test") as facts,
        RunningJob(KSTREAMS_QUERIES, site, "kstreams-test", facts | {"core": "0"}) as running,
    ):
        number = int(facts["port"])
        deadline = time.monotonic() + WITHIN_S
        while time.monotonic() < deadline:
            running.require_running()
            with suppress(ConnectionRefusedError):
                if ask(number, "GET", "/v1/states/keys/k1")[0] != 503:
                    break
            time.sleep(0.1)
        yield number


def ask(port: int, method: str, path: str, body: bytes | None = None) -> tuple[int, dict[str, Any]]:
    connection = HTTPConnection("127.0.0.1", port, timeout=WITHIN_S)
    connection.request(method, path, body)
    answer = connection.getresponse()
    result = answer.status, json.loads(answer.read())
    connection.close()
    return result


def test_it_answers_as_the_query_service_does(port: int) -> None:
    status, answer = ask(port, "GET", "/v1/states/keys/k1")
    assert status == 200
    assert answer == {"state": "keys", "key": "k1", "version": 2, "value": json.loads(record(2))}
    status, answer = ask(port, "GET", f"/v1/states/keys/{quote(ODD, safe='+')}")
    assert (status, answer["key"], answer["version"]) == (200, ODD, 3)
    assert ask(port, "GET", "/v1/states/keys/gone")[0] == 404
    assert ask(port, "GET", "/v1/states/keys/never")[1]["type"] == "never_seen"
    assert ask(port, "GET", "/v1/states/others/k1")[0] == 404
    body = json.dumps({"keys": [ODD, "never", "k1"]}).encode()
    status, answer = ask(port, "POST", "/v1/states/keys:batchGet", body)
    assert status == 200
    assert [entry.get("version", entry.get("type")) for entry in answer["answers"]] == [3, "never_seen", 2]
    for bad in (b"[]", b'{"keys":["a",1]}', b'{"keys":["a"'):
        assert ask(port, "POST", "/v1/states/keys:batchGet", bad)[1]["type"] == "bad_request"


@pytest.mark.skipif(shutil.which("wrk") is None, reason="without wrk")
def test_it_is_measured(site: Site) -> None:
    figures, report = KEYS.meter(site).measure(KSTREAMS_QUERIES, "kstreams", ignore)
    assert report.right, report
    assert figures["checked"] > 1_000
    assert figures["gets_per_s"] > 0
    assert figures["half_p99_ms"] > 0
    assert figures["batch_keys_per_s"] > 0
    assert 0 < figures["visible_p50_ms"] < 1000
    assert figures["restart_s"] > 0
    assert figures["disk_mb"] > 0.5
