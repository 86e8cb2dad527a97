"""What proves that a consumer is a member of its group."""

from __future__ import annotations

import pytest

from services.runtime.kafka.membership import FRESH_S, NEVER, GroupMembership
from tests.clock import Clock

PAUSE_S = FRESH_S + 1


def polling() -> tuple[Clock, GroupMembership]:
    """A member that polls, and whose first commit was accepted."""
    clock = Clock(100.0)
    member = GroupMembership(clock)
    member.poll()
    assert member.proven_at == NEVER
    member.begin_commit({0: 1})
    member.end_commit({0: 1}, accepted=True)
    assert member.proven_at == clock.now
    return clock, member


def test_each_poll_is_a_proof_while_there_is_no_pause() -> None:
    clock, member = polling()
    for _ in range(3):
        clock.now += FRESH_S
        member.poll()
        assert member.proven_at == clock.now


def test_after_a_pause_no_poll_is_a_proof_until_the_group_accepts_a_commit_that_began_later() -> None:
    clock, member = polling()
    proven_at = member.proven_at
    member.begin_commit({0: 2})
    clock.now += PAUSE_S
    for _ in range(2):
        member.poll()
    member.end_commit({0: 2}, accepted=True)
    member.poll()
    assert member.proven_at == proven_at, "it began before the pause"
    clock.now += 1
    member.begin_commit({0: 3, 1: 7})
    clock.now += 1
    member.end_commit({0: 3, 1: 7}, accepted=True)
    assert member.proven_at == clock.now - 1
    member.poll()
    assert member.proven_at == clock.now


@pytest.mark.parametrize("accepted", [True, False])
def test_a_poll_proves_no_more_than_the_begin_of_a_commit_that_the_group_leaves_unanswered(*, accepted: bool) -> None:
    clock, member = polling()
    proven_at = clock.now
    for position in range(2, 12):
        member.begin_commit({0: position})
        clock.now += 1
        member.poll()
        assert member.proven_at == proven_at
    for position in range(2, 11):
        member.end_commit({0: position}, accepted=accepted)
    member.poll()
    assert member.proven_at == clock.now - 1, "the last commit began then"
    member.end_commit({0: 11}, accepted=accepted)
    member.poll()
    assert member.proven_at == clock.now


def test_an_answered_commit_delays_no_proof() -> None:
    """A poll serves the answer after its start, so each one may find a commit."""
    clock, member = polling()
    member.begin_commit({0: 1})
    for position in range(2, 12):
        clock.now += FRESH_S
        member.poll()
        member.begin_commit({0: position})
        member.end_commit({0: position - 1}, accepted=True)
        assert member.proven_at == clock.now


def test_a_commit_that_is_answered_late_leaves_the_polls_since_then_as_proofs() -> None:
    clock, member = polling()
    member.begin_commit({0: 2})
    for _ in range(4):
        clock.now += FRESH_S
        member.poll()
    clock.now += 1
    member.end_commit({0: 2}, accepted=True)
    assert member.proven_at == clock.now - 1


def test_a_commit_that_is_refused_proves_nothing() -> None:
    clock, member = polling()
    proven_at = member.proven_at
    clock.now += PAUSE_S
    member.poll()
    member.begin_commit({0: 2})
    assert member.has_pending
    member.end_commit({0: 2}, accepted=False)
    assert not member.has_pending
    member.poll()
    assert member.proven_at == proven_at


def test_the_answer_to_equal_commits_is_that_of_the_oldest() -> None:
    clock, member = polling()
    proven_at = member.proven_at
    member.begin_commit({0: 2})
    clock.now += PAUSE_S
    member.poll()
    member.begin_commit({0: 2})
    assert member.is_pending({0: 2})
    member.end_commit({0: 2}, accepted=True)
    assert member.proven_at == proven_at
    assert member.is_pending({0: 2})
    member.end_commit({0: 2}, accepted=True)
    assert member.proven_at == clock.now


def test_an_answer_to_no_commit_of_it_is_ignored() -> None:
    _, member = polling()
    member.end_commit({5: 2}, accepted=True)
    assert not member.is_pending({5: 2})
