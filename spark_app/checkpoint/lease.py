"""The lease of a checkpoint: one job at a time uses it, and the next one takes it over when its owner is dead.

The lease is a file in the checkpoint's folder, `stateloop.lease.<number>`; the largest number counts. The owner
rewrites it every few seconds, with a counter. Another job watches it for as long as a lease lasts, by its own clock,
so clocks need not agree: it is refused as soon as the file changes, and creates the next number when it does not.
On the machine of a dead owner it does not wait.

Why two jobs never publish at the same time, however late a renewal is. A renewal reads the clock, writes the counter,
and then finds no larger number; only then its owner publishes, until a lease after that reading. A successor first
creates the larger number, and then reads the counter. So each renewal that succeeds wrote before the successor reads:

- The successor reads the counter that it has watched for a whole lease: the last renewal began before that.
- It reads another counter, or half a file: it waits for a lease after the creation, before which all renewals began
  that succeed. The former owner's next renewal fails, and it deletes its file when it has stopped, which ends the wait.
- It waits for every older number, not only for the last one: the job of that may have died while it waited itself. No
  file is deleted before such a wait ends. Where the last one was not renewed for a lease, the older were not either.
- Numbers only grow, since a released file stays: a job that was frozen while a successor came and ended finds it too.

The clocks must run at the same speed, and a listing must show each file that was created before it: NFS with attribute
caches breaks that. A local file system and HDFS create a file only if it is absent, so one of two jobs gets a number.
An object store looks first and writes later: both may write the number, and the last one counts. There the job pauses
and reads the file back before it starts; a job that wrote even later ends that one's lease with its next renewal.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Protocol

from pydantic import BaseModel, ConfigDict, ValidationError

from spark_app.checkpoint.owner import JobOwner
from spark_app.errors import CheckpointInUseError, CheckpointUnreachableError, LeaseLostError

LEASE_S = 15.0
"""The duration of a lease after its last renewal."""
RENEW_S = 3.0
WATCH_S = 0.5
SETTLE_S = LEASE_S
"""The time for which a job waits where two may create one file. In it a lease of the other one ends."""
LOOKS = 20
"""How often a job looks for the newest lease while the file that a listing has is not there."""
PREFIX = "stateloop.lease."
Clock = Callable[[], float]
Sleep = Callable[[float], object]


class Files(Protocol):
    """The checkpoint's folder."""

    @property
    def path(self) -> str:
        """The name for messages."""

    @property
    def is_exclusive(self) -> bool:
        """Whether `create` is atomic."""

    def names(self) -> list[str]:
        """Return the names of all files."""

    def read(self, name: str) -> str | None:
        """Return a file's content; None where there is none."""

    def create(self, name: str, content: str) -> bool:
        """Write a file unless there is one; return whether it was written."""

    def overwrite(self, name: str, content: str) -> None:
        """Write a file in place."""

    def delete(self, name: str) -> None:
        """Delete a file."""


class LeaseFile(BaseModel):
    """The content of the lease's file."""

    model_config = ConfigDict(frozen=True)

    owner: JobOwner
    renewals: int
    is_released: bool = False


@dataclass(frozen=True)
class StoredLease:
    """A file of the lease."""

    number: int
    content: str

    @property
    def file(self) -> LeaseFile | None:
        """Its content, parsed; None for an incomplete file."""
        try:
            return LeaseFile.model_validate_json(self.content)
        except ValidationError:
            return None

    @property
    def owner(self) -> JobOwner | None:
        """The job that wrote the file; None for an incomplete file."""
        file = self.file
        return file.owner if file else None

    def has_ended_at(self, place: str | None) -> bool:
        """Return whether its owner has released it, or ran at this place and is dead."""
        file = self.file
        return file is not None and (file.is_released or file.owner.is_dead_here(place))


@dataclass
class LeaseObservation:
    """The state of another job's lease, observed by this job's clock."""

    first: StoredLease | None = None
    since: float = 0.0

    def is_stale(self, lease: StoredLease, now: float) -> bool:
        """Return whether the lease was not renewed for as long as it lasts. Another half file starts anew."""
        if self.first is None or (lease != self.first and lease.owner is None):
            self.first, self.since = lease, now
        return lease == self.first and now - self.since >= LEASE_S

    def is_in_use(self, lease: StoredLease) -> bool:
        """Return whether an owner has written since the first look."""
        return self.first is not None and lease != self.first and lease.owner is not None


