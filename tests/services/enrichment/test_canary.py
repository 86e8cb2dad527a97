"""A secret header reaches the API, and nothing that a worker writes."""

from __future__ import annotations

import asyncio
import json
import signal
from typing import TYPE_CHECKING
from urllib.request import urlopen

import pytest

from services.tools.broker.readiness import wait_until
from tests.deadline import DEADLINE_S
from tests.services.enrichment.cluster import Cluster
from tests.services.enrichment.fleet import snapshot

if TYPE_CHECKING:
    from pathlib import Path

    from tests.services.enrichment.registry import Registry
    from tests.services.tools.broker.embedded import EmbeddedBroker

CANARY = "canary-4711"
SENT = f"Bearer {CANARY}"
ENDINGS = {
    "P1": "result",
    "missing": "absence",
    "forbidden": "failure",
    "echo": "failure",
    "scold": "failure",
    "wrong": "failure",
    "html": "failure",
    "malformed": "failure",
    "reset": "failure",
    "endless": "failure",
    "headers": "failure",
    "moved": "failure",
    "busy-bare": "result",
}
"""The outcome of every fault, and of two that repeat the secret: as a result, and in an error."""


@pytest.fixture
def cluster(broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path) -> Cluster:
    return Cluster(broker.bootstrap, topics_prefix, tmp_path)


def exposed(cluster: Cluster) -> str:
    """The metrics of the worker, at the address in its log."""
    (endpoints,) = [json.loads(line) for line in cluster.log().splitlines() if '"message":"endpoints"' in line]
    with urlopen(f"{endpoints['url']}/metrics", timeout=DEADLINE_S) as response:  # noqa: S310  # it is our own
        return str(response.read(), "utf-8")


async def test_a_secret_is_written_nowhere(cluster: Cluster, registry: Registry, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(SENT)
    headers = json.dumps({"registry": {"Authorization": f"file:{tmp_path}/secret"}})
    cluster.publish(*(snapshot(1, plate, f"d-{plate}") for plate in ENDINGS))
    with cluster.worker(registry.url, api_headers=headers, stats_every="0.1", http_port="0") as process:
        found = await asyncio.to_thread(cluster.feedback, lambda found: len(found) == 2 * len(ENDINGS))
        failures = sum(ending == "failure" for ending in ENDINGS.values())
        dead_letters = await asyncio.to_thread(
            cluster.read, cluster.topics.dead_letters, lambda some: len(some) == failures
        )
        await asyncio.to_thread(wait_until, lambda: bool(cluster.stats("commits")), "metrics were logged", DEADLINE_S)
        metrics = await asyncio.to_thread(exposed, cluster)
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, DEADLINE_S) == 0
    assert {one.device_id[2:]: one.status for one in found if one.enrichment == "owner"} == ENDINGS
    assert registry.authorizations == {SENT}, "the API received the secret"
    assert "stateloop_worker_calls_total{" in metrics
    written = [metrics, cluster.log(), *(one.model_dump_json() for one in found), json.dumps(dead_letters)]
    assert [text for text in written if CANARY in text] == []
    assert "**********" in cluster.log(), "the settings were printed"


async def test_an_invalid_secret_is_not_logged_either(cluster: Cluster) -> None:
    headers = json.dumps({"registry": {"Authorization": f"{SENT}\nX-Evil: 1"}})
    with cluster.worker("http://127.0.0.1:1", api_headers=headers) as process:
        assert await asyncio.to_thread(process.wait, DEADLINE_S) == 1
    assert "The header 'Authorization' (STATELOOP_API_HEADERS)" in cluster.log()
    assert CANARY not in cluster.log()
