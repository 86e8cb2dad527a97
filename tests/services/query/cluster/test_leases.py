from __future__ import annotations

import pytest

from contracts.wire.announcement import AnnouncedPart, AnnouncedState, Announcement
from services.query.cluster.leases import LeaseTable, Replica
from services.query.cluster.membership import InstanceIdentity
from services.query.store import StatePartition
from tests.services.query.cluster.world import EPOCH, TIMING

ME = InstanceIdentity("a", "http://a", "a", 1)
PARTITION = StatePartition("flights", 0)


def read_back(lease_table: LeaseTable, number: int, at: float) -> None:
    """Send an announcement of this instance, and read it back."""
    lease_table.sent(number, at)
    lease_table.receive(Announcement(instance="a", store="a", run=1, url="http://a", number=number, ts=EPOCH), at)


def test_a_single_instance_keeps_its_leases_until_it_is_suspended() -> None:
    lease_table, last = LeaseTable(ME, TIMING), 0.0
    lease_table.tick(last)
    read_back(lease_table, 1, last)
    while last < 10 * TIMING.lease_s:
        last += TIMING.pause_s / 2
        lease_table.tick(last)
        assert lease_table.is_valid(last)
    assert not lease_table.is_valid(last + TIMING.pause_s), "it was suspended, and other instances may have joined"
    for gap in (TIMING.pause_s, TIMING.pause_s / 2, TIMING.pause_s / 2):
        last += gap
        lease_table.tick(last)
        assert not lease_table.is_valid(last), "an instance that joined meanwhile is still there"


@pytest.mark.parametrize(
    ("is_confirmed", "later_s", "epoch", "keeps"),
    [
        (True, 0.0, 1, True),
        (True, 0.0, 2, False),
        (True, TIMING.lease_s, 1, False),
        (False, 0.0, 1, False),
    ],
)
def test_of_two_leases_that_of_the_greater_epoch_stays_or_of_one_epoch_the_one_that_is_confirmed(
    *, is_confirmed: bool, later_s: float, epoch: int, keeps: bool
) -> None:
    lease_table = LeaseTable(ME, TIMING)
    read_back(lease_table, 1, 0.0)
    assert lease_table.update({PARTITION: Replica(assigned=True, ready=True)}, 0.0)
    if is_confirmed:
        read_back(lease_table, 2, 0.0)
    claimed = AnnouncedState(watermark=0, parts=(AnnouncedPart(partition=0, ready=True, held=True, term=epoch),))
    other = Announcement(
        instance="b", store="b", run=1, url="http://b", number=1, ts=EPOCH, states={"flights": claimed}
    )
    lease_table.receive(other, later_s)
    assert (PARTITION in lease_table.leases) == keeps
