"""Wrong declarations are refused when the application is made, with what to write instead."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from contracts import (
    AlertRule,
    Alerts,
    Api,
    Application,
    BaseEvent,
    Bitmap,
    Count,
    DeclarationError,
    Enriched,
    Event,
    Histogram,
    Latest,
    Max,
    Mean,
    Policy,
    Quantiles,
    Quantize,
    Recent,
    State,
    Sum,
    Table,
    TopK,
    ValueCount,
    Variance,
    Webhook,
    enrichment,
    field,
)
from contracts.model.application import load
from contracts.reducers import Reducer


class Ping(Event):
    speed: float | None = None
    trips: int | None = None
    name: str | None = None
    tags: dict[str, str] | None = None


class Owner(BaseModel):
    name: str


class Rank(BaseModel):
    rank: int


class Thing(State):
    name: Annotated[str | None, Latest()]
    owner: Annotated[Owner | None, Enriched()]
    rank: Annotated[Rank | None, Enriched()]


@enrichment(api="a")
async def owner(api: Api, name: str) -> Owner:
    return await api.get("/{name}", Owner, name=name)


@enrichment(api="a")
async def rank(api: Api, owner: Owner) -> Rank:
    return await api.get("/{name}", Rank, name=owner.name)


def of(state: type[State], *enrichments: Any, event: type[BaseEvent] = Ping, **options: Any) -> Application:
    return Application(name="t", event=event, state=state, enrichments=enrichments, **options)


def state(name: str, annotation: Any, **options: Any) -> type[State]:
    """A state with one field."""
    body = {"__annotations__": {name: annotation}, "__module__": __name__}
    return type("One", (State,), body, **options)


def test_a_right_declaration_is_ordered_by_need() -> None:
    assert [enrichment.name for enrichment in of(Thing, rank, owner).enrichments] == ["owner", "rank"]


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        (str, "Write wrong: Annotated[<type>, <one reducer"),
        (Annotated[int, Count], "Count is a class, not a reducer. Write Count()"),
        (Annotated[list[str], Recent], "Write Recent(…)"),
        (Annotated[str | None, Latest()], "Write Latest(of=…) with one of these: ts, device_id, event_id"),
        (Annotated[str | None, Latest(of="speed")], "Write Annotated[float | None, Latest(…)]"),
        (Annotated[float, Sum(of="name")], "takes a field of type int, float, not str"),
        (Annotated[float | None, Mean(of="name")], "takes a field of type int, float, not str"),
        (Annotated[dict[str, str] | None, Latest(of="tags")], "cannot order a dict"),
        (Annotated[list[str], Recent(3, of="speed")], "Recent gives list[float]"),
        (Annotated[str | None, Enriched()], "Enriched is for a pydantic model or None"),
        (Annotated[Owner | None, Enriched()], "no enrichment writes this slot"),
        (
            Annotated[int, Count(where=field("gate") == "A")],
            "Ping has no field of this name. Name one of these: ts,",
        ),
        (Annotated[int, Count(where=field("tags") == "A")], "field('tags') == 'A': a field of type dict cannot be"),
    ],
)
def test_a_wrong_field_is_refused(annotation: Any, message: str) -> None:
    with pytest.raises(DeclarationError) as error:
        of(state("wrong", annotation))
    assert message in str(error.value)
    assert "One.wrong" in str(error.value)


def model(base: type[BaseModel], *names: str, **fields: Any) -> type[BaseModel]:
    body = {"__annotations__": dict.fromkeys(names, str) | fields, "__module__": __name__}
    return type("Cased", (base,), body)


@pytest.mark.parametrize(
    "declare",
    [
        lambda: model(Event, "speed", "Speed"),
        lambda: model(Event, "TS"),
        lambda: model(Event, place=model(BaseModel, "speed", "sPeed")),
        lambda: model(Event, places=list[model(BaseModel, "speed", "sPeed")]),  # type: ignore[misc]
        lambda: model(State, speed=Annotated[int, Count()], SPEED=Annotated[int, Count()]),
        lambda: of(state("slot", Annotated[model(BaseModel, "speed", "Speed") | None, Enriched()])),
    ],
)
def test_fields_that_differ_in_case_only_are_refused(declare: Callable[[], object]) -> None:
    with pytest.raises(DeclarationError, match=r"Cased\.\w+: differs from '\w+' in case only.* Rename one of them"):
        declare()


class Keyless(BaseEvent):
    page: str


class Coded(Event):
    page: str
    code: Literal["a", "b"]


def test_an_error_about_a_type_or_a_key_spells_what_to_write() -> None:
    top = state("top", Annotated[list[ValueCount[str]], TopK(3, of="code")], key="page", window=timedelta(hours=1))
    with pytest.raises(DeclarationError) as error:
        of(top, event=Coded)
    assert "the field is declared as list[ValueCount[str]]. Write Annotated[list[ValueCount[Literal['a', 'b']]], " in (
        str(error.value)
    )
    with pytest.raises(
        DeclarationError, match=r"Write class One\(State, key='page', …\); the required texts of Keyless are page"
    ):
        of(state("n", Annotated[int, Count()], window=timedelta(hours=1)), event=Keyless)


@pytest.mark.parametrize("wrong", [field("speed"), True, "speed > 3"])
def test_an_invalid_filter_is_refused(wrong: Any) -> None:
    with pytest.raises(DeclarationError, match=r"is no Filter\. Write a comparison of a field"):
        of(state("n", Annotated[int, Count()], where=wrong))
    with pytest.raises(DeclarationError, match=r"is no Filter\. Write a comparison of a field"):
        of(state("n", Annotated[int, Count(where=wrong)]))


def test_a_filter_that_does_not_fit_the_event_is_refused() -> None:
    with pytest.raises(DeclarationError, match=r"One\(where=…\): field\('speed'\) == 'fast'.* Write a number"):
        of(state("n", Annotated[int, Count()], where=field("speed") == "fast"))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Recent(0),
        lambda: Bitmap(0),
        lambda: Histogram(()),
        lambda: Histogram((2.0, 1.0)),
        lambda: Quantiles((1.5,)),
        lambda: state("n", Annotated[int, Count()], lifetime=timedelta(0)),
        lambda: of(state("n", Annotated[int, Count()], key="nothing")),
        lambda: of(state("n", Annotated[int, Count()], key="name")),
    ],
)
def test_a_wrong_number_or_key_is_refused(make: Callable[[], object]) -> None:
    with pytest.raises(DeclarationError):
        make()


def test_an_event_takes_no_default_and_no_constraint_that_the_job_cannot_check() -> None:
    with pytest.raises(DeclarationError, match="Make it required, or write"):
        type("Wrong", (Event,), {"__annotations__": {"speed": float}, "speed": 0.0})
    with pytest.raises(DeclarationError, match="cannot be checked in the Spark job"):
        type("Wrong", (Event,), {"__annotations__": {"name": str}, "name": Field(pattern="a+")})
    with pytest.raises(DeclarationError, match="has no place on the wire"):
        type("Wrong", (Event,), {"__annotations__": {"raw": bytes}})
    with pytest.raises(DeclarationError, match=r"Wrong.tree: Tree contains itself. Write `str`"):
        type("Wrong", (Event,), {"__annotations__": {"tree": Tree}})


class Tree(BaseModel):
    """A model that contains itself."""

    children: dict[str, list["Tree"]] = {}


def needing(reducer: Reducer, field: Any, need: Any) -> Application:
    """An application whose only enrichment needs a field of this reducer."""

    async def rank(api: Api, total: Any) -> Rank:
        return await api.get("/{t}", Rank, t=total)

    rank.__annotations__["total"] = need
    fields = {"total": Annotated[field, reducer], "rank": Annotated[Rank | None, Enriched()]}
    made = type("One", (State,), {"__annotations__": fields, "__module__": __name__})
    return of(made, enrichment(api="a")(rank))


@pytest.mark.parametrize(
    ("reducer", "field", "need", "write"),
    [
        (Sum(of="speed"), float, float, "Write `total: Annotated[float, Quantize(0.01)]`, with the step"),
        (Mean(of="speed"), float | None, float | None, "Write `total: Annotated[float, Quantize(0.01)] | None`"),
        (Variance(of="speed"), float | None, float, "last digits of Variance depend on the order of events"),
        (Quantiles((0.5,), of="speed"), list[float], list[float], "Need another field, such as one of Histogram"),
    ],
)
def test_a_need_that_depends_on_the_order_of_events_is_refused(
    reducer: Reducer, field: Any, need: Any, write: str
) -> None:
    with pytest.raises(DeclarationError) as error:
        needing(reducer, field, need)
    assert write in str(error.value)
    assert "rank(total)" in str(error.value)


@pytest.mark.parametrize(
    ("reducer", "field", "need"),
    [
        (Sum(of="speed"), float, Annotated[float, Quantize(0.5)]),
        (Mean(of="speed"), float | None, Annotated[float, Quantize(0.5)] | None),
        (Sum(of="trips"), int, int),
        (Max(of="speed"), float | None, float),
        (Latest(of="speed"), float | None, float),
    ],
)
def test_a_need_that_is_rounded_or_exact_is_taken(reducer: Reducer, field: Any, need: Any) -> None:
    assert [enrichment.name for enrichment in needing(reducer, field, need).enrichments] == ["rank"]


def test_an_unknown_need_is_refused_with_the_names_that_there_are() -> None:
    @enrichment(api="a")
    async def rank(api: Api, unknown: str) -> Rank:
        return await api.get("/{n}", Rank, n=unknown)

    with pytest.raises(DeclarationError, match="Name one of these: name, owner, rank"):
        of(Thing, owner, rank)


def test_a_need_of_another_type_is_refused() -> None:
    @enrichment(api="a")
    async def rank(api: Api, name: int) -> Rank:
        return await api.get("/{n}", Rank, n=name)

    with pytest.raises(DeclarationError, match="Write `name: str`"):
        of(Thing, owner, rank)


def test_a_circle_of_needs_is_refused() -> None:
    @enrichment(api="a")
    async def owner(api: Api, rank: Rank) -> Owner:
        return await api.get("/{n}", Owner, n=rank.rank)

    with pytest.raises(DeclarationError, match="need each other in a circle"):
        of(Thing, owner, rank)


def test_two_enrichments_for_one_slot_are_refused() -> None:
    with pytest.raises(DeclarationError, match="two enrichments give this slot"):
        of(Thing, owner, owner, rank)


def test_a_slot_of_another_model_is_refused() -> None:
    @enrichment(api="a")
    async def rank(api: Api, owner: Owner) -> Owner:
        return await api.get("/{n}", Owner, n=owner.name)

    with pytest.raises(DeclarationError, match="the enrichment gives Owner"):
        of(Thing, owner, rank)


async def plenty(api: Api, name: str) -> Owner:
    raise NotImplementedError


SECOND = timedelta(seconds=1)
RULES = Table("rules", AlertRule)
PAGED = Alerts("paged", RULES, lambda snapshot, _: snapshot.version > 1, webhook=Webhook("p"))


def test_an_api_without_a_policy_has_the_default_one() -> None:
    assert of(Thing, owner, rank).apis == {"a": Policy()}
    assert of(Thing, owner, rank, apis={"a": Policy(attempts=3)}).apis == {"a": Policy(attempts=3)}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: of(Thing, owner, rank, apis={"b": Policy()}), r"apis='b'.*no enrichment calls.* Name one of these: a"),
        (
            lambda: of(Thing, owner, rank, alerts=(PAGED,), tables=(RULES,), apis={"p": Policy()}),
            r"apis='p'\): only a webhook calls this API. Write Webhook\('p', policy=Policy\(…\)\)",
        ),
        (lambda: enrichment(api="a", stale_after=timedelta(0))(plenty), "Write stale_after="),
        (lambda: enrichment(api="a", stale_after=-SECOND)(plenty), "makes every answer stale at once"),
        (lambda: of(Thing, owner, rank, largest_record=0), "Write a number of bytes from 4096 to 983040"),
        (lambda: of(Thing, owner, rank, largest_record=1024 * 1024), "is more than Kafka takes"),
    ],
)
def test_a_number_that_would_never_end_or_never_begin_is_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        make()


def test_the_outermost_numbers_are_allowed() -> None:
    assert [of(Thing, owner, rank, largest_record=n).largest_record for n in (4096, 983_040)] == [4096, 983_040]


@pytest.mark.parametrize(
    "reference",
    [
        "nothing.at.all:app",
        "contracts.nothing:app",
        "contracts.model.application:none",
        "contracts:State",
        "",
        "..:app",
        "a b",
    ],
)
def test_a_reference_to_no_application_is_refused(reference: str) -> None:
    with pytest.raises(DeclarationError, match=r"package\.module:name"):
        load(reference)


@pytest.mark.parametrize(
    ("code", "kind"),
    [("app = object().missing", AttributeError), ("import not.there", SyntaxError), ("import notthere", ImportError)],
)
def test_an_error_in_the_module_is_its_own(
    code: str, kind: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_application.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(kind):
        load("broken_application:app")
