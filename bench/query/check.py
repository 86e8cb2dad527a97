"""Whether a service answers what is on the topic: each key that was updated, many that were not, nothing earlier."""

import time
from collections.abc import Callable, Mapping
from multiprocessing.synchronize import Event as Flag
from random import Random

from bench.harness.results import OracleReport
from bench.query.records import FIRST, checked, key
from bench.query.store_clients import StoreClient

BATCH = 100
OTHERS = 20_000
PAUSE_S = 0.01
PATIENCE_S = 20.0


def watching(knock: Callable[[int], StoreClient], port: int, keys: int, stop: Flag) -> OracleReport:
    """Read keys while others load the service, some of them often, and check that none goes back."""
    store_client = knock(port)
    report = OracleReport(events=0, given="answers", gives="version of its key, never an earlier one")
    random, newest = Random(3), dict[int, int]()  # noqa: S311  # a load keeps no secret
    often = [random.randrange(keys) for _ in range(BATCH)]
    while not stop.is_set():
        number = random.choice(often) if random.random() < 0.5 else random.randrange(keys)  # noqa: PLR2004
        answer = store_client.read(key(number))
        version = checked(number, answer or b"")
        report.events += 1
        report.snapshots += 1
        if version is None or version < newest.get(number, FIRST):
            report.wrong += 1
            report.example = report.example or f"{key(number)} after {newest.get(number)}: {(answer or b'')[:200]!r}"
        newest[number] = max(version or 0, newest.get(number, 0))
        time.sleep(PAUSE_S)
    store_client.close()
    return report


def final(store_client: StoreClient, keys: int, versions: Mapping[int, int]) -> OracleReport:
    """Check that each updated key, and some others, have their last version, after all writes."""
    random = Random(4)  # noqa: S311  # a load keeps no secret
    wanted = {random.randrange(keys): FIRST for _ in range(min(OTHERS, keys))} | dict(versions)
    wanted = {number: versions.get(number, FIRST) for number in wanted}
    report = OracleReport(events=len(wanted), given="keys", gives="answer with the last version")
    numbers, deadline = list(wanted), time.monotonic() + PATIENCE_S
    for at in range(0, len(numbers), BATCH):
        some = numbers[at : at + BATCH]
        expected = [wanted[number] for number in some]
        while (answered := _versions(store_client, some)) != expected and time.monotonic() < deadline:
            time.sleep(PAUSE_S)
        report.snapshots += len(answered)
        for number, version in zip(some, answered, strict=True):
            report.missing += version is None
            report.wrong += version not in (None, wanted[number])
            if version != wanted[number]:
                report.example = report.example or f"{key(number)} is {version}, not {wanted[number]}"
    return report


def _versions(store_client: StoreClient, numbers: list[int]) -> list[int | None]:
    answers = store_client.read_many([key(number) for number in numbers])
    return [checked(number, answer) for number, answer in zip(numbers, answers, strict=True)]
