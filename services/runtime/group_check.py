"""Checks that no other kind of process is in the consumer group of a worker: each would miss what the other reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.runtime.errors import KafkaRequestError, SharedGroupError

if TYPE_CHECKING:
    from collections.abc import Callable

    from services.runtime.kafka.interfaces import Admin

COMMANDS = {
    "stateloop-enrichment": "stateloop worker",
    "stateloop-derive": "stateloop derive",
    "stateloop-sink": "stateloop sink",
    "stateloop-group": "stateloop query",
}
"""The command of each client id of a member. A member whose user gives it another client id is of no known kind."""
ANSWER_S = 1.0
"""The wait for the broker. The consumer does not poll meanwhile."""


class GroupCheck:
    """Looks for members of other kinds that have partitions of the topic, while the worker `name` runs.

    `warn` receives one line when the broker does not describe the group; the worker then goes on.
    """

    def __init__(self, name: str, group: str, topic: str, admin: Admin, warn: Callable[[str], object]) -> None:
        self._client_id = f"stateloop-{name}"
        self._group = group
        self._topic = topic
        self._admin = admin
        self._warn = warn
        self._has_warned = False

    def check(self) -> None:
        """Describe the group. Raises SharedGroupError."""
        try:
            members = self._admin.members(self._group, ANSWER_S)
        except KafkaRequestError as error:
            if not self._has_warned:
                self._warn(f"the members of the group {self._group} are unknown, and not checked ({error.detail})")
            self._has_warned = True
            return
        self._has_warned = False
        readers = {member.client_id for member in members if self._topic in member.topics}
        if others := sorted(COMMANDS[one] for one in readers & (COMMANDS.keys() - {self._client_id})):
            raise SharedGroupError(self._group, self._topic, others)
