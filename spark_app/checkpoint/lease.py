"""The lease of a checkpoint: one job at a time uses it, and the next one takes it over when its owner is dead.

The lease is a file in the checkpoint's folder, `stateloop.lease.<number>`; the largest number counts. The owner
rewrites it every few seconds, with a counter. Another job watches it for as long as a lease lasts, by its own clock,
so clocks need not agree: it is refused as soon as the file changes, and creates the next number when it does not.
On the machine of a dead owner it does not wait.

A local file system and HDFS create a file only if it is absent, so one of two jobs gets a number. An object store looks
first and writes later: both may write the number, and the last one counts. There the job pauses and reads the file back
before it starts; a job that wrote even later ends that one's lease with its next renewal. Renewals change only their
own number, so a frozen owner never destroys the lease of its successor.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from pydantic import BaseModel, ConfigDict, ValidationError

from spark_app.checkpoint.owner import JobOwner
from spark_app.errors import CheckpointInUseError, LeaseLostError

LEASE_S = 15.0
"""The duration of a lease after its last renewal."""
RENEW_S = 3.0
WATCH_S = 0.5
SETTLE_S = 5.0
"""The time for which a job waits where two may create one file: longer than a small write takes."""
PREFIX = "stateloop.lease."


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


@dataclass(frozen=True)
class StoredLease:
    """The lease's newest file."""

    number: int
    content: str

    @property
    def owner(self) -> JobOwner | None:
        """The job that wrote the file; None for an incomplete file."""
        try:
            return LeaseFile.model_validate_json(self.content).owner
        except ValidationError:
            return None

    def is_dead_at(self, place: str | None) -> bool:
        """Return whether its owner ran at this place and is dead."""
        return self.owner is not None and self.owner.is_dead_here(place)


@dataclass
class LeaseObservation:
    """The state of another job's lease, observed by this job's clock."""

    first: StoredLease | None = None
    since: float = 0.0

    def is_stale(self, lease: StoredLease, now: float) -> bool:
        """Return whether the lease has run out; False while it may still be renewed."""
        if self.first is None:
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
    clock: Callable[[], float]
    renewed_at: float
    renewals: int = 0
    is_lost: bool = False

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
        """Renew the lease. Raises LeaseLostError, and CheckpointUnreachableError."""
        now, lease = self.clock(), newest(self.files)
        if lease is None or lease.number != self.number or (lease.owner or self.owner).id != self.owner.id:
            raise LeaseLostError(self.files.path, str(lease.owner) if lease else "no other job")
        self.renewals += 1
        self.files.overwrite(_name(self.number), _content(self.owner, self.renewals))
        self.renewed_at = now

    def release(self) -> None:
        """Release the lease, so the next job starts at once. After a lost lease, delete this job's file."""
        lease = newest(self.files)
        if lease is None:
            return
        is_mine = lease.number == self.number and lease.owner is not None and lease.owner.id == self.owner.id
        if is_mine or lease.number > self.number:
            self.files.delete(_name(self.number))


def acquire(
    files: Files, owner: JobOwner, clock: Callable[[], float], sleep: Callable[[float], object]
) -> CheckpointLease:
    """Return the lease, at the latest when a dead owner's has run out. Raises CheckpointInUseError."""
    watch = LeaseObservation()
    while True:
        lease, now = newest(files), clock()
        if lease is not None and not _is_free(lease, watch, owner, now):
            if watch.is_in_use(lease):
                raise CheckpointInUseError(files.path, str(lease.owner))
            sleep(WATCH_S)
            continue
        number = lease.number + 1 if lease else 1
        if not files.create(_name(number), _content(owner, 0)):
            continue
        if not files.is_exclusive:
            sleep(SETTLE_S)
        if files.read(_name(number)) == _content(owner, 0):
            _delete_before(files, number)
            return CheckpointLease(files, owner, number, clock, now)


def take_over(
    files: Files, owner: JobOwner, clock: Callable[[], float], sleep: Callable[[float], object]
) -> CheckpointLease:
    """Return the lease although a job may have it: that job stops its query at its next renewal.

    Waits until the job has stopped, which then deletes its file, or until its lease has run out.
    """
    while True:
        former, now = newest(files), clock()
        number = former.number + 1 if former else 1
        if files.create(_name(number), _content(owner, 0)):
            break
    lease = CheckpointLease(files, owner, number, clock, now)
    since, last = now, former
    while former is not None and (content := files.read(_name(former.number))) is not None:
        if last is None or content != last.content:
            since, last = clock(), StoredLease(former.number, content)
        if clock() - since >= LEASE_S or last.is_dead_at(owner.place):
            files.delete(_name(former.number))
            break
        lease.renew()
        sleep(WATCH_S)
    return lease


def newest(files: Files) -> StoredLease | None:
    """Return the newest lease; None where there is none."""
    numbers = _numbers(files)
    content = files.read(_name(max(numbers))) if numbers else None
    return None if content is None else StoredLease(max(numbers), content)


def _is_free(lease: StoredLease, watch: LeaseObservation, owner: JobOwner, now: float) -> bool:
    return watch.is_stale(lease, now) or lease.is_dead_at(owner.place)


def _numbers(files: Files) -> list[int]:
    suffixes = [name.removeprefix(PREFIX) for name in files.names() if name.startswith(PREFIX)]
    return [int(suffix) for suffix in suffixes if suffix.isdecimal()]


def _delete_before(files: Files, number: int) -> None:
    for older in _numbers(files):
        if older < number:
            files.delete(_name(older))


def _name(number: int) -> str:
    return f"{PREFIX}{number}"


def _content(owner: JobOwner, renewals: int) -> str:
    return LeaseFile(owner=owner, renewals=renewals).model_dump_json()
