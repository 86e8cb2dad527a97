"""A store of the query service that can crash."""

from __future__ import annotations

from services.query.store import Store


class CrashableStore(Store):
    """A store whose process can be killed, and whose machine can go down."""

    def lose_unsynced(self) -> None:
        """Lose the entries, which are not synced to the disk, and not the positions."""
        with self._databases.writing() as transaction:
            for slot in self._databases.slots:
                for database in slot.databases:
                    transaction.drop(database, delete=False)

    def abandon(self) -> None:
        """Close the file as the end of a process does."""
        self._databases.environment.close()
        self._folder.release()
