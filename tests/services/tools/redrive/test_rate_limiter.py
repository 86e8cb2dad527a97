"""The rate of a redrive."""

from __future__ import annotations

from itertools import pairwise

from services.tools.redrive.rate_limiter import RateLimiter


def test_so_many_a_second_and_no_more_even_after_a_pause() -> None:
    now, began = 0.0, list[float]()

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    pace = RateLimiter(10, lambda: now, sleep)
    for number in range(30):
        if number == 10:
            now += 5
        pace()
        began.append(round(now, 6))
    gaps = [after - before for before, after in pairwise(began)]
    assert min(gaps) >= 0.1 - 1e-6
    assert began[-1] <= 5 + 3
