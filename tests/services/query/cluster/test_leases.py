from __future__ import annotations

from contracts.wire.announcement import Announcement
from services.query.cluster.leases import Holds
from services.query.cluster.membership import Identity
from tests.services.query.cluster.world import EPOCH, TERMS

ME = Identity("a", "http://a", "a", 1)


def test_alone_it_is_sure_of_what_it_holds_until_it_stands_still() -> None:
    holds, last = Holds(ME, TERMS), 0.0
    holds.tick(last)
    holds.sent(1, last)
    holds.hear(Announcement(instance="a", store="a", run=1, url="http://a", number=1, ts=EPOCH), last)
    while last < 10 * TERMS.lease:
        last += TERMS.pause / 2
        holds.tick(last)
        assert holds.leased(last)
    assert not holds.leased(last + TERMS.pause), "it stands still, and others may have come"
    for gap in (TERMS.pause, TERMS.pause / 2, TERMS.pause / 2):
        last += gap
        holds.tick(last)
        assert not holds.leased(last), "whoever came meanwhile is still there"
