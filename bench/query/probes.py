"""From a record's sending to the moment when a reader sees it, and when a thousand subscribers have it."""

from __future__ import annotations

import time
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from bench.harness.errors import RunFailedError
from bench.harness.load import keyed
from bench.query.records import FIRST, STATE, TOPIC, checked, key, value
from bench.query.updates import RESERVED
from bench.query.watchers import Watchers

if TYPE_CHECKING:
    from bench.query.store_clients import StoreClient

BETWEEN_S = 0.02
PUSHES_BETWEEN_S = 0.2
PATIENCE_S = 10.0
WATCHED = 0
"""The key that all subscribers watch; the others of RESERVED are probed by reading."""


class NotReceivedError(RunFailedError):
    """A record did not come within PATIENCE_S."""

    def __init__(self, number: int, version: int) -> None:
        super().__init__(f"version {version} of {key(number)} was not seen within {PATIENCE_S:g} s")


class Seen(NamedTuple):
    """Latencies in seconds, and the versions that the probed keys have now."""

    latencies: list[float]
    versions: dict[int, int]


def visible(boot: str, began: str, store_client: StoreClient, seconds: float) -> Seen:
    """Write a key and read it until the new version is there, again and again. Raises NotReceivedError."""
    made, random = keyed(boot, linger_ms=0), Random(1)  # noqa: S311  # a load keeps no secret
    versions, latencies = dict.fromkeys(range(1, RESERVED), FIRST), list[float]()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(random.uniform(0, 2 * BETWEEN_S))
        number = random.randrange(1, RESERVED)
        versions[number] += 1
        sent = time.monotonic()
        made.produce(TOPIC, value(number, versions[number], began), key(number))
        made.poll(0)
        while (checked(number, store_client.read(key(number)) or b"") or 0) < versions[number]:
            if time.monotonic() - sent > PATIENCE_S:
                raise NotReceivedError(number, versions[number])
        latencies.append(time.monotonic() - sent)
    made.flush()
    return Seen(latencies, versions)


def pushed(boot: str, began: str, port: int, subscribers: int, seconds: float) -> Seen:
    """Write one key that all subscribers watch, again and again. Raises NotReceivedError, LoadFailedError."""
    made, version, sent = keyed(boot, linger_ms=0), FIRST, dict[int, float]()
    with Watchers(port, f"/v1/states/{STATE}/{key(WATCHED)}/watch", subscribers) as watchers:
        _await(watchers, FIRST)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            version += 1
            sent[version] = time.monotonic()
            made.produce(TOPIC, value(WATCHED, version, began), key(WATCHED))
            made.poll(0)
            time.sleep(PUSHES_BETWEEN_S)
        _await(watchers, version)
        came = watchers.arrivals()
    made.flush()
    return Seen([at - sent[one] for one, times in came.items() if one in sent for at in times], {WATCHED: version})


def _await(watchers: Watchers, version: int) -> None:
    if not watchers.have(version, PATIENCE_S):
        raise NotReceivedError(WATCHED, version)
