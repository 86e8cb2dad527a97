"""Load generators in C, wrk for HTTP and redis-benchmark for Redis, and the parsers of their reports."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from bench.harness.errors import LoadFailedError, last_line

SCRIPT = Path(__file__).with_name("reads.lua")
CONNECTIONS = 64
BATCH = 100
MILLISECONDS = {"us": 0.001, "ms": 1.0, "s": 1000.0}
CLOSE_S = 60.0


@dataclass(frozen=True)
class Load:
    """The figures of a load generator. NaN for those that it does not report."""

    requests: int
    seconds: float
    p99_ms: float
    over_2s: int = 0
    """Requests that were not answered within two seconds; wrk leaves them out of its percentiles."""

    @property
    def rate(self) -> float:
        """Requests a second."""
        return self.requests / self.seconds


@dataclass(frozen=True)
class Wrk:
    """Asks the query service at `port` for `keys` different keys."""

    port: int
    keys: int

    def gets(self, seconds: float, rate: float | None = None) -> Load:
        """One key a request, as fast as it goes, or at about this rate. Raises LoadFailedError."""
        pause = CONNECTIONS / rate * 1000 if rate else 0
        return self._run(seconds, 0, pause)

    def batches(self, seconds: float) -> Load:
        """Batches of 100. Raises LoadFailedError."""
        return self._run(seconds, BATCH, 0)

    def pages(self, seconds: float) -> Load:
        """Pages of 100 keys, each after a random key. Raises LoadFailedError."""
        return self._run(seconds, -BATCH, 0)

    def _run(self, seconds: float, batch: int, pause_ms: float) -> Load:
        command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds:.0f}s", "--latency", "-s", str(SCRIPT)]
        url = f"http://127.0.0.1:{self.port}/"
        return parse_wrk(_output([*command, url, "--", str(self.keys), str(batch), f"{pause_ms:.0f}"], seconds))


@dataclass(frozen=True)
class RedisBenchmark:
    """Asks Redis at `port` for `keys` different keys. It takes a number of requests, not a rate."""

    port: int
    keys: int

    def gets(self, seconds: float, rate: float | None = None) -> Load:
        """One key a request, as fast as it goes. Raises LoadFailedError."""
        if rate is not None:
            raise LoadFailedError("redis-benchmark", "it asks at no rate")
        return self._run(seconds, ["GET", "k__rand_int__"], tried=20_000)

    def batches(self, seconds: float) -> Load:
        """MGETs of 100 keys. Raises LoadFailedError."""
        return self._run(seconds, ["MGET", *["k__rand_int__"] * BATCH], tried=1_000)

    def _run(self, seconds: float, words: list[str], tried: int) -> Load:
        """A short run gives the number of requests that fill the time."""
        return self._made(max(tried, round(self._made(tried, words).rate * seconds)), words)

    def _made(self, requests: int, words: list[str]) -> Load:
        command = ["redis-benchmark", "-p", str(self.port), "-c", str(CONNECTIONS), "-n", str(requests)]
        return parse_redis(_output([*command, "-r", str(self.keys), "--csv", *words], CLOSE_S), requests)


def parse_wrk(output: str) -> Load:
    """Raises LoadFailedError if a request was refused, or not answered with a key's entry."""
    bad = re.search(r"Non-2xx or 3xx responses: \d+|Socket errors: (?!connect 0, read 0, write 0,).*", output)
    over = re.search(r"Socket errors: .*timeout (\d+)", output)
    done = re.search(r"(\d+) requests in ([\d.]+)(us|ms|s|m)", output)
    late = re.search(r"99%\s+([\d.]+)(us|ms|s)", output)
    if bad or not done or not late:
        raise LoadFailedError("wrk", bad[0] if bad else last_line(output))
    seconds = float(done[2]) * {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}[done[3]]
    return Load(int(done[1]), seconds, float(late[1]) * MILLISECONDS[late[2]], int(over[1]) if over else 0)


def parse_redis(output: str, requests: int) -> Load:
    """Its CSV: the last line has requests a second, and latencies, the 99th of a hundred before the largest."""
    fields = [field.strip('"') for field in last_line(output).rsplit('","', 7)]
    try:
        rate, p99_ms = float(fields[1]), float(fields[6])
    except (IndexError, ValueError) as error:
        raise LoadFailedError("redis-benchmark", last_line(output)) from error
    return Load(requests, requests / rate, p99_ms)


def _output(command: list[str], seconds: float) -> str:
    try:
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=seconds + CLOSE_S,
        )
    except subprocess.TimeoutExpired as error:
        raise LoadFailedError(command[0], f"did not end within {error.timeout:.0f} s") from error
    if done.returncode:
        raise LoadFailedError(command[0], last_line(done.stdout))
    return done.stdout
