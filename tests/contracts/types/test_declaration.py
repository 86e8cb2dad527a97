"""Arguments of a wrong kind are refused where they are declared, with the argument and what to write."""

import copy
import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from dataclasses import field as field_of_class
from datetime import timedelta
from functools import partial
from inspect import signature
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import pytest
from pydantic import BaseModel
from typing_extensions import override

import contracts
from contracts import (
    AlertRule,
    Api,
    Count,
    DeclarationError,
    Emit,
    Event,
    Latest,
    Policy,
    Processor,
    Recent,
    State,
    Table,
    field,
)

if TYPE_CHECKING:
    from decimal import Decimal


untyped: Any = contracts
"""What it exports, without the types that refuse a wrong argument before it runs."""


class Plain(BaseModel):
    name: str


class Rule(AlertRule):
    speed: float


class Car(State):
    events: Annotated[int, Count()]


RULES = Table("limits", Rule)
PLAIN = Table("plain", Plain)


async def owner(api: Api, events: int) -> Plain:
    return await api.get("/{events}", Plain, events=events)


def opens(snapshot: Any, rule: Any) -> bool:
    return bool(snapshot.version > rule.speed)


def event() -> Event:
    return Event.model_validate(
        {"device_id": "a", "event_id": "1", "ts": "2026-01-01T00:00Z", "first_seen": "2026-01-01T00:00Z"}
    )


def of(**arguments: Any) -> Any:
    return untyped.Application(**{"name": "t", "event": Event, "state": Car} | arguments)


def car(**arguments: Any) -> type[State]:
    return type(
        "Car", (State,), {"__annotations__": {"n": Annotated[int, Count()]}, "__module__": __name__}, **arguments
    )


