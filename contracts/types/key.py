"""Keys of states: how large one may be, how several fields make one, and how a larger one of a record is cut."""

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from contracts.types.columns import text

LARGEST_KEY = 500
"""In bytes of UTF-8: LMDB, where the query service stores states, takes little more as a key."""
LONGEST_CHARACTER = 4
"""In bytes of UTF-8."""
SEPARATOR, ESCAPE = ":", "\\"
"""Between the parts of a composite key; before either of them inside a part."""


@dataclass(frozen=True)
class MaxBytes:
    """A constraint of a text: at most `size` bytes of UTF-8. A JSON Schema can only limit the number of characters."""

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


def composite_key(*parts: str) -> str:
    """The key of a state that several fields identify, for example `JFK:UA`. One part is a key as it is."""
    return SEPARATOR.join(_escaped(part) for part in parts) if len(parts) > 1 else parts[0]


def composite_key_sql(*parts: str) -> str:
    """The SQL of `composite_key`, over expressions of texts."""
    if len(parts) == 1:
        return parts[0]
    return f"concat({f', {text(SEPARATOR)}, '.join(_escaped_sql(part) for part in parts)})"


def _escaped(part: str) -> str:
    return part.replace(ESCAPE, 2 * ESCAPE).replace(SEPARATOR, ESCAPE + SEPARATOR)


def _escaped_sql(part: str) -> str:
    escaped = f"replace({part}, {text(ESCAPE)}, {text(2 * ESCAPE)})"
    return f"replace({escaped}, {text(SEPARATOR)}, {text(ESCAPE + SEPARATOR)})"


def shortened(key: bytes | None) -> bytes | None:
    """The key of a dead letter: its origin's key, cut between two characters if it has more than LARGEST_KEY bytes.

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