@dataclass
class CheckpointLease:
    """The right of this job to use the checkpoint. `clock` is monotonic, in seconds."""

    files: Files
    owner: JobOwner
    number: int
    clock: Clock
    renewed_at: float
    """When the last renewal that succeeded began to write."""
    is_lost: bool = False
    renewals: Iterator[int] = field(default_factory=partial(count, 1))
    """The next counters. Threads may renew at the same time, and no two write the same one."""

    def is_overdue(self) -> bool:
        """Return whether another job may have taken the lease over."""
        return self.clock() - self.renewed_at >= LEASE_S

    def problem(self) -> str | None:
        """Return why this job must not use the checkpoint now; None while it may."""
        if self.is_lost:
            return "another job has the lease of the checkpoint"
        if self.is_overdue():
            since = self.clock() - self.renewed_at
            missed = f"was not renewed for {since:.0f} s, and lasts {LEASE_S:.0f} s"
            return (
                f"the lease of the checkpoint {missed}: this machine stood still, or the checkpoint's file system did"
            )
        return None

    def renew(self) -> None:
        """Renew the lease, late or not. Raises LeaseLostError, and CheckpointUnreachableError."""
        name = _name(self.number)
        content = self.files.read(name)
        self._require_own(newest(self.files) if content is None else StoredLease(self.number, content))
        began = self.clock()
        self.files.overwrite(name, _content(self.owner, next(self.renewals)))
        self.require_newest()
        self.renewed_at = began

    def require_newest(self) -> None:
        """Raise LeaseLostError if another job has a later lease, or CheckpointUnreachableError. It writes nothing."""
        self._require_own(newest(self.files))

    def _require_own(self, lease: StoredLease | None) -> None:
        if lease is None or lease.number != self.number or (lease.owner or self.owner).id != self.owner.id:
            raise LeaseLostError(self.files.path, str(lease.owner) if lease else "no other job")

    def release(self) -> None:
        """Release the lease, so the next job starts at once. After a lost lease, delete this job's file."""
        lease = newest(self.files)
        if lease is not None and lease.number > self.number:
            self.files.delete(_name(self.number))
        elif lease is not None and lease.number == self.number and lease.owner and lease.owner.id == self.owner.id:
            self.files.overwrite(_name(self.number), _content(self.owner, next(self.renewals), is_released=True))


def acquire(files: Files, owner: JobOwner, clock: Clock = time.monotonic, sleep: Sleep = time.sleep) -> CheckpointLease:
    """Return the lease, at the latest when a dead owner's has run out.

    Raises CheckpointInUseError, and LeaseLostError when another job takes it over meanwhile.
    """
    watch = LeaseObservation()
    while True:
        former = newest(files)
        if former is None or former.has_ended_at(owner.place) or watch.is_stale(former, clock()):
            if lease := _succeed(files, owner, former, watch, clock, sleep):
                return lease
        elif watch.is_in_use(former):
            raise CheckpointInUseError(files.path, str(former.owner))
        else:
            sleep(WATCH_S)


def take_over(
    files: Files, owner: JobOwner, clock: Clock = time.monotonic, sleep: Sleep = time.sleep
) -> CheckpointLease:
    """Return the lease although a job may have it: that job stops its query at its next renewal.

    Waits until the job has stopped, which then deletes its file, or until its lease has run out.
    """
    while True:
        if lease := _succeed(files, owner, newest(files), LeaseObservation(), clock, sleep):
            return lease


def _succeed(  # noqa: PLR0913, PLR0917  # as `acquire`, after whom and since when
    files: Files,
    owner: JobOwner,
    former: StoredLease | None,
    watch: LeaseObservation,
    clock: Clock,
    sleep: Sleep,
) -> CheckpointLease | None:
    """Create the number after a lease, and wait until no owner before publishes; None if another job was first.

    Raises LeaseLostError when another job succeeds this one meanwhile.
    """
    number = former.number + 1 if former else 1
    lease = CheckpointLease(files, owner, number, clock, clock())
    if not files.create(_name(number), _content(owner, 0)):
        return None
    created = clock()
    if not files.is_exclusive:
        sleep(SETTLE_S)
    if files.read(_name(number)) != _content(owner, 0):
        return None
    while clock() - created < LEASE_S:
        older = _before(files, number)
        if all(present.has_ended_at(owner.place) for present in older):
            break
        present = older[-1]
        if present.number == number - 1 and present.owner is not None and watch.is_stale(present, clock()):
            break
        lease.renew()
        sleep(WATCH_S)
    lease.renew()
    _delete_before(files, number)
    return lease


def newest(files: Files) -> StoredLease | None:
    """Return the newest lease; None where there is none.

    Raises CheckpointUnreachableError where a listing has a file that cannot be opened.
    """
    for _ in range(LOOKS):
        numbers = _numbers(files)
        if not numbers:
            return None
        content = files.read(_name(max(numbers)))
        if content is not None:  # or else a successor has deleted it meanwhile
            return StoredLease(max(numbers), content)
    raise CheckpointUnreachableError(files.path, "a listing has a lease that is not there")


def _numbers(files: Files) -> list[int]:
    suffixes = [name.removeprefix(PREFIX) for name in files.names() if name.startswith(PREFIX)]
    return [int(suffix) for suffix in suffixes if suffix.isdecimal()]


def _before(files: Files, number: int) -> list[StoredLease]:
    """Return the older leases that are there, in their order."""
    read = ((older, files.read(_name(older))) for older in sorted(_numbers(files)) if older < number)
    return [StoredLease(older, content) for older, content in read if content is not None]


def _delete_before(files: Files, number: int) -> None:
    for older in _numbers(files):
        if older < number:
            files.delete(_name(older))


def _name(number: int) -> str:
    return f"{PREFIX}{number}"


def _content(owner: JobOwner, renewals: int, *, is_released: bool = False) -> str:
    return LeaseFile(owner=owner, renewals=renewals, is_released=is_released).model_dump_json()
