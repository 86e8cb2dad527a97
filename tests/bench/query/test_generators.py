"""The reports of load generators."""

from __future__ import annotations

import pytest

from bench.harness.errors import LoadFailedError
from bench.query.generators import Load, parse_redis, parse_wrk

WRK = """\
Running 20s test @ http://127.0.0.1:8080/
  1 threads and 64 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     2.50ms    1.10ms  40.00ms   90.00%
    Req/Sec    25.10k     1.00k   27.00k    70.00%
  Latency Distribution
     50%    2.40ms
     75%    2.70ms
     90%    3.10ms
     99%  {late}
  502000 requests in {took}, 350.00MB read
Requests/sec:  25100.00
Transfer/sec:     17.50MB
"""
REDIS = """\
"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"
"GET k__rand_int__","41969.00","0.800","0.100","0.700","1.200","5.100","9.000"
"""


@pytest.mark.parametrize(
    ("late", "took", "load"),
    [
        ("5.12ms", "20.00s", Load(502_000, 20.0, 5.12)),
        ("812.00us", "1.00m", Load(502_000, 60.0, 0.812)),
        ("1.50s", "900.00ms", Load(502_000, 0.9, 1500.0)),
    ],
)
def test_wrk_is_understood(late: str, took: str, load: Load) -> None:
    parsed = parse_wrk(WRK.format(late=late, took=took))
    assert parsed.requests == load.requests
    assert parsed.seconds == pytest.approx(load.seconds)
    assert parsed.p99_ms == pytest.approx(load.p99_ms)


def test_very_slow_requests_are_counted() -> None:
    parsed = parse_wrk(
        WRK.format(late="1.00ms", took="20.00s") + "  Socket errors: connect 0, read 0, write 0, timeout 22\n"
    )
    assert parsed.over_2s == 22


@pytest.mark.parametrize(
    "worse",
    ["  Non-2xx or 3xx responses: 3\n", "  Socket errors: connect 0, read 5, write 0, timeout 0\n"],
)
def test_an_answer_that_is_none_fails_the_run(worse: str) -> None:
    with pytest.raises(LoadFailedError, match=worse.strip()):
        parse_wrk(WRK.format(late="1.00ms", took="20.00s") + worse)


def test_an_output_without_figures_is_a_failure() -> None:
    with pytest.raises(LoadFailedError, match="unable to connect"):
        parse_wrk("unable to connect to 127.0.0.1:1 Connection refused")
    with pytest.raises(LoadFailedError, match="Connection refused"):
        parse_redis("Could not connect to Redis at 127.0.0.1:1: Connection refused", 10)


def test_redis_benchmark_is_understood() -> None:
    parsed = parse_redis(REDIS, 41_969)
    assert parsed.rate == pytest.approx(41_969)
    assert parsed.p99_ms == 5.1
    long = REDIS.replace("GET k__rand_int__", "MGET " + "k__rand_int__ " * 100)
    assert parse_redis(long, 10).p99_ms == 5.1
