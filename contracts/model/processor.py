"""A processor: logic that no merge expresses, in place of the reducers of a state."""

from dataclasses import dataclass
from typing import Any

from contracts.errors import DeclarationError
from contracts.model.emit import Emit
from contracts.model.event import BaseEvent
from contracts.model.state import State, annotations
from contracts.reducers import Enriched
from contracts.types.columns import sql_type
from contracts.types.declaration import Declaration

METHODS = ("init", "handleInputRows", "handleExpiredTimer", "close")
"""The interface of PySpark's `StatefulProcessor`. This package does not import PySpark."""


@dataclass(frozen=True)
class Processor(Declaration):
    """A processor computes a state in place of reducers: a class that extends PySpark's `StatefulProcessor`.

    The job runs it for each key and window. Its rows have the fields of the event, and a field for each enrichment. The
    last row that it yields for a record has the fields of the state, which become the snapshot's.
    """

    of: Any
    """The class."""
    version: int = 1
    """Changes when the stored state of the former class has no meaning for this one: the job then refuses the former
    checkpoint."""

    @property
    def name(self) -> str:
        """The module and name of the class: with the version, its identity in the checkpoint."""
        return f"{self.of.__module__}.{self.of.__qualname__}"


def check_processor(processor: Processor, event: type[BaseEvent], state: type[State], emit: Emit) -> None:
    """Refuse what is no processor, and a state or an `emit` that does not go with one. Raises DeclarationError."""
    where = f"Processor({getattr(processor.of, '__name__', processor.of)!s})"
    missing = [name for name in METHODS if not callable(getattr(processor.of, name, None))]
    if not isinstance(processor.of, type) or missing:
        raise DeclarationError(where, "is no StatefulProcessor", "Name a class that extends PySpark's")
    if emit is not Emit.BATCH:
        problem = "runs Python, which real-time mode does not, and decides itself what it publishes at a window's end"
        raise DeclarationError(where, problem, "Write Application(emit=Emit.BATCH, …)")
    for name, (reducer, annotation) in annotations(state).items():
        field = f"{state.__name__}.{name}"
        if isinstance(reducer, Enriched):
            if name in event.model_fields:
                raise DeclarationError(field, f"{event.__name__} has a field of this name", "Rename the enrichment")
        elif reducer is not None:
            problem = f"has the reducer {reducer}, and {processor.of.__name__} computes the state"
            raise DeclarationError(field, problem, f"Write the type alone: {name}: …")
        else:
            sql_type(annotation, field)
