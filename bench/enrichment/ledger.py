"""The calls that the API counted."""

import http.client
import time
from contextlib import suppress
from dataclasses import asdict, dataclass

import orjson

from bench.harness.errors import HelperExitedError

PATH = "/ledger"
ANSWER_S = 5.0
READY_S = 15.0
PAUSE_S = 0.05


@dataclass
class CallLedger:
    """Counts of calls. Times are in seconds of the epoch; 0 when there was none."""

    calls: int = 0
    """Accepted calls."""
    locations: int = 0
    """Different locations among them."""
    refused: int = 0
    """Answered with 429."""
    first: float = 0.0
    last: float = 0.0
    down: float = 0.0
    up: float = 0.0

    @property
    def repeated(self) -> int:
        """Calls for a place that was requested before."""
        return self.calls - self.locations

    def encode(self) -> bytes:
        """As JSON."""
        return orjson.dumps(asdict(self))


def fetch(port: int) -> CallLedger:
    """Return the ledger of the API at this port. Raises OSError while it is down."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWER_S)
    try:
        connection.request("GET", PATH)
        return CallLedger(**orjson.loads(connection.getresponse().read()))
    finally:
        connection.close()


def await_api(port: int) -> None:
    """Return when the API answers. Raises HelperExitedError when it does not."""
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline:
        with suppress(OSError):
            fetch(port)
            return
        time.sleep(PAUSE_S)
    raise HelperExitedError("serve")
