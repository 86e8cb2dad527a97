"""Where a state's entries are kept on this machine: what the follower writes, and what answers are read from."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from services.query.store.entry import Change, Entry


class Update(NamedTuple):
    """One record of the topic, read: the key's new entry, or None for a record without value.

    `life` is that of the window that a removal names; None removes the key whatever its life is.
    """

    key: str
    partition: int
    offset: int
    entry: Entry | None
    life: int | None = None


class Page(NamedTuple):
    """Some keys in their order, that of their UTF-8. `after` continues after the last; None: there are no more.

    There may be fewer keys than were asked for, even none, while there are more: it does not look for them for long.
    """

    items: Sequence[tuple[str, Entry]]
    after: str | None


class Store(Protocol):
    """The entries of one named state, of all partitions that this instance ever followed.

    One thread writes; reads are from the event loop, see whole batches, and never wait for the writer.
    """

    def get(self, key: str) -> Entry | None:
        """The latest entry of a key, also of a life that has ended but is remembered."""

    def gets(self, keys: Sequence[str]) -> Sequence[Entry | None]:
        """The same of many keys, all at one moment, in their order."""

    def versions(self, key: str) -> Sequence[Entry]:
        """All entries kept of the key's present life, all at one moment, the earliest first."""

    def page(
        self, *, prefix: str, after: str | None, limit: int, where: Mapping[str, str], partitions: Collection[int]
    ) -> Page:
        """The next keys with this prefix and these values of indexed fields, of these partitions and not ended."""

    def keys(self) -> int:
        """About how many keys are held, ended lives that are remembered among them: what costs little to tell."""

    def watermark(self) -> int:
        """The largest beginning of a life that was seen, or what the clock or another instance said; 0 without lives.

        In milliseconds since 1970. It never goes down.
        """

    def advance(self, watermark: int) -> None:
        """Another instance saw this, or the clock says it: the watermark is at least that from now on."""

    def ended(self, entry: Entry) -> bool:
        """Whether the entry's life has ended by the watermark."""

    def living_since(self) -> int:
        """Lives that began before this have ended by the watermark, and no others."""

    def position(self, partition: int) -> int | None:
        """The offset of the first record not yet applied; None: nothing of the partition is here."""

    def fresh(self, partition: int) -> int | None:
        """When all that the topic had of the partition was here, in milliseconds since 1970; None: it is not known."""

    def freshen(self, times: Mapping[int, int]) -> None:
        """All that the topic had of these partitions at these times is here, or is about to be read anew."""

    def apply(self, updates: Iterable[Update], positions: Mapping[int, int]) -> list[Change]:
        """Write what is newer, together with the partitions' positions, in one transaction; gives what readers see new.

        Drops the buckets of time that nobody remembers any more.
        """

    def sweep(self) -> None:
        """Write the watermark, and drop the buckets of time that nobody remembers any more, though no record comes.

        In the thread that writes.
        """

    def forget(self, partition: int) -> bool:
        """Remove some thousand entries of a partition, for it has to be read from its beginning; whether that was all.

        Its position is gone with the first of them. It must not be followed before all are gone.
        """

    def half_forgotten(self, partition: int) -> bool:
        """Whether some of it was forgotten, perhaps by an earlier process, and not all."""

    def settle(self) -> None:
        """A rebuild is over: from now on readers come first. In the event loop, which it keeps for some 50 ms."""

    def close(self) -> None:
        """Make all durable, and close."""
