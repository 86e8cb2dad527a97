"""Reference tables: small keyed topics, such as rules, that every derive worker stores whole."""

from dataclasses import dataclass

from pydantic import BaseModel

from contracts.model.named_state import QueryOptions
from contracts.types.columns import check_nulls
from contracts.types.declaration import Declaration


@dataclass(frozen=True)
class Table(Declaration):
    """A table of rows by key, which are changed while the application runs: `stateloop table put|get|list|remove`.

    Its topic is compacted, and is named `topic`, or `<prefix><name>`. A row is validated against `model` when it is
    written and when it is read; its version is the offset of its record. A record without value removes the row. A
    record that `model` rejects is a dead letter, and the former row stays valid. The table can be queried as a named
    state.
    """

    name: str
    model: type[BaseModel]
    topic: str = ""
    query: QueryOptions = QueryOptions()  # noqa: RUF009  # it is frozen

    def __post_init__(self) -> None:
        check_nulls(self.model)
