"""Random scripts, and what they observe."""

from __future__ import annotations

import time
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from services.runtime.errors import KafkaRequestError
from services.runtime.kafka.values import BY_KEY
from tests.simulation.kafka.operations import TOPICS, Message, Operation, outcome
from tests.simulation.kafka.reads import (
    REQUESTS,
    TIMES,
    Absent,
    At,
    Committed,
    Describe,
    Ends,
    Follow,
    LookUp,
    ReadAssigned,
    ReadBeyond,
    ReadRange,
)
from tests.simulation.kafka.writes import (
    SETTINGS,
    UNWRITABLE,
    Abort,
    Alter,
    Begin,
    Commit,
    CommitOffset,
    CommitUnwritable,
    Create,
    DeleteRecords,
    Enqueue,
    Grow,
    Recreate,
    Replace,
    Send,
    SendUnwritable,
    create,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.simulation.kafka.worlds import World

LENGTH = 12
"""The greatest number of parts of a script."""
EVERYTHING = (ReadRange(0, 1_000), Describe(), Committed())
EVENTUALLY_S = 30.0
"""The time in which a real broker shows what was written."""
PAUSE_S = 0.02


def run_steps(steps: Sequence[Operation], world: World) -> list[object]:
    """Return what each step returns."""
    create(world, list(TOPICS))
    return [outcome(step, world) for step in steps]


def require_steps(steps: Sequence[Operation], expected: Sequence[object], world: World) -> None:
    """Require that the steps return this; one that reads is repeated until it does."""
    create(world, list(TOPICS))
    for number, (step, wanted) in enumerate(zip(steps, expected, strict=True)):
        found = outcome(step, world)
        deadline = time.monotonic() + EVENTUALLY_S
        while step.is_read and found != wanted and time.monotonic() < deadline:
            time.sleep(PAUSE_S)
            found = outcome(step, world)
        assert found == wanted, f"the last of these steps returned {found}, not {wanted}: {list(steps[: number + 1])}"


def with_ends(script: Sequence[Operation]) -> list[Operation]:
    """Return a script that reads the ends of all partitions after each write, and everything at the end."""
    ends = [[one] if one.is_read else [one, Ends()] for one in script]
    return [*chain.from_iterable(ends), *EVERYTHING]


def abort_all(world: World) -> None:
    """Abort the transactions that a script has left open."""
    for producer in world.transactional.values():
        try:
            producer.abort()
        except KafkaRequestError:
            continue


def scripts() -> st.SearchStrategy[list[Operation]]:
    """Give scripts: parts, each of some operations or a transaction."""
    part = st.one_of(st.lists(st.one_of(writes(), reads()), min_size=1, max_size=3), transactions())
    return st.lists(part, min_size=1, max_size=LENGTH).map(lambda parts: [*chain.from_iterable(parts)])


def transactions() -> st.SearchStrategy[list[Operation]]:
    """Give operations of which most are a transaction."""
    name, topics = st.sampled_from("xy"), st.sampled_from(list(TOPICS))
    message = messages(st.integers(0, 5)).filter(lambda one: one.key is not None)
    ends: list[Callable[[str], Operation]] = [Commit, partial(Commit, offset=3), Abort, Replace]

    def operations(name: str) -> st.SearchStrategy[list[Operation]]:
        written = st.lists(st.one_of(st.builds(Enqueue, st.just(name), topics, message), reads()), max_size=4)
        end = st.sampled_from(ends).map(lambda of: of(name))
        return st.tuples(written, end).map(lambda found: [Begin(name), *found[0], found[1]])

    return name.flatmap(operations)


def messages(second: st.SearchStrategy[int | None]) -> st.SearchStrategy[Message]:
    """Give records."""
    return st.builds(
        Message,
        st.sampled_from([b"a", b"b", b"c", b"", b"a longer key", None]),
        st.sampled_from([b"", b"1", b"2", None]),
        st.sampled_from([0, 1, BY_KEY]),
        second,
        st.sampled_from([(), (("h", b"1"),), (("h", None), ("g", b""), ("h", "text"))]),
    )


def writes() -> st.SearchStrategy[Operation]:
    """Give operations that change a broker."""
    names, topics, some = st.sampled_from("xy"), st.sampled_from(list(TOPICS)), st.integers(0, 6)
    sent = st.lists(messages(st.integers(0, 5)), min_size=1, max_size=4).map(tuple)
    stamped = st.tuples(messages(st.none()))
    with_keys = sent.filter(lambda found: all(one.key is not None for one in found))
    return st.one_of(
        st.builds(Send, st.sampled_from(["created", "appended"]), sent, st.booleans()),
        st.builds(Send, st.sampled_from(["created", "appended"]), stamped, st.booleans()),
        st.builds(Send, st.just("compacted"), with_keys),
        st.builds(SendUnwritable, st.sampled_from(list(UNWRITABLE)), st.booleans()),
        st.builds(Begin, names),
        st.builds(Replace, names, st.booleans()),
        st.builds(Enqueue, names, topics, messages(st.integers(0, 5)).filter(lambda one: one.key is not None)),
        st.builds(Enqueue, names, topics, messages(st.integers(0, 5)).filter(lambda one: one.key is not None)),
        st.builds(Commit, names, st.one_of(st.none(), some)),
        st.builds(Abort, names),
        st.builds(CommitUnwritable, names, st.sampled_from(["too large", "no key", "in the future"])),
        st.builds(DeleteRecords, topics, st.integers(0, 1), some),
        st.builds(Create, st.sampled_from([("x.y",), ("x_y",), ("new", "created"), ("a b", "new")]), st.integers(0, 3)),
        st.builds(Create, st.just(("new",)), st.just(1), st.integers(0, 2), st.sampled_from([None, *SETTINGS])),
        st.builds(Grow, topics, st.integers(2, 4)),
        st.builds(Recreate, topics),
        st.builds(Alter, topics, st.sampled_from(list(SETTINGS))),
        st.builds(
            CommitOffset,
            topics,
            st.sampled_from([(0,), (1,), (0, 1), (5,), (0, 5)]),
            some,
            st.sampled_from(["", "note"]),
        ),
    )


def reads() -> st.SearchStrategy[Operation]:
    """Give operations that read."""
    topics, some, offsets = st.sampled_from(list(TOPICS)), st.integers(0, 6), st.sets(st.integers(0, 6), min_size=1)
    return st.one_of(
        st.builds(ReadRange, some, st.integers(0, 30), st.booleans()),
        st.builds(Follow, some, some),
        st.builds(ReadBeyond, topics, some, st.integers(1, 12), st.booleans()),
        st.builds(ReadAssigned, topics, st.one_of(st.none(), some), st.booleans()),
        st.builds(At, topics, st.integers(0, 1), offsets.map(lambda found: tuple(sorted(found))), st.booleans()),
        st.builds(LookUp, st.sampled_from(TIMES)),
        st.builds(Describe),
        st.builds(Committed),
        st.builds(Absent, st.sampled_from(REQUESTS), st.sampled_from(["absent", "created"])),
    )
