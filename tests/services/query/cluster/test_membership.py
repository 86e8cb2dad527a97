"""What an instance knows of the others, by their announcements."""

from __future__ import annotations

import pytest

from contracts.wire.announcement import Announcement
from services.query.cluster.membership import InstanceIdentity, Membership
from tests.services.query.cluster.world import EPOCH

SILENCE_S = 5.0


def announced(run: int, number: int, *, leaving: bool = False) -> Announcement:
    return Announcement(instance="b", store="b", run=run, url="http://b", number=number, ts=EPOCH, leaving=leaving)


@pytest.mark.parametrize("late", [announced(2, 7), announced(2, 6), announced(1, 9)])
def test_a_repeated_or_earlier_announcement_changes_nothing(late: Announcement) -> None:
    """A producer that repeats may write one again; an earlier process of the instance has ended."""
    membership = Membership(InstanceIdentity("a", "http://a", "a", 1), SILENCE_S)
    membership.contact = 0.0
    assert membership.receive(announced(2, 7, leaving=True), 1.0) is None
    assert membership.receive(late, 2.0) is None
    assert membership.peers() == [], "it has left"
    assert membership.receive(announced(3, 1), 3.0) is not None
