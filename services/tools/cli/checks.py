"""The checks of the doctor: each checks one thing and returns its findings."""

from __future__ import annotations

import asyncio
import socket
import sys
import time
from datetime import UTC
from email.utils import parsedate_to_datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

import aiohttp
from pydantic import ValidationError

from contracts.errors import StateloopError
from services.enrichment.calls.addresses import AddressRefusedError, check
from services.runtime.errors import ForeignTopicsError, KafkaRequestError
from services.runtime.kafka.admin import KafkaAdmin
from services.runtime.kafka.values import NEWEST, Partition
from services.runtime.topic_owners import TopicOwners
from services.tools.broker.jars import up_to_date
from services.tools.broker.java import find_java
from spark_app.checkpoint.generations import ROOT, active
from spark_app.checkpoint.identity import FILE, QUERY_FILES, CheckpointIdentity, identity, parse
from spark_app.errors import LostGenerationError, PartialCheckpointError
from spark_app.query.processor.step import require_packages
from spark_app.raw.query import check_extra
from spark_app.topics.identity import TopicIdentity, identify, identify_topic

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from contracts import Application, Raw
    from services.enrichment.calls.addresses import Network
    from spark_app.checkpoint.generations import Activation
    from spark_app.settings import JobSettings

ANSWER_S = 5.0
CHECKPOINT = "Checkpoint"
OWNERS = "Owners of topics"
DATE_EXCERPT = 100
"""The characters of an invalid date that are reported."""
CLOCK_S = 2.0
"""A difference of clocks that is reported. HTTP names whole seconds."""


class CheckResult(StrEnum):
    """The result of a check."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


class Finding(NamedTuple):
    """One line of the report: the check, its result, and the remedy of a problem."""

    subject: str
    result: CheckResult
    text: str


def ok(subject: str, text: str) -> Finding:
    """Return a finding without a problem."""
    return Finding(subject, CheckResult.OK, text)


def warning(subject: str, text: str) -> Finding:
    """Return a finding that does not stop the loop."""
    return Finding(subject, CheckResult.WARNING, text)


def failed(subject: str, error: object) -> Finding:
    """Return a finding that stops the loop, or a part of it."""
    return Finding(subject, CheckResult.FAILED, str(error))


def runtime(jars: Path) -> Iterator[Finding]:
    """Check Python, Java and the jars."""
    yield ok("Python", sys.version.split()[0])
    try:
        yield ok("Java", str(find_java()))
    except StateloopError as error:
        yield failed("Java", error)
    if up_to_date(jars):
        yield ok("Jars", str(jars))
    else:
        yield failed("Jars", f"{jars} does not have the jars of ivy.xml: run `stateloop jars`, or set STATELOOP_JARS")


def processor(application: Application) -> list[Finding]:
    """Check that the packages for the application's processor are installed, if it has one."""
    if application.processor is None:
        return []
    try:
        require_packages()
    except StateloopError as error:
        return [failed("Processor", error)]
    return [ok("Processor", application.processor.name)]


def topics(settings: JobSettings, application: Application) -> tuple[list[TopicIdentity], list[Finding]]:
    """Check the broker and the application's topics; return the topics that the job reads, and the findings."""
    try:
        identities = identify(settings, application)
    except StateloopError as error:
        return [], [failed("Broker and topics", error)]
    text = ", ".join(f"{topic.name} ({topic.partitions} partitions)" for topic in identities)
    return identities, [ok("Broker and topics", f"{settings.kafka}: {text}")]


def raw_source(settings: JobSettings, application: Application, raw: Raw) -> Finding:
    """Check the topic of a raw source, and that its decoder can run here."""
    subject = f"Raw topic {raw.topic}"
    try:
        check_extra()
        topic = identify_topic(settings, application, raw.topic)
    except StateloopError as error:
        return failed(subject, error)
    return ok(subject, f"{settings.kafka}: {topic.partitions} partitions")


def owners(settings: JobSettings, application: Application) -> list[Finding]:
    """Check that no other application owns the topics that this one writes."""
    unknown = list[str]()
    try:
        TopicOwners(application, KafkaAdmin(settings.client(), "topic-owners"), unknown.append).check()
    except ForeignTopicsError as error:
        return [failed(OWNERS, error)]
    if unknown:
        return [warning(OWNERS, problem) for problem in unknown]
    return [ok(OWNERS, f"no other application owns the outputs of {application.name!r}")]


def broker_clock(settings: JobSettings, application: Application, now: float) -> list[Finding]:
    """Check that the newest record of the snapshots topic is not ahead of this machine's clock (`now`, in seconds)."""
    topic = application.topics.snapshots
    admin = KafkaAdmin(settings.client(), "doctor")
    try:
        count = admin.partition_counts().get(topic, 0)
        records = admin.records({Partition(topic, number): NEWEST for number in range(count)})
    except KafkaRequestError as error:
        return [warning("Clock of the broker", f"not compared: {error.detail}")]
    newest = max((record.timestamp_ms for record in records.values()), default=-1)
    if newest < 0:
        return [ok("Clock of the broker", f"not compared: {topic} is empty")]
    return [_clock("Clock of the broker", max(0.0, newest / 1000 - now))]


