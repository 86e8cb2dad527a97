"""Reference tables: small keyed topics, such as rules, that every derive worker stores whole."""

from dataclasses import dataclass

from pydantic import BaseModel

from contracts.errors import DeclarationError
from contracts.model.named_state import QueryOptions
from contracts.types.columns import check_nulls, check_required, models
from contracts.types.declaration import Declaration

BOTH_NAMES = ("populate_by_name", "validate_by_name", "serialize_by_alias")
"""The settings of a model whose fields are read by the names that they are written by, with an alias too."""


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
        for model in models(self.model):
            check_required(model)
            _check_names(model)


def _check_names(model: type[BaseModel]) -> None:
    """Refuse a field that is read by another name than it is written by: no row of such a model could be read."""
    if any(model.model_config.get(setting) for setting in BOTH_NAMES):
        return
    for name, field in model.model_fields.items():
        if (alias := field.validation_alias) not in (None, name) and name not in getattr(alias, "choices", ()):
            problem = f"has the alias {alias!r}, and rows are written by the names of fields"
            raise DeclarationError(f"{model.__name__}.{name}", problem, "Name the field as the row does, without alias")
