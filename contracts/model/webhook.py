"""A webhook: the API that is called when an alert opens, and when it closes."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from contracts.errors import DeclarationError
from contracts.model.function import check_function
from contracts.model.policy import Policy
from contracts.types.declaration import Declaration
from contracts.wire.alert_record import AlertEvent

Body = Callable[[AlertEvent], Any]
PATH = re.compile(r"(/[!-~]*)?")


@dataclass(frozen=True)
class Webhook(Declaration):
    """A POST to an API for each alert that opens, and another one when it closes. Delivery is at-least-once.

    `api` is the name of the API: STATELOOP_APIS has its address, and `path` is beneath that. `body` is a pure function
    that returns the JSON to send for an event; without it, that is the event itself. `policy` limits the calls, as for
    an enrichment. Every status from 200 to 299 is a success, and every other one that is not retryable is a failure.
    """

    api: str
    path: str = ""
    policy: Policy = Policy()  # noqa: RUF009  # it is frozen
    body: Body | None = None

    def __post_init__(self) -> None:
        if not PATH.fullmatch(self.path):
            write = "Write a path of ASCII characters without spaces, such as path='/alerts'"
            raise DeclarationError(f"Webhook({self.api!r})", f"path={self.path!r} is no path", write)
        if self.body is not None:
            check_function(f"Webhook({self.api!r}, body=…)", self.body, "event")
