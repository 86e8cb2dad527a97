"""The declaration of a processor: what goes with it, and what is refused."""

from datetime import datetime
from typing import Annotated, Any

import pytest

from contracts import Application, Count, DeclarationError, Emit, Enriched, Processor, State
from contracts.records.schema import schemas
from contracts.testing import Clock, Loop
from tests.clicks import HOUR, NOW, Identified, Owner, owner


class Steps:
    """Has the methods of PySpark's class."""

    def init(self, handle: object) -> None: ...
    def handleInputRows(self, key: object, rows: object, timerValues: object) -> None: ...  # noqa: N802, N803
    def handleExpiredTimer(self, key: object, timerValues: object, expiredTimerInfo: object) -> None: ...  # noqa: N802, N803
    def close(self) -> None: ...


class Visit(State, key="page", window=HOUR):
    page: str | None
    last: datetime
    owner: Annotated[Owner | None, Enriched()]


def declared(**changes: Any) -> Application:
    defaults = {"state": Visit, "processor": Processor(Steps), "emit": Emit.BATCH, "enrichments": (owner,)}
    return Application(**{"name": "visits", "event": Identified, **defaults, **changes})


def test_the_fields_of_the_state_have_no_reducers_and_enrichments_read_them() -> None:
    app = declared()
    assert app.fields == ("page", "last")
    assert (app.sources, list(app.reducers), list(app.slots)) == ({}, ["owner"], ["owner"])
    assert schemas(app)["snapshot"]["$defs"]["Visit"]["properties"].keys() == {"page", "last"}
    assert app.processor is not None
    assert app.processor.name == f"{Steps.__module__}.Steps"


class Counted(State, key="page", window=HOUR):
    clicks: Annotated[int, Count()]


class Unwired(State, key="page", window=HOUR):
    countries: set[str]


class Shadowed(State, key="page", window=HOUR):
    page: str
    country: Annotated[Owner | None, Enriched()]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"processor": Processor(int)}, "is no StatefulProcessor"),
        ({"processor": Processor(Steps())}, "is no StatefulProcessor"),
        ({"emit": Emit.EVENT}, r"Write Application\(emit=Emit.BATCH"),
        ({"emit": Emit.CLOSE, "enrichments": ()}, r"Write Application\(emit=Emit.BATCH"),
        ({"state": Counted, "enrichments": ()}, r"Counted.clicks: has the reducer Count\(\), and Steps computes"),
        ({"state": Unwired, "enrichments": ()}, "has no place on the wire"),
        ({"state": Shadowed, "enrichments": ()}, "Rename the enrichment"),
        ({"processor": None, "enrichments": ()}, "Visit.page: has 0 reducers"),
    ],
)
def test_contradicting_arguments_are_refused(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(DeclarationError, match=problem):
        declared(**changes)


def test_the_loop_in_memory_refuses_a_processor() -> None:
    with pytest.raises(DeclarationError, match="Steps computes the state"):
        Loop(declared(), {}, Clock(NOW))
