"""A worker without its topics."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.deadline import DEADLINE_S
from tests.services.enrichment.cluster import Cluster

if TYPE_CHECKING:
    from pathlib import Path

    from tests.services.enrichment.registry import Registry
    from tests.services.tools.broker.embedded import EmbeddedBroker


async def test_a_worker_without_its_topics_exits_and_names_the_command_that_creates_them(
    broker: EmbeddedBroker, topics_prefix: str, tmp_path: Path, registry: Registry
) -> None:
    cluster = Cluster(broker.bootstrap, topics_prefix, tmp_path)
    gone = [cluster.topics.feedback, cluster.topics.snapshots]
    await asyncio.to_thread(cluster.delete, *gone)
    with cluster.worker(registry.url) as process:
        assert await asyncio.to_thread(process.wait, DEADLINE_S) == 1
    assert '"message":"topics are missing"' in cluster.log()
    end = cluster.log().splitlines()[-1]
    assert end.startswith("stateloop worker: ")
    assert f"{broker.bootstrap} does not have the topics {gone[1]}, {gone[0]}" in end
    assert "run `stateloop topics`" in end
