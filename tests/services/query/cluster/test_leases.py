from __future__ import annotations

from contracts.wire.announcement import Announcement
from services.query.cluster.leases import LeaseTable
from services.query.cluster.membership import InstanceIdentity
from tests.services.query.cluster.world import EPOCH, TIMING

ME = InstanceIdentity("a", "http://a", "a", 1)


def test_a_single_instance_keeps_its_leases_until_it_is_suspended() -> None:
    lease_table, last = LeaseTable(ME, TIMING), 0.0
    lease_table.tick(last)
    lease_table.sent(1, last)
    lease_table.receive(Announcement(instance="a", store="a", run=1, url="http://a", number=1, ts=EPOCH), last)
    while last < 10 * TIMING.lease_s:
        last += TIMING.pause_s / 2
        lease_table.tick(last)
        assert lease_table.is_valid(last)
    assert not lease_table.is_valid(last + TIMING.pause_s), "it was suspended, and other instances may have joined"
    for gap in (TIMING.pause_s, TIMING.pause_s / 2, TIMING.pause_s / 2):
        last += gap
        lease_table.tick(last)
        assert not lease_table.is_valid(last), "an instance that joined meanwhile is still there"
