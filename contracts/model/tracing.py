"""The trace context that records carry: the `traceparent` of W3C's Trace Context, on the wire and in the state."""

import re

from pydantic import BaseModel

from contracts.errors import DeclarationError
from contracts.types.columns import text, without_none

FIELD = "traceparent"
FORM = "^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$"
LENGTH = 55


def carried(traceparent: str | None) -> str | None:
    """Return the valid context of a record. A device that sends anything else loses its trace, not its record."""
    is_valid = traceparent is not None and len(traceparent) == LENGTH and re.match(FORM, traceparent)
    return traceparent if is_valid else None


def carried_sql(x: str) -> str:
    """Return the same in Spark SQL."""
    return f"CASE WHEN length({x}) = {LENGTH} AND {x} RLIKE {text(FORM)} THEN {x} END"


def check_event(event: type[BaseModel]) -> None:
    """Check that a traced application's event has the field. Raises DeclarationError."""
    field = event.model_fields.get(FIELD)
    if field is None or field.is_required() or without_none(field.annotation) != (str, True):
        write = f"Write `{FIELD}: str | None = None` among its fields"
        raise DeclarationError(event.__name__, "does not carry the trace context that traced=True asks for", write)