class LocalFolder:
    """A folder of text files on this machine, which is read without Spark."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def below(self, name: str) -> LocalFolder:
        """Return the folder of this name in this folder."""
        return LocalFolder(self.path / name)

    def names(self) -> list[str]:
        """Return the names of all files and folders in the folder; none if it does not exist. Raises OSError."""
        return [path.name for path in self.path.iterdir()] if self.path.exists() else []

    def read(self, name: str) -> str | None:
        """Return a file's text; None where there is no such file. Raises OSError."""
        try:
            return (self.path / name).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return None


def checkpoint(settings: JobSettings, application: Application, topics: list[TopicIdentity]) -> list[Finding]:
    """Check that the active generation of the checkpoint, if there is one, belongs to this application and topics."""
    location = urlsplit(settings.checkpoint)
    if location.scheme not in ("", "file"):
        return [warning(CHECKPOINT, f"{settings.checkpoint} is not checked here: the job checks it at its start")]
    root = LocalFolder(Path(location.path))
    mine = identity(application, topics, settings.state_partitions or topics[0].partitions)
    try:
        activation = active(root)
        folder = root.below(activation.generation if activation else ROOT)
        return [_generation(folder, mine, activation)]
    except OSError as error:
        return [failed(CHECKPOINT, f"{error.filename}: {error.strerror}")]
    except ValidationError as error:
        return [failed(CHECKPOINT, f"{root.path}: an activation is not readable: {error.errors()[0]['msg']}")]


def _generation(folder: LocalFolder, mine: CheckpointIdentity, activation: Activation | None) -> Finding:
    """Check what the job continues from. Raises OSError."""
    path, content = folder.path, folder.read(FILE)
    if content is None:
        if activation:
            return failed(CHECKPOINT, LostGenerationError(str(path)))
        if left := QUERY_FILES.intersection(folder.names()):
            return failed(CHECKPOINT, PartialCheckpointError(str(path), left))
        return ok(CHECKPOINT, f"{path} does not exist yet: the job creates it")
    try:
        stored = parse(content, str(path))
    except StateloopError as error:
        return failed(CHECKPOINT, error)
    if differences := mine.differences(stored.identity):
        return failed(CHECKPOINT, f"{path} does not fit: {'; '.join(differences)}")
    return ok(CHECKPOINT, f"{path}, epoch {activation.epoch if activation else stored.epoch}")


async def apis(urls: Mapping[str, str], allowed: Collection[Network]) -> list[Finding]:
    """Check that each API may be called and responds, with any status, and that its clock agrees with this one."""
    timeout = aiohttp.ClientTimeout(total=ANSWER_S)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        results = await asyncio.gather(*(_api(session, name, url, allowed) for name, url in urls.items()))
    return [finding for findings in results for finding in findings]


async def _api(session: aiohttp.ClientSession, name: str, url: str, allowed: Collection[Network]) -> list[Finding]:
    subject, parts = f"API {name}", urlsplit(url)
    port = parts.port or {"http": 80, "https": 443}[parts.scheme]
    try:
        resolved = await asyncio.get_running_loop().getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)
        for *_, address in resolved:
            check(str(address[0]), allowed)
        async with session.get(url, allow_redirects=False) as response:
            date, status = response.headers.get("Date"), response.status
    except AddressRefusedError as error:
        return [failed(subject, error)]
    except (OSError, ValueError, aiohttp.ClientError) as error:  # also a timeout, or a name that has no encoding
        return [failed(subject, f"{url} does not respond: {str(error) or type(error).__name__}")]
    findings = [ok(subject, f"{url} responds with status {status}")]
    if date is not None:
        findings.append(_api_clock(f"Clock of API {name}", date))
    return findings


def _api_clock(subject: str, date: str) -> Finding:
    """Compare the Date header of a response. One with the zone -0000 is in UTC (RFC 5322, 3.3)."""
    try:
        now = parsedate_to_datetime(date)
        now = now if now.tzinfo else now.replace(tzinfo=UTC)
        return _clock(subject, abs(now.timestamp() - time.time()))
    except (ValueError, OverflowError):
        return warning(subject, f"not compared: its header Date is {date[:DATE_EXCERPT]!r}")


def _clock(subject: str, difference_s: float) -> Finding:
    if difference_s <= CLOCK_S:
        return ok(subject, "agrees with this machine's clock")
    return warning(subject, f"differs from this machine's clock by {difference_s:.0f} s: synchronise both by NTP")
