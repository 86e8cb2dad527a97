from __future__ import annotations

from bench.enrichment.quota import Quota


def test_no_more_than_the_quota_and_a_little_at_once() -> None:
    quota = Quota(100)
    assert sum(quota.take(50.0) for _ in range(100)) == 10
    assert sum(quota.take(50.0625) for _ in range(100)) == 6
    assert sum(quota.take(51 + step / 200) for step in range(200)) in range(105, 111)
