"""The announcements of the query instances to each other: about once a second, and at each change."""

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from contracts.wire import Wire


class AnnouncedPart(BaseModel):
    """One partition of a state on the instance."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    partition: int = Field(ge=0)
    assigned: bool = False
    """Whether the group assigned it to this instance; otherwise the instance is a replica."""
    ready: bool = False
    """Whether it has read all that the topic had when it began to follow."""
    held: bool = False
    """Whether it has the lease of the partition or claims it. Of several claims the first in the topic counts."""
    term: int = Field(default=0, ge=0)
    """The epoch of the lease: of two instances that announce the lease, the one of the greater epoch has it."""
    position: int = Field(default=0, ge=0)
    """The offset of the first record not yet applied."""
    lag: int = Field(default=0, ge=0)
    """The number of records from there to the topic's end."""


class AnnouncedState(BaseModel):
    """The partitions of one state on the instance."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    watermark: int = 0
    """The largest start of a window that it read, or the clock, in milliseconds since 1970."""
    topic: str = ""
    """The topic that it reads; empty in announcements of earlier releases."""
    partitions: int = Field(default=0, ge=0)
    """The number of partitions of the topic by which it places keys."""
    parts: tuple[AnnouncedPart, ...] = ()


class Announcement(Wire):
    """An announcement of an instance: its address and its partitions.

    All are in one partition of their topic, so that all instances read them in one order.
    """

    instance: str
    """The name of the instance, the same after a restart."""
    store: str
    """The id of the instance's folder, which one process at a time can lock."""
    run: int = Field(ge=1)
    """The number of processes that have locked the folder: all earlier ones have ended."""
    url: str
    """The address for other instances: scheme, host and port."""
    number: int = Field(ge=1)
    """The number of the announcement in the run."""
    ts: AwareDatetime
    leaving: bool = False
    """Whether it stops, and no longer answers."""
    states: dict[str, AnnouncedState] = Field(default_factory=dict)
