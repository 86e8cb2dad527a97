"""A constraint that cannot be checked on both sides is refused at its declaration, and never ignored."""

from datetime import datetime, timedelta
from typing import Annotated, Any

import pytest
from annotated_types import Interval
from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, field_validator, model_validator

from contracts import Application, Count, DeclarationError, Enriched, Event, State, enrichment
from contracts.types.bounds import bounds, instant


class Plain(BaseModel):
    number: int
    words: list[str] | None = None
    tags: dict[str, str] | None = None
    weights: dict[str, float] | None = None


class Tall(BaseModel):
    height: Annotated[float, Interval(ge=0, lt=3)] | None = None


class Checked(BaseModel):
    name: str

    @field_validator("name")
    @classmethod
    def stripped(cls, name: str) -> str:
        return name.strip()


class CheckedWhole(BaseModel):
    name: str

    @model_validator(mode="after")
    def fine(self) -> "CheckedWhole":
        return self


class Short(BaseModel):
    model_config = ConfigDict(str_max_length=3)

    name: str


class Defaulted(BaseModel):
    lon: float = 0.0


class Listed(BaseModel):
    names: list[str] = Field(default_factory=list)


class Aliased(BaseModel):
    speed: float = Field(alias="spd")


class Limited(BaseModel):
    limit: int | None = 50


class Nested(BaseModel):
    parts: list[Limited]


def declared(annotation: Any, **fields: Any) -> type[Event]:
    """An event with one field of its own."""
    body = {"__annotations__": {"own": annotation}, "own": Field(**({"default": None} | fields))}
    return type("Own", (Event,), {**body, "__module__": __name__})


def test_a_field_without_constraints_costs_nothing() -> None:
    by_field = bounds(Plain)
    assert by_field == {"number": (), "words": (), "tags": (), "weights": ()}


def test_a_constraint_inside_an_optional_type_is_seen_with_all_its_parts() -> None:
    low, high = bounds(Tall)["height"][1:]
    assert (low.sql("x"), high.sql("x")) == ("x >= double('0.0')", "x < double('3.0')")
    assert low.is_met(0.0)
    assert not high.is_met(3.0)


@pytest.mark.parametrize(
    ("annotation", "where", "message"),
    [
        (Annotated[str, Field(pattern="a+")] | None, "Own.own", "cannot be checked"),
        (Annotated[int, AfterValidator(abs)] | None, "Own.own", "cannot be checked"),
        (list[Annotated[str, Field(pattern="a+")]] | None, "Own.own", "cannot be checked"),
        (Annotated[int, Field(ge=1.0)] | None, "Own.own", "Bound an int by whole numbers"),
        (Annotated[str, Field(ge="a")] | None, "Own.own", "other types have no order here"),
        (Annotated[dict[str, str], Field(max_length=3)] | None, "Own.own", "cannot be checked"),
        (dict[str, Annotated[float, Field(ge=0)]] | None, "Own.own", "Write a model, or a list of models"),
        (dict[str, Plain] | None, "Own.own", "Write a model, or a list of models"),
        (dict[str, list[float]] | None, "Own.own", "Write a model, or a list of models"),
        (Checked | None, "Checked.stripped", "cannot be run in the Spark job"),
        (list[CheckedWhole] | None, "CheckedWhole.fine", "cannot be run in the Spark job"),
        (Short | None, "Short.str_max_length", "cannot be run in the Spark job"),
        (Defaulted | None, "Defaulted.lon", "has a default. Make it required, or write"),
        (list[Listed] | None, "Listed.names", "has a default. Make it required, or write"),
        (list[Aliased] | None, "Aliased.speed", "has the alias 'spd'"),
    ],
)
def test_an_event_takes_only_constraints_that_the_job_can_check(annotation: Any, where: str, message: str) -> None:
    with pytest.raises(DeclarationError) as error:
        declared(annotation)
    assert str(error.value).startswith(f"{where}: ")
    assert message in str(error.value)


def test_a_field_that_may_be_null_but_not_missing_is_refused() -> None:
    with pytest.raises(DeclarationError, match="Write `T` if it is required"):
        declared(int | None, default=...)


def test_a_time_has_no_limits() -> None:
    with pytest.raises(DeclarationError, match="other types have no order here"):
        declared(Annotated[AwareDatetime, Field(ge=datetime(2026, 1, 1))] | None)  # noqa: DTZ001  # pydantic takes it


@pytest.mark.parametrize(
    ("result", "message"),
    [
        *((result, "cannot be run in the Spark job") for result in (Checked, CheckedWhole, Short)),
        *((result, "Limited.limit: may be null, and its default") for result in (Limited, Nested)),
    ],
)
def test_a_result_takes_only_what_the_job_can_check(result: type[BaseModel], message: str) -> None:
    async def slot(api: Any, events: int) -> Any:
        raise NotImplementedError

    slot.__annotations__["return"] = result
    body = {"__annotations__": {"events": Annotated[int, Count()], "slot": Annotated[result | None, Enriched()]}}
    state = type("Known", (State,), {**body, "__module__": __name__}, lifetime=timedelta(hours=1))
    with pytest.raises(DeclarationError, match=message):
        Application(name="t", event=Event, state=state, enrichments=(enrichment(api="a")(slot),))


def test_an_event_has_no_alias() -> None:
    with pytest.raises(DeclarationError, match=r"Own\.own: has the alias 'it'"):
        declared(int | None, alias="it")
    assert declared(int | None, alias="own").model_fields["own"].alias == "own"


def test_an_instant_has_a_year_from_1_to_9999_in_utc() -> None:
    for out in ("9999-12-31T23:59:59-17:59", "0001-01-01T00:00:00+17:59"):
        assert instant(out) is None
    for kept in ("9999-12-31T23:59:59.999999Z", "0001-01-01T00:00:00+00:00", "9999-12-30T23:59:59-17:59"):
        assert instant(kept) == datetime.fromisoformat(kept)
