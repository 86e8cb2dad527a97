"""The faults: what each does to a running loop, or the tests that prove it where a loop is of no use."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
import zipfile
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from tests.e2e.launched import CHECKOUT
from tests.faults import api, spoiled
from tests.faults.application import app
from tests.faults.load import USUAL, Load, Sent, Traffic
from tests.faults.stage import Needs, PersonNeededError, Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    Inject = Callable[[Stage, Load], AbstractContextManager[object]]

PAUSE_S, STALL_S, REFUSAL_S = 60.0, 120.0, 120.0
BURST = 20_000
SLOW_CLOCK = timedelta(hours=2)
"""Of devices, so that no event is ahead of a system clock that is set back by an hour."""
ROUNDS, BETWEEN_S = 4, 10.0
WORKERS = ("worker-1", "worker-2")


@dataclass(frozen=True)
class Fault:
    """A fault of the list, and how it is run: in a loop, or by `tests`."""

    number: int
    title: str
    inject: Inject = lambda _stage, _load: nullcontext()
    hold_s: float = 8.0
    spoil: spoiled.Spoil = spoiled.unchanged
    hot: float = 0.0
    behind: timedelta = timedelta()
    traffic: Traffic = USUAL
    needs: Needs = None
    tests: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The number and the title, which no other fault has."""
        return f"{self.number} {self.title}"


def signalled(number: int, *parts: str) -> Inject:
    """Send a signal to parts."""

    @contextmanager
    def inject(stage: Stage, _: Load) -> Iterator[None]:
        for part in parts:
            stage.signal(part, number)
        yield

    return inject


def paused(*parts: str) -> Inject:
    """Suspend parts while the fault lasts."""

    @contextmanager
    def inject(stage: Stage, _: Load) -> Iterator[None]:
        for part in parts:
            stage.signal(part, signal.SIGSTOP)
        try:
            yield
        finally:
            for part in parts:
                stage.signal(part, signal.SIGCONT)

    return inject


def api_answers(respond: Callable[[api.Handler, str], None]) -> Inject:
    """The API behaves in another way."""
    return lambda stage, _: stage.api.answers(respond)


@contextmanager
def burst(stage: Stage, load: Load) -> Iterator[None]:
    """Send an event of each of many new meters."""
    for number in range(BURST):
        stage.sender.send(load.bare(f"{load.run}/{load.seed}/burst-{number}"))
    stage.sender.flush()
    yield


@contextmanager
def forged_feedback(stage: Stage, load: Load) -> Iterator[None]:
    """Write answers of an unknown enrichment, under the key of another device, and of an old version."""
    yield
    for name in list(load.meters):
        answer = {
            "device_id": name,
            "first_seen": load.began,
            "enrichment": "owner",
            "version": 1,
            "status": "result",
            "ts": datetime.now(UTC).isoformat(),
            "fingerprint": "forged",
            "result": {"owner": {"name": "forged"}},
        }
        unknown = answer | {"enrichment": "nobody", "result": {"nobody": {"name": "forged"}}}
        stage.sender.send(Sent(name.encode(), json.dumps(answer).encode()), app.topics.feedback)
        for key, value in ((name.encode(), unknown), (b"another", answer)):
            stage.sender.send(Sent(key, json.dumps(value).encode(), is_refused=True), app.topics.feedback)


@contextmanager
def late_feedback(stage: Stage, load: Load) -> Iterator[None]:
    """Write the answers of this run again, after newer ones."""
    yield
    for key, value in list(stage.topics.read().results):
        if json.loads(value)["device_id"] in load.meters:
            stage.sender.send(Sent(key, value), app.topics.feedback)


@contextmanager
def second_job(stage: Stage, _: Load) -> Iterator[None]:
    """Start another job on the checkpoint: it must refuse to run."""
    path = f"/proc/{stage.launched.runs('job')}/environ"
    with open(path, "rb") as file:  # noqa: PTH123  # no file of a folder
        entries = [entry.decode().partition("=") for entry in file.read().split(b"\0") if entry]
    environment = {name: value for name, _, value in entries} | {"STATELOOP_HTTP_PORT": "0"}
    command = [sys.executable, "-m", "spark_app"]
    with (stage.folder / "second-job.log").open("ab") as log:
        process = subprocess.Popen(command, cwd=CHECKOUT, env=environment, stdout=log, stderr=log)
        try:
            code = process.wait(REFUSAL_S)
        except subprocess.TimeoutExpired:
            process.kill()
            raise PersonNeededError("two jobs run on one checkpoint") from None
    if code == 0:
        raise PersonNeededError("the second job did not refuse the checkpoint")
    yield


