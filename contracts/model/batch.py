"""A declared call for many keys at once, of an API that takes lists."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Generic, TypeVar

from pydantic import BaseModel

from contracts.errors import DeclarationError
from contracts.model.policy import NO_TIME
from contracts.types.declaration import Declaration, spelled

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class Batch(Declaration, Generic[M]):
    """One call for many keys: `GET path?parameter=N1&parameter=N2`. Raises DeclarationError.

        planes = Batch("/planes", Plane, parameter="tailnum", key="tailnum", size=50)

        @enrichment(api="registry")
        async def plane(api: Api, tailnum: str) -> Plane:
            return await api.get_one(planes, tailnum)

    The answer is a list of items, each with its key, or an object of items by key. A key without an item is an absence.
    """

    path: str
    model: type[M]
    parameter: str
    """The name under which the keys are sent."""
    key: str = "id"
    """The field of an item that has its key, where the answer is a list."""
    size: int = 50
    """The maximum number of keys in a call."""
    wait: timedelta = timedelta(milliseconds=10)
    """The maximum time for which the first key waits for others."""
    items: str | None = None
    """The field of the answer that has the items, unless the answer itself is the items."""
    separator: str | None = None
    """The separator of keys in a single value, as in `tailnum=N1,N2`; None repeats the parameter."""
    status: str | None = None
    """The field of an item that has its own status, which counts like the status of a response."""

    def __post_init__(self) -> None:
        self._must("path", self.path.startswith("/") and not set(self.path) & set("?#{} "), "a path, as '/planes'")
        self._must("parameter", bool(self.parameter), "the name of a query parameter")
        self._must("key", bool(self.key), "the name of a field")
        self._must("size", self.size >= 1, "size=50")
        self._must("wait", self.wait >= NO_TIME, "wait=timedelta(milliseconds=10)")

    def _must(self, field: str, is_valid: bool, write: str) -> None:  # noqa: FBT001  # the positional argument is the condition
        if not is_valid:
            where = f"Batch({field}={spelled(getattr(self, field))})"
            raise DeclarationError(where, "asks for nothing", f"Write {write}")
