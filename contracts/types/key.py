"""The key of a device, which is the key of its records: how large it may be, and how a larger one is cut."""

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

LARGEST_KEY = 500
"""In bytes of UTF-8: LMDB, where the query service stores states, takes little more as a key."""
LONGEST_CHARACTER = 4
"""In bytes of UTF-8."""


@dataclass(frozen=True)
class MaxBytes:
    """A constraint of a text: so many bytes of UTF-8. A JSON Schema can only give that number of characters."""

    size: int

    def check(self, value: str) -> str:
        """The text. Raises ValueError for a longer one."""
        if (size := len(value.encode(errors="surrogatepass"))) > self.size:
            raise ValueError(f"has {size} bytes, and {self.size} are allowed")
        return value

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(schema) | {"maxLength": self.size}


Key = Annotated[str, Field(min_length=1), MaxBytes(LARGEST_KEY)]
"""A text that may be a key."""


def shortened(key: bytes | None) -> bytes | None:
    """The key of a dead letter: that of its origin, cut between two characters if it has more than LARGEST_KEY bytes.

    Not every key can be written back: a record that was compressed may be larger than a producer sends.
    """
    if key is None or len(key) <= LARGEST_KEY:
        return key
    sizes = range(LARGEST_KEY, LARGEST_KEY - LONGEST_CHARACTER, -1)
    return next((key[:size] for size in sizes if _is_utf8(key[:size])), key[:LARGEST_KEY])


def shortened_sql(key: str) -> str:
    """The SQL of `shortened`, over an expression of bytes; a STRING of the same bytes, be they UTF-8 or not."""
    cuts = [f"CAST(left({key}, {LARGEST_KEY - less}) AS STRING)" for less in range(LONGEST_CHARACTER)]
    whole = ", ".join(f"try_validate_utf8({cut})" for cut in cuts)
    return f"CASE WHEN length({key}) <= {LARGEST_KEY} THEN CAST({key} AS STRING) ELSE coalesce({whole}, {cuts[0]}) END"


def _is_utf8(key: bytes) -> bool:
    try:
        key.decode()
    except UnicodeDecodeError:
        return False
    return True