def derived(**arguments: Any) -> Any:
    return untyped.Derived(**{"name": "d", "model": Plain, "of": lambda *_: ()} | arguments)


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda: car(window=300), "Car(window=300): is no timedelta. Write timedelta(seconds=300)"),
        (lambda: car(window=timedelta(1), every=60), "Car(every=60): is no timedelta. Write timedelta(seconds=60)"),
        (lambda: car(grace=2.5), "Car(grace=2.5): is no timedelta. Write timedelta(seconds=2.5)"),
        (lambda: car(lifetime="1h"), "Car(lifetime='1h'): is no timedelta. Write timedelta(seconds=60)"),
        (lambda: of(emit_interval=5), "Application(emit_interval=5): is no timedelta"),
        (lambda: of(skew=60), "Application(skew=60): is no timedelta. Write timedelta(seconds=60)"),
        (lambda: of(skew=timedelta(-1)), "t(skew=timedelta(days=-1)): is negative. Write timedelta(seconds=60)"),
        (lambda: untyped.enrichment(api="a", stale_after=5), "enrichment(stale_after=5): is no timedelta"),
        (lambda: untyped.enrichment(api="a", at_most_every=5), "enrichment(at_most_every=5): is no timedelta"),
        (lambda: untyped.Batch("/a", Plain, "id", wait=1), "Batch(wait=1): is no timedelta"),
        (lambda: untyped.Batch[Plain]("/a", Plain, "id", wait=1), "Batch(wait=1): is no timedelta"),
        (lambda: untyped.QueryOptions(remember=30), "QueryOptions(remember=30): is no timedelta"),
        (lambda: untyped.QueryOptions(stale_after=3), "QueryOptions(stale_after=3): is no timedelta"),
        (lambda: untyped.Coverage(10), "Coverage(step=10): is no timedelta. Write timedelta(seconds=10)"),
        (lambda: untyped.FromHeader("at", unit=1), "FromHeader(unit=1): is no timedelta"),
        (lambda: untyped.Topics(outage=7), "Topics(outage=7): is no timedelta. Write timedelta(seconds=7)"),
        (lambda: derived(lifetime=7), "Derived(lifetime=7): is no timedelta"),
    ],
)
def test_a_number_is_no_time(declare: Callable[[], object], message: str) -> None:
    with pytest.raises(DeclarationError) as error:
        declare()
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (
            lambda: of(enrichments=untyped.enrichment(api="a")(owner)),
            "is no tuple. Write enrichments=(Enrichment(…),)",
        ),
        (lambda: of(tables=PLAIN), "is no tuple. Write tables=("),
        (lambda: of(derived=derived()), "is no tuple. Write derived=("),
        (lambda: of(raw=untyped.Raw("r", lambda _: None)), "is no tuple. Write raw=("),
        (lambda: of(alerts=untyped.Alerts("al", RULES, opens)), "is no tuple. Write alerts=("),
        (
            lambda: untyped.QueryOptions(indexes="state.v"),
            "QueryOptions(indexes='state.v'): is no tuple. Write indexes=('state.v',)",
        ),
        (lambda: untyped.PackedIntegers(channels="ecg"), "Write channels=('ecg',)"),
        (lambda: untyped.Quantiles(0.5), "Quantiles(probabilities=0.5): is no tuple. Write probabilities=(0.5,)"),
        (lambda: untyped.Quantiles(0.5, 0.9, of="v"), "Write probabilities=(0.5,)"),
        (
            lambda: untyped.Suite([of()]),
            "is no Application. Write the applications one by one, as in Suite(fleet, trips)",
        ),
    ],
)
def test_a_comma_makes_a_tuple(declare: Callable[[], object], message: str) -> None:
    with pytest.raises(DeclarationError) as error:
        declare()
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda: of(enrichments=(owner,)), "enrichments=owner): is no Enrichment. Write @enrichment(api=…) above"),
        (lambda: of(alerts=(opens,)), "alerts=opens): is no Alerts. Write Alerts(…)"),
        (lambda: of(processor=Plain), "processor=Plain): is no Processor. Write Processor(…)"),
        (lambda: of(topics="fleet."), "topics='fleet.'): is no Topics. Write Topics(…)"),
        (lambda: of(state=Plain), "state=Plain): is no class that extends State. Write class …(State)"),
        (lambda: of(event=event()), "is no class that extends BaseEvent"),
        (lambda: of(apis={"a": "https://x"}), "apis='https://x'): is no Policy. Write Policy(…)"),
        (lambda: of(apis=("a",)), "is no dict. Write a dict"),
        (lambda: of(emit="bath"), "emit='bath'): is no Emit. Write Emit.EVENT or Emit.BATCH or Emit.CLOSE"),
        (lambda: of(largest_record="9"), "largest_record='9'): is no whole number. Write a whole number"),
        (lambda: of(traced="yes"), "traced='yes'): is no bool. Write True or False"),
        (lambda: untyped.Alerts("al", "limits", opens), "rules='limits'): is no Table. Write Table(…)"),
        (lambda: untyped.Table("t", dict), "model=dict): is no class that extends BaseModel"),
        (lambda: untyped.Raw("r", "json", {}), "decode='json'): is no function"),
        (lambda: untyped.Webhook("p", body={"a": 1}), "Webhook(body={'a': 1}): is no function"),
        (lambda: derived(tables=("zones",)), "Derived(tables='zones'): is no Table. Write Table(…)"),
        (lambda: untyped.Mean(of=field("v")), "Mean(of=field('v')): is no text. Write a text in quotes"),
        (lambda: untyped.Recent("3"), "Recent(n='3'): is no whole number"),
        (lambda: untyped.Recent(n=True), "Recent(n=True): is no whole number"),
        (lambda: untyped.Quantize("1"), "Quantize(step='1'): is no number"),
        (lambda: untyped.PackedIntegers(order="big-endian"), "is no known word. Write 'little' or 'big'"),
        (
            lambda: untyped.DistinctApprox(lg_k=3),
            "is no size of a sketch. Write a number from 4 to 21",
        ),
    ],
)
def test_an_argument_of_another_kind_is_refused(declare: Callable[[], object], message: str) -> None:
    with pytest.raises(DeclarationError) as error:
        declare()
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (partial(untyped.enrichment, owner), "enrichment: too many positional arguments. Write enrichment(api=…, …)"),
        (partial(untyped.Recent), "Recent: missing a required argument: 'n'. Write Recent(n=…, …)"),
        (partial(untyped.Topics, prefx="a."), "Topics(prefx=…): no such argument. Did you mean prefix?"),
        (partial(untyped.Topics, zzz=1), "Topics(zzz=…): no such argument. Write one of these: prefix, outage"),
        (partial(untyped.Latest, "a", of="b"), "Latest: multiple values for argument 'of'"),
        (partial(of, enrichment=()), "Application(enrichment=…): no such argument. Did you mean enrichments?"),
        (partial(car, windows=timedelta(1)), "Car(windows=…): no such argument. Did you mean window?"),
    ],
)
def test_an_argument_that_there_is_not_is_refused(declare: Callable[[], object], message: str) -> None:
    with pytest.raises(DeclarationError) as error:
        declare()
    assert str(error.value).startswith(message)