@contextmanager
def rolling_restart(stage: Stage, _: Load) -> Iterator[None]:
    """Stop the workers in turn: the group rebalances each time."""
    for number in range(ROUNDS):
        stage.signal(WORKERS[number % len(WORKERS)], signal.SIGTERM)
        time.sleep(BETWEEN_S)
    yield


@contextmanager
def full_disk(stage: Stage, _: Load) -> Iterator[None]:
    """Fill the file system of the checkpoint and of the store of the query service."""
    filler = stage.folder / "small" / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while file.write(bytes(1 << 16)):
                pass
        except OSError:
            pass
    try:
        yield
    finally:
        filler.unlink()


def clock_ahead(seconds: int) -> Inject:
    """Set the clock of all parts, and back when the fault ends."""
    return lambda stage, _: stage.clock.ahead(seconds)


def low_memory(part: str) -> Inject:
    """Allow a part no more memory than it has."""

    @contextmanager
    def inject(stage: Stage, _: Load) -> Iterator[None]:
        resource.prlimit(stage.launched.runs(part), resource.RLIMIT_AS, (1 << 20, 1 << 20))
        yield

    return inject


def damaged(part: str, files: Callable[[Path], list[Path]], damage: Callable[[Path, Load], None]) -> Inject:
    """Damage files of a part that was killed, as soon as there are some."""

    @contextmanager
    def inject(stage: Stage, load: Load) -> Iterator[None]:
        stage.wait_for("files to damage", lambda: files(stage.folder))
        with stage.without(part):
            for path in files(stage.folder):
                damage(path, load)
        yield

    return inject


def store(folder: Path) -> list[Path]:
    """Return the files of the store of the query service."""
    return [*folder.glob("query/*/data.mdb")]


def changelogs(folder: Path) -> list[Path]:
    """Return the changelogs of the last committed batch, which the next start reads."""
    commits = [int(path.name) for path in folder.glob("checkpoint/commits/*") if path.name.isdigit()]
    return [*folder.glob(f"checkpoint/state/*/*/{max(commits, default=-1) + 1}_*.changelog")]


def whole_states(folder: Path) -> list[Path]:
    """Return the zip file of the last whole state of each partition, which the next start reads."""
    return [found[-1] for found in _by_partition(folder)]


def sst_files(folder: Path) -> list[Path]:
    """Return the SST files that the last whole state of each partition does not share with the one before.

    Where each whole state has a damaged file, a person has to rebuild the state, or to restore a savepoint.
    """
    return [
        path
        for found in _by_partition(folder)
        for own in [_sst_names(found[-1]).difference(*map(_sst_names, found[-2:-1]))]
        for path in found[-1].parent.glob("**/*.sst")
        if path.name in own
    ]


def _by_partition(folder: Path) -> list[list[Path]]:
    """Return the zip files of the whole states of each partition that has one, oldest first."""
    each = [partition.glob("*.zip") for partition in folder.glob("checkpoint/state/*/*")]
    found = [sorted(paths, key=lambda path: int(path.name.partition("_")[0])) for paths in each]
    return [paths for paths in found if paths]


def _sst_names(whole: Path) -> set[str]:
    """Return the names of the SST files of a whole state; none of one that an earlier fault has damaged."""
    try:
        with zipfile.ZipFile(whole) as archive:
            files = json.loads(archive.read("metadata").splitlines()[1])["sstFiles"]
    except zipfile.BadZipFile:
        return set()
    return {file["dfsSstFileName"] for file in files}


def flip(path: Path, load: Load) -> None:
    """Flip one bit in a page that is not empty."""
    content = bytearray(path.read_bytes())
    place = load.random.choice([number for number in range(0, len(content), 64) if content[number]])
    content[place] ^= 1 << load.random.randrange(8)
    path.write_bytes(content)


