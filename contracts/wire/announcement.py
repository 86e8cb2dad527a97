"""What an instance of the query service announces to the others, about once a second and at each change."""

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from contracts.wire import Wire


class AnnouncedPart(BaseModel):
    """One partition of a state, as the instance has it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    partition: int = Field(ge=0)
    assigned: bool = False
    """Whether the group gave it to this instance; otherwise it is a copy."""
    ready: bool = False
    """Whether it holds all that the topic had when it began to follow."""
    held: bool = False
    """Whether it answers for the partition, or will as soon as it has read this. Of several the first in the topic."""
    term: int = Field(default=0, ge=0)
    """Counts who held the partition: where two go on saying that they hold it, the greater one does."""
    position: int = Field(default=0, ge=0)
    """The offset of the first record not yet applied."""
    lag: int = Field(default=0, ge=0)
    """Records from there to the topic's end."""


class AnnouncedState(BaseModel):
    """What an instance has of one state."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    watermark: int = 0
    """The largest start of a window that it read, or the clock, in milliseconds since 1970."""
    parts: tuple[AnnouncedPart, ...] = ()


class Announcement(Wire):
    """An announcement of an instance: its address and its partitions.

    All are in one partition of their topic, so that all instances read them in one order.
    """

    instance: str
    """Its name, the same after a restart."""
    store: str
    """Names its folder, which one process at a time can have."""
    run: int = Field(ge=1)
    """Counts the processes that had the folder: those before this one have ended."""
    url: str
    """Where others reach it: scheme, host and port."""
    number: int = Field(ge=1)
    """Counts the announcements of the run."""
    ts: AwareDatetime
    leaving: bool = False
    """It ends now, and answers no more."""
    states: dict[str, AnnouncedState] = Field(default_factory=dict)
