"""Watches of keys that another instance owns: two instances over HTTP, which share the partitions."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from contracts.metrics import query as metrics
from contracts.model.named_state import QueryOptions
from services.query.cluster import Member, PartitionStatus, Role
from services.query.store import Update
from tests.services.query.in_memory import NOW, a_state
from tests.services.query.push.serving import QUICK, Client, Instance, connected, eventually, watching

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Iterator
    from pathlib import Path

    from services.query.push.subscription import Subscription

OWN = PartitionStatus(Role.OWNER, 0)
AWAY = PartitionStatus(Role.ELSEWHERE, 0)
KEYS = [f"key-{number}" for number in range(40)]
LANDED = {"state": {"status": "landed"}}
FLYING = {"state": {"status": "flying"}}


class Pair:
    """Two instances that read all records, and share the partitions."""

    def __init__(self, **options: Any) -> None:
        state = a_state(query=QueryOptions(indexes=("state.status",)))
        self.one, self.two = (
            Instance(state, instance=name, **({"limits": QUICK} | options)) for name in ("one", "two")
        )

    def share(self, *ones: int) -> None:
        """Make the first instance the owner of these partitions, and the second of the others."""
        for instance, other in ((self.one, self.two), (self.two, self.one)):
            own = {number for number in range(4) if (number in ones) == (instance is self.one)}
            instance.routing.others = {number: OWN if number in own else AWAY for number in range(4)}
            instance.routing.known = [Member(other.dependencies.settings.instance, other.base)]

    def change(self, key: str, version: int, value: Any = None) -> None:
        """Store a record at both instances and fan it out."""
        for instance in (self.one, self.two):
            instance.change(key, version, value)

    def remove(self, key: str) -> None:
        for instance in (self.one, self.two):
            instance.watching.changed([instance.remove(key)])

    def keys(self, *partitions: int) -> Iterator[str]:
        """Return the keys of these partitions."""
        return (key for key in KEYS if self.one.watching.routing.partition("flights", key) in partitions)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[Pair]:
        async with AsyncExitStack() as stack:
            for instance in (self.one, self.two):
                await stack.enter_async_context(instance.serving())
            self.share(0, 1)
            self.refresh()
            yield self

    def refresh(self) -> None:
        for instance in (self.one, self.two):
            instance.watching.refresh()


@pytest.fixture
async def pair() -> AsyncIterator[Pair]:
    async with Pair().serving() as found:
        yield found


async def test_a_key_of_another_instance_can_be_watched(pair: Pair) -> None:
    key = next(pair.keys(2))
    pair.change(key, 1)
    async with watching(pair.one, f"/v1/states/flights/{key}/watch") as events:
        first = await events.next()
        assert (first.id, first.data["instance"], first.data["value"]) == (f"{NOW}.0.1", "two", {"v": 1})
        pair.change(key, 2)
        assert (await events.next()).id == f"{NOW}.0.2"
        pair.remove(key)
        assert (await events.next()).event == "removed"
    await eventually(lambda: pair.two.subscriptions() == 0)


@pytest.mark.parametrize("options", [{"prefix": "key-"}, {"where": {"state.status": "flying"}}, {"key": None}])
async def test_a_key_that_reappears_with_a_lower_version_is_removed_first(pair: Pair, options: dict[str, Any]) -> None:
    key, other = list(pair.keys(2))[:2]
    async with connected(pair.one) as client:
        await client.subscribe("mine", **{name: options[name] or key for name in options}, current=False)
        await client.subscribe("other", key=other, current=False)
        await eventually(lambda: pair.two.subscriptions() == 2)
        pair.change(key, 5, FLYING)
        assert (await client.next())["answer"]["version"] == 5
        for instance in (pair.one, pair.two):
            instance.watching.changed([instance.remove(key), instance.put(key, 1, FLYING)])
        pair.change(other, 1, LANDED)
        removed, state = [await client.next() for _ in range(2)]
        assert (removed["type"], removed.get("key")) == ("removed", key)
        assert (state["answer"]["key"], state["answer"]["version"]) == (key, 1)


async def test_a_watching_connection_has_one_connection_to_an_owner(pair: Pair) -> None:
    keys = list(pair.keys(2, 3))[:5]
    async with connected(pair.one) as client, connected(pair.one) as other:
        for key in keys:
            await client.subscribe(key, key=key, current=False)
        await other.subscribe("all", prefix="", current=False)
        await eventually(lambda: pair.two.subscriptions() == len(keys) + 1)
        assert pair.two.dependencies.counts.get(metrics.STREAMS) == 2
        for key in keys:
            await client.send(type="unsubscribe", id=key)
        await eventually(lambda: pair.two.dependencies.counts.get(metrics.STREAMS) == 1)


async def test_the_owner_conflates_while_the_client_reads_nothing(pair: Pair) -> None:
    key = next(pair.keys(2))
    async with connected(pair.one, max_msg_size=0) as client:
        await client.subscribe("x", prefix="", current=False)
        await eventually(lambda: pair.two.subscriptions() == 1)
        transport: Any = client.socket._conn.transport  # type: ignore[union-attr]  # noqa: SLF001  # stops reading
        transport.pause_reading()
        (stream,) = pair.two.watching._streams  # noqa: SLF001  # what waits shows nowhere else at once
        version = 0
        while not stream.names.conflated:
            version += 1
            pair.change(key, version, {"pad": "x" * 100_000})
            await asyncio.sleep(0.001)
        pair.change(key, 10_000)
        transport.resume_reading()
        versions: list[int] = []
        while not versions or versions[-1] < 10_000:
            message = await client.next()
            versions += [message["answer"]["version"]] if message["type"] == "state" else []
        assert (versions == sorted(set(versions)), len(versions) <= version) == (True, True)


@pytest.mark.parametrize("after", [(0,), (0, 1, 2, 3)])
async def test_a_slow_client_learns_that_a_removal_was_lost_in_a_move(pair: Pair, after: tuple[int, ...]) -> None:
    key, gone = list(pair.keys(2))[:2]
    pair.change(gone, 1)
    async with connected(pair.one, max_msg_size=0) as client:
        await client.subscribe("x", prefix="")
        await _present(client)
        (before,) = await _subscriptions(pair.two)
        transport: Any = client.socket._conn.transport  # type: ignore[union-attr]  # noqa: SLF001  # stops reading
        transport.pause_reading()
        (stream,) = pair.two.watching._streams  # noqa: SLF001  # what waits shows nowhere else at once
        while not stream.names.conflated:
            pair.change(key, pair.two.offset, {"pad": "x" * 100_000})
            await asyncio.sleep(0.001)
        pair.remove(gone)
        pair.share(*after)
        pair.refresh()
        await eventually(lambda: before not in pair.two.watching.feed.subscriptions("flights"))
        transport.resume_reading()
        while (message := await client.next())["type"] == "state":
            pass
        assert message["type"] == "reset"


async def test_a_client_learns_that_a_removal_of_its_own_instance_was_lost_in_a_move(pair: Pair) -> None:
    key = next(pair.keys(1))
    async with connected(pair.one) as client:
        await client.subscribe("x", prefix="", current=False)
        pair.one.watching.feed.changed([pair.one.remove(key)])  # it waits
        pair.share(0)
        pair.refresh()
        assert (await client.next())["type"] == "reset"


async def test_a_prefix_receives_changes_of_all_instances(pair: Pair) -> None:
    for key in KEYS:
        pair.change(key, 1)
    async with connected(pair.one) as client:
        await client.subscribe("all", prefix="key-")
        assert await _present(client) == dict.fromkeys(KEYS, 1)
        for key in (next(pair.keys(0)), next(pair.keys(2))):
            pair.change(key, 2)
            message = await client.next()
            assert (message["answer"]["key"], message["answer"]["version"]) == (key, 2)


async def test_a_filter_receives_changes_and_departures_of_all_instances(pair: Pair) -> None:
    key = next(pair.keys(3))
    pair.change(key, 1, LANDED)
    async with connected(pair.one) as client:
        await client.subscribe("landed", where={"state.status": "landed"})
        assert await _present(client) == {key: 1}
        pair.change(key, 2, FLYING)
        assert await client.next() == {"type": "left", "ids": ["landed"], "state": "flights", "key": key}


@pytest.mark.parametrize(("before", "after"), [((0, 1), (0, 1, 2, 3)), ((0, 1, 2, 3), (0, 1))])
async def test_a_watch_continues_at_the_new_owner_and_receives_nothing_older(
    pair: Pair, before: tuple[int, ...], after: tuple[int, ...]
) -> None:
    key = next(pair.keys(2))
    pair.share(*before)
    pair.refresh()
    pair.change(key, 5)
    async with watching(pair.one, f"/v1/states/flights/{key}/watch") as events:
        assert (await events.next()).id == f"{NOW}.0.5"
        pair.share(*after)
        late = [instance.put(key, 6) for instance in (pair.one, pair.two)]
        pair.refresh()
        assert (await events.next()).id == f"{NOW}.0.6"
        for instance, change in zip((pair.one, pair.two), late, strict=True):
            instance.watching.changed([change])
        pair.change(key, 7)
        assert (await events.next()).id == f"{NOW}.0.7"


@pytest.mark.parametrize(("before", "after"), [((0, 1), (0, 1, 2, 3)), ((0, 1, 2, 3), (0, 1))])
@pytest.mark.parametrize("options", [{"prefix": "key-"}, {"where": {"state.status": "flying"}}, {"key": None}])
async def test_a_watch_of_changes_receives_nothing_former_at_the_new_owner(
    pair: Pair, before: tuple[int, ...], after: tuple[int, ...], options: dict[str, Any]
) -> None:
    key = next(pair.keys(2))
    pair.share(*before)
    pair.refresh()
    pair.change(key, 1, FLYING)
    async with connected(pair.one) as client:
        await client.subscribe("x", **{name: options[name] or key for name in options}, current=False)
        (stream,) = pair.one.watching._streams  # noqa: SLF001  # nothing is sent when a watch has begun
        await eventually(lambda: stream.subscriptions["x"].since[2] is not None)
        pair.share(*after)
        pair.refresh()
        await eventually(lambda: pair.two.subscriptions() == (2 not in after))
        pair.change(key, 2, FLYING)
        assert (await client.next())["answer"]["version"] == 2


@pytest.mark.parametrize(("before", "after"), [((0, 1), (0, 1, 2, 3)), ((0, 1, 2, 3), (0, 1))])
@pytest.mark.parametrize("current", [True, False])
async def test_many_keys_resume_at_the_new_owner_with_the_changes_between(
    pair: Pair, before: tuple[int, ...], after: tuple[int, ...], *, current: bool
) -> None:
    pair.share(*before)
    pair.refresh()
    for key in KEYS:
        pair.change(key, 1, FLYING)
    moved = list(pair.keys(2, 3))
    async with connected(pair.one) as client:
        await client.subscribe("all", prefix="key-", current=current)
        await client.subscribe("flying", where={"state.status": "flying"}, current=current)
        if current:
            await _present(client, pending=2 * len({number in before for number in range(4)}))
        await eventually(lambda: pair.two.subscriptions() == (0 if 2 in before else 2))
        pair.change(moved[2], 2, FLYING)
        assert (await client.next())["answer"]["key"] == moved[2]
        for instance in (pair.one, pair.two):  # neither owns the partitions then, so no client is notified
            instance.put(moved[0], 2, LANDED)
            instance.put(moved[1], 2, FLYING)
        pair.share(*after)
        pair.refresh()
        messages = [await client.next() for _ in range(4 if current else 3)]
        found = {(message["type"], message.get("answer", message)["key"], *message["ids"]) for message in messages}
        left = {("left", moved[0], "flying")} if current else set()
        assert {one for one in found if one[0] == "left"} == left
        assert {one[1] for one in found if one[0] == "state"} == set(moved[:2])
        pair.change(moved[0], 3, FLYING)
        assert (await client.next())["answer"]["version"] == 3


async def test_a_key_that_was_received_before_a_move_leaves_after_it(pair: Pair) -> None:
    key = next(pair.keys(2))
    pair.share(0, 1, 2, 3)
    pair.refresh()
    pair.change(key, 1, FLYING)
    async with connected(pair.one) as client:
        await client.subscribe("flying", where={"state.status": "flying"})
        assert await _present(client, pending=1) == {key: 1}
        pair.share(0, 1)
        pair.refresh()
        (relayed,) = await _subscriptions(pair.two)
        await eventually(lambda: not relayed.scans)
        pair.change(key, 2, LANDED)
        assert await client.next() == {"type": "left", "ids": ["flying"], "state": "flights", "key": key}


@pytest.mark.parametrize("options", [{"prefix": "key-"}, {"where": {"state.status": "flying"}}, {"key": None}])
@pytest.mark.parametrize("has_owner", [True, False])
async def test_nothing_is_missed_when_an_owner_stops_that_took_over_late(
    pair: Pair, options: dict[str, Any], *, has_owner: bool
) -> None:
    key = next(pair.keys(2))
    pair.share(0, 1, 2, 3)
    if not has_owner:  # as the second one knows
        pair.two.routing.known = []
    pair.refresh()
    pair.share(0, 1)
    pair.one.watching.refresh()  # the first learns earlier than the second that the second owns the partition
    async with connected(pair.one) as client:
        await client.subscribe(
            "mine", **{name: key if name == "key" else options[name] for name in options}, current=False
        )
        (relayed,) = await _subscriptions(pair.two)
        await eventually(lambda: None not in relayed.ends.values())
        pair.two.watching.refresh()
        pair.change(key, 1, FLYING)
        while (message := await client.next())["type"] == "never_seen":
            continue
        assert message["answer"]["instance"] == "two"
        for instance in (pair.one, pair.two):  # the owner is killed before it has sent this
            instance.put(key, 2, FLYING)
        pair.share(0, 1, 2, 3)
        pair.refresh()
        answer = (await client.next())["answer"]
        assert (answer["instance"], answer["version"]) == ("one", 2)


@pytest.mark.parametrize("options", [{"prefix": "key-"}, {"where": {"state.status": "flying"}}, {"key": None}])
@pytest.mark.parametrize("is_sent", [True, False])
async def test_a_change_that_an_owner_reads_before_it_knows_the_end_is_sent(
    pair: Pair, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch, *, is_sent: bool
) -> None:
    key = next(pair.keys(2))
    pair.change(key, 1, FLYING)
    known, find = asyncio.Event(), pair.two.routing.end_offsets

    async def end_offsets(state: str, partitions: Collection[int]) -> dict[int, int]:
        await known.wait()
        return await find(state, partitions)

    monkeypatch.setattr(pair.two.routing, "end_offsets", end_offsets)
    pair.share(0, 1)
    pair.two.routing.others, pair.two.routing.known = dict.fromkeys(range(4), AWAY), []  # it learns later
    pair.refresh()
    async with connected(pair.one) as client:
        await client.subscribe("mine", **{name: options[name] or key for name in options}, current=False)
        (relayed,) = await _subscriptions(pair.two)
        pair.share(0, 1)
        pair.two.watching.refresh()
        for instance in (pair.one, pair.two):
            changed = instance.put(key, 2, FLYING)
            if is_sent:
                instance.watching.changed([changed])
        known.set()
        await eventually(lambda: 2 not in relayed.ends)
        answer = (await client.next())["answer"]
        assert (answer["instance"], answer["version"]) == ("two", 2)


@pytest.mark.parametrize("options", [{"prefix": "key-"}, {"where": {"state.status": "flying"}}, {"key": None}])
async def test_a_watch_without_an_owner_begins_at_the_end_of_that_time_at_the_next_one(
    pair: Pair, options: dict[str, Any]
) -> None:
    key = next(pair.keys(2))
    pair.change(key, 1, FLYING)
    pair.one.routing.ends[2] = pair.one.offset + 1
    for instance in (pair.one, pair.two):
        instance.routing.others[2] = PartitionStatus(Role.CATCHING_UP, 0)
        instance.routing.known = []
    pair.refresh()
    async with connected(pair.one) as client:
        await client.subscribe("x", **{name: options[name] or key for name in options}, current=False)
        (stream,) = pair.one.watching._streams  # noqa: SLF001  # nothing is sent when a watch has begun
        await eventually(lambda: stream.subscriptions["x"].ends.get(2) is not None)
        for instance in (pair.one, pair.two):  # the next owner reads it before it is one
            instance.put(key, 2, FLYING)
        pair.share(0, 1)
        pair.refresh()
        answer = (await client.next())["answer"]
        assert (answer["instance"], answer["version"]) == ("two", 2)


@pytest.mark.parametrize("current", [True, False])
async def test_changes_during_a_gap_without_owner_are_sent_afterwards(pair: Pair, *, current: bool) -> None:
    key, other = list(pair.keys(2))[:2]
    async with connected(pair.one) as client:
        await client.subscribe("all", prefix="key-", current=current)
        await eventually(lambda: pair.two.subscriptions() == 1)
        pair.change(key, 1)
        while (await client.next())["type"] != "state":
            continue
        pair.two.routing.others[2] = PartitionStatus(Role.CATCHING_UP, 1)
        pair.two.watching.refresh()
        pair.change(other, 1)
        pair.two.routing.others[2] = OWN
        pair.two.watching.refresh()
        while (message := await client.next())["type"] != "state":
            continue
        assert message["answer"]["key"] == other


@pytest.mark.parametrize("current", [True, False])
async def test_an_instance_that_was_down_resumes_at_its_offset(*, current: bool) -> None:
    pair = Pair()
    async with pair.one.serving(), connected(pair.one) as client:
        async with pair.two.serving():
            pair.share(0, 1)
            pair.refresh()
            for key in KEYS:
                pair.change(key, 1)
            await client.subscribe("all", prefix="key-", current=current)
            assert not current or await _present(client) == dict.fromkeys(KEYS, 1)
            await eventually(lambda: pair.two.subscriptions() == 1)
            pair.change(next(pair.keys(2)), 2)
            assert (await client.next())["answer"]["version"] == 2
            port = int(pair.two.base.rpartition(":")[2])
        key = next(pair.keys(3))
        pair.two.put(key, 2)
        again = Pair(http_port=port).two
        there = pair.two.store()
        entries = zip(KEYS, there.get_many(KEYS), strict=True)
        updates = [Update(key, entry.partition, entry.offset, entry) for key, entry in entries if entry is not None]
        again.store().apply(updates, {number: there.position(number) or 0 for number in range(4)})
        again.routing = pair.two.routing
        async with again.serving():
            message = await client.next()
            assert (message["answer"]["key"], message["answer"]["version"]) == (key, 2)


async def test_instances_authenticate_by_the_peer_token(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.json"
    tokens.write_text(json.dumps({"tokens": [{"name": "reader", "token": "a-secret-of-a-reader"}]}))
    headers = {"Authorization": "Bearer a-secret-of-a-reader"}
    async with Pair(tokens=tokens, peer_token="a-secret-of-all-instances").serving() as pair:  # noqa: S106  # a test's
        key = next(pair.keys(2))
        pair.change(key, 1)
        async with watching(pair.one, f"/v1/states/flights/{key}/watch", **headers) as events:
            assert (await events.next()).id == f"{NOW}.0.1"
        async with connected(pair.two, headers={**headers, "Stateloop-Hop": "1"}) as client:
            await client.send(type="subscribe", id="x", state="flights", key=key, partitions={"2": None})
            assert (await client.next())["problem"]["type"] == "bad_request"


async def _present(client: Client, pending: int = 2) -> dict[str, int]:
    """Read messages until so many instances have sent their present values; return the version of each key."""
    found: dict[str, int] = {}
    while pending:
        message = await client.next()
        pending -= message["type"] == "current"
        if message["type"] == "state":
            assert message["answer"]["version"] >= found.get(message["answer"]["key"], 0)
            found[message["answer"]["key"]] = message["answer"]["version"]
    return found


async def _subscriptions(instance: Instance) -> list[Subscription]:
    """Return the subscriptions at an instance, once it has one."""
    await eventually(lambda: instance.subscriptions() > 0)
    return instance.watching.feed.subscriptions("flights")