def cut(path: Path, _: Load) -> None:
    """Cut a file in half."""
    os.truncate(path, path.stat().st_size // 2)


CALLS = "tests/services/enrichment/calls"
FAULTS = (
    Fault(0, "none"),
    Fault(1, "device clocks 2 h and 10 years ahead, 10 years behind", spoil=spoiled.wrong_clocks),
    Fault(2, "duplicates, twice and 100 times", spoil=spoiled.duplicates),
    Fault(3, "events reordered", spoil=spoiled.reordered),
    Fault(4, "late events", spoil=spoiled.late),
    Fault(4, "late feedback", late_feedback),
    Fault(5, "hostile JSON", spoil=spoiled.hostile_json),
    Fault(5, "hostile JSON, all cases", tests=("tests/spark_app/query/test_decode.py",)),
    Fault(6, "records of 0.3, 0.9 and 10 MB", spoil=spoiled.oversized),
    Fault(7, "tombstones, null keys, empty values", spoil=spoiled.without_key_or_value),
    Fault(8, "a key with half of the traffic", hot=0.5),
    Fault(9, f"a burst of {BURST:,} keys", burst),
    Fault(10, "forged feedback", forged_feedback),
    Fault(11, "the API takes 5 s", api_answers(api.is_slow), 15),
    Fault(12, "the API hangs", lambda stage, _: stage.api.hangs(), 20),
    Fault(13, "the API closes each connection", api_answers(api.closes)),
    Fault(13, "the API's name is not found", tests=(f"{CALLS}/test_resolver.py",)),
    Fault(14, "the API resets connections in the body", api_answers(api.resets_in_body)),
    Fault(15, "the API answers 5xx", api_answers(api.fails)),
    Fault(16, "the API answers 429, with and without Retry-After", api_answers(api.limits_rate)),
    Fault(17, "the API answers 200 with garbage", api_answers(api.garbles)),
    Fault(18, "endless bodies and gzip bombs", api_answers(api.has_no_end)),
    Fault(19, "redirects to a private address", api_answers(api.redirects_inwards)),
    Fault(19, "DNS rebinding", tests=(f"{CALLS}/test_addresses.py", f"{CALLS}/test_transport.py")),
    Fault(20, "certificates of another host, and expired", tests=(f"{CALLS}/test_transport.py",)),
    Fault(21, "enrichments that would trigger themselves, or (22) each other", tests=(
        "tests/contracts/model/test_application.py", "tests/services/enrichment/test_any_graph.py")),
    Fault(23, f"no feedback for {STALL_S:.0f} s", paused(*WORKERS), STALL_S),
    Fault(24, "kill -9 of the job", signalled(signal.SIGKILL, "job")),
    Fault(25, "kill -9 of a worker", signalled(signal.SIGKILL, "worker-1")),
    Fault(26, "kill -9 of the query service", signalled(signal.SIGKILL, "query")),
    Fault(27, f"SIGSTOP of the job for {PAUSE_S:.0f} s", paused("job"), PAUSE_S),
    Fault(27, f"SIGSTOP of a worker for {PAUSE_S:.0f} s", paused("worker-1"), PAUSE_S),
    Fault(27, f"SIGSTOP of the query service for {PAUSE_S:.0f} s", paused("query"), PAUSE_S),
    Fault(28, "SIGTERM of job, workers and query service", signalled(signal.SIGTERM, "job", *WORKERS, "query")),
    Fault(29, "a second job on the checkpoint", second_job),
    Fault(30, f"a worker restarted every {BETWEEN_S:.0f} s", rolling_restart),
    Fault(31, "kill -9 of the broker", signalled(signal.SIGKILL, "broker")),
    Fault(32, f"SIGSTOP of the broker for {PAUSE_S:.0f} s", paused("broker"), PAUSE_S),
    Fault(32, "broker at 100 ms and 3 Mbit/s", lambda stage, _: stage.link.slow(), PAUSE_S, needs="link"),
    Fault(33, "a topic deleted and made again, offsets cut by retention", tests=(
        "tests/services/runtime/test_topic_check.py", "tests/services/query/ingest/test_kafka_ingestion.py",
        "tests/services/enrichment/test_watched.py")),
    Fault(34, "partitions added", tests=("tests/e2e/test_partitions.py",)),
    Fault(34, "credentials refused", tests=("tests/security/test_parts.py",)),
    Fault(35, "no space for checkpoint and store", full_disk, 20, needs="small disk"),
    Fault(36, "the system clock an hour ahead", clock_ahead(3600), 20, behind=SLOW_CLOCK, needs="clock"),
    Fault(36, "the system clock an hour back", clock_ahead(-3600), 20, behind=SLOW_CLOCK, needs="clock"),
    Fault(36, "memory limit of a worker", low_memory("worker-1")),
    Fault(36, "a flipped bit in the store", damaged("query", store, flip)),
    Fault(36, "a store cut in half", damaged("query", store, cut)),
    Fault(36, "a flipped bit in a changelog", damaged("job", changelogs, flip)),
    Fault(36, "a flipped bit in an SST file", damaged("job", sst_files, flip)),
    Fault(36, "a flipped bit in the zip of a whole state", damaged("job", whole_states, flip)),
    Fault(36, "a changelog cut in half", damaged("job", changelogs, cut)),
    Fault(36, "the zip of a whole state cut in half", damaged("job", whole_states, cut)),
)  # fmt: skip