def test_what_fits_is_not_changed() -> None:
    probabilities: Any = [0, 0.5]
    assert untyped.Quantiles(probabilities).probabilities is probabilities
    assert of(enrichments=[], apis=None, emit=Emit.BATCH, skew=timedelta(0)).enrichments == ()
    assert derived(tables=(PLAIN,)).tables == (PLAIN,)
    assert untyped.Webhook("p", policy=Policy()).policy == Policy()
    assert untyped.Suite(of()).applications[0].processor is None
    assert Processor(Plain).of is Plain


def test_a_declaration_is_copied_and_has_a_signature() -> None:
    for declared in (untyped.Recent(3), untyped.QueryOptions(indexes=("a",)), untyped.Coverage(timedelta(1))):
        assert pickle.loads(pickle.dumps(declared)) == copy.deepcopy(declared) == declared  # noqa: S301  # its own
    assert [*signature(Recent).parameters] == ["n", "of", "where", "alias"]


@dataclass(frozen=True)
class Last(Latest):
    """A reducer of an application, with an annotation that only the type checker knows."""

    digits: "Decimal | None" = None

    @override
    def sql(self, x: str) -> str:
        return super().sql(x)


def test_an_annotation_that_cannot_be_read_checks_nothing() -> None:
    digits: Any = 3
    assert Last(digits=digits).digits == digits


@dataclass(frozen=True)
class Pair(Latest):
    """A reducer of an application, with kinds that no reducer of ours has."""

    pair: tuple[int, str] = (1, "a")
    several: tuple = ()  # type: ignore[type-arg]
    more: Mapping = field_of_class(default_factory=dict)  # type: ignore[type-arg]


class Free(Latest):
    """A reducer of an application that passes its arguments on."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)


def test_a_reducer_of_an_application_has_any_arguments() -> None:
    assert Pair(pair=(2, "b"), several=(1, "c"), more={1: 2}).pair == (2, "b")
    assert Free(of="speed").of == "speed"
    with pytest.raises(DeclarationError, match=r"Free\(where='x'\): is no Filter"):
        Free(where="x")
    with pytest.raises(DeclarationError, match=r"Pair\(several=3\): is no tuple. Write several=\(…,\)"):
        Pair(several=3)  # type: ignore[arg-type]


def test_a_class_of_states_may_have_arguments_of_its_own() -> None:
    class Labelled(State):
        label: ClassVar[str]

        def __init_subclass__(cls, label: str = "", **kwargs: Any) -> None:
            super().__init_subclass__(**kwargs)
            cls.label = label

    class Cars(Labelled, label="a", lifetime=timedelta(1), where=field("v") > 1, frozen=False):
        n: Annotated[int, Count()]

    assert (Cars.label, Cars.lifetime) == ("a", timedelta(1))
