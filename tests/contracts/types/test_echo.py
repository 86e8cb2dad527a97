"""Answers that name what the call requested, and answers that name something else."""

from typing import Annotated, Any
from uuid import UUID

import pytest
from pydantic import BaseModel, Field, StringConstraints, create_model

from contracts import Api, Application, DeclarationError, Echo, Enriched, Event, Latest, State, enrichment
from contracts.types.bounds import bounds
from contracts.types.echo import MismatchError, answer_of, has_echo

ID = "0b6c9a62-6b1c-4e0c-8f3c-5d1f3b0f0d11"


class Plane(BaseModel):
    tailnum: Annotated[str, Echo()]
    seats: int = 0


class Envelope(BaseModel):
    data: Plane


class Listed(BaseModel):
    planes: list[Plane]


def echoing(kind: Any) -> type[BaseModel]:
    return create_model("Answer", key=(Annotated[kind, Echo()], ...))


@pytest.mark.parametrize(
    ("kind", "answered", "requested"),
    [
        (str, "N1", "N1"),
        (str, "7", 7),
        (int, 7, 7),
        (int, 7, "7"),
        (float, 1, 1.0),
        (float, 0.5, "0.5"),
        (UUID, ID, ID),
        (Annotated[str, StringConstraints(to_lower=True)], "N1", "n1"),
        (str | None, "N1", "N1"),
    ],
)
def test_an_answer_with_the_requested_value(kind: Any, answered: Any, requested: Any) -> None:
    answer_of(echoing(kind), {"key": answered}, {"key": requested, "other": 1})


@pytest.mark.parametrize(
    ("kind", "answered", "requested"),
    [(str, "N2", "N1"), (str, "n1", "N1"), (str, "", "N1"), (int, 8, 7), (float, 0.5, 0.25), (str | None, None, "N1")],
)
def test_an_answer_that_names_something_else_is_no_result(kind: Any, answered: Any, requested: Any) -> None:
    with pytest.raises(MismatchError, match=r"another request: Answer\.key: it differs from the key of the call"):
        answer_of(echoing(kind), {"key": answered}, {"key": requested})


@pytest.mark.parametrize(
    ("model", "wrong", "where"),
    [
        (Envelope, {"data": {"tailnum": "N2"}}, "data.tailnum"),
        (Listed, {"planes": [{"tailnum": "N2"}]}, "planes.0.tail"),
    ],
)
def test_it_is_found_inside_other_models(model: type[BaseModel], wrong: Any, where: str) -> None:
    with pytest.raises(MismatchError, match=where):
        answer_of(model, wrong, {"tailnum": "N1"})


def test_the_reason_has_neither_value() -> None:
    with pytest.raises(MismatchError) as error:
        answer_of(Plane, {"tailnum": "a secret"}, {"tailnum": "N1"})
    assert "secret" not in error.value.reason
    assert "N1" not in error.value.reason
    assert error.value.response is None


def test_the_value_may_have_another_name() -> None:
    class Owner(BaseModel):
        plate_number: Annotated[str, Echo("plate"), Field(alias="plateNumber")]

    assert answer_of(Owner, {"plateNumber": "P1"}, {"plate": "P1"}).plate_number == "P1"
    with pytest.raises(MismatchError, match="differs from the plate of the call"):
        answer_of(Owner, {"plateNumber": "P2"}, {"plate": "P1"})


def test_a_value_that_the_call_does_not_have_is_a_wrong_declaration() -> None:
    with pytest.raises(DeclarationError, match=r"Echo\('tailnum'\): .*Give it to the call, as in .*tailnum=tailnum"):
        answer_of(Plane, {"tailnum": "N1"}, {"tail": "N1"})


@pytest.mark.parametrize("context", [None, {}, {"others": 1}, "of others"])
def test_a_model_that_is_no_answer_is_not_compared(context: Any) -> None:
    assert Plane.model_validate({"tailnum": "N2"}, context=context).tailnum == "N2"


def test_whether_a_model_has_one() -> None:
    assert has_echo(Plane)
    assert not has_echo(Listed)


def test_a_result_with_an_echo_may_be_declared_and_is_not_the_jobs_business() -> None:
    class Seen(Event):
        tailnum: str | None = None

    class Craft(State):
        tailnum: Annotated[str | None, Latest()]
        plane: Annotated[Plane | None, Enriched()]

    @enrichment(api="registry")
    async def plane(api: Api, tailnum: str) -> Plane:
        return await api.get("/planes/{tailnum}", Plane, tailnum=tailnum)

    Application(name="fleet", event=Seen, state=Craft, enrichments=(plane,))
    assert bounds(Plane)["tailnum"] == ()
