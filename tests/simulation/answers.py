"""What the enrichments of a run must end with, and the calls that snapshots explain, from what the APIs answer alone.

It repeats by hand what the declarations of `application.py` mean, and shares no code with the product but the
fingerprints, which name requests.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode

from contracts.planning.fingerprint import fingerprint, round_fingerprint
from contracts.wire import Feedback
from tests.simulation.api import true_answer
from tests.simulation.application import LEAST_LOAD, MOST_ROUNDS, STEP
from tests.simulation.script import FORGED, Forged
from tests.simulation.states import EPOCH

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from contracts import Application
    from contracts.wire import Snapshot
    from tests.simulation.oracle import Window
    from tests.simulation.script import Step

    Result = dict[str, Any] | None
    Answers = dict[str, tuple[str, Result]]
    """The status and the result of each enrichment that has an answer."""

REACH = 0.75
"""The distance in steps up to which a value keeps the multiple of its last request."""


class Request(NamedTuple):
    """A request of an enrichment: the target of its call, and its inputs."""

    enrichment: str
    target: str
    inputs: dict[str, Any]
    round: int = 0
    """The number of the round of an iterative enrichment; 0 for another one."""
    read: Result = None
    """The result of the round before."""

    def fingerprint(self, application: Application) -> str:
        """Return the fingerprint of its answer."""
        named = fingerprint(application.by_name[self.enrichment], self.inputs)
        return round_fingerprint(named, self.round, self.read) if self.round else named


class Explained(NamedTuple):
    """The calls that snapshots explain, by target, and the answers; and the true result by fingerprint."""

    calls: Counter[str]
    answers: Counter[tuple[Window, str, str]]
    """By window, enrichment and fingerprint."""
    results: dict[tuple[str, str], Result]


def accepted_forgery(step: Step) -> Feedback | None:
    """Return a forged answer of the first epoch; None for another step."""
    if not isinstance(step, Forged) or step.topic != "feedback":
        return None
    try:
        answer = Feedback.model_validate_json(step.value or b"")
    except ValueError:
        return None
    return answer if (answer.fingerprint, answer.epoch) == (FORGED, EPOCH) else None


def explained(application: Application, windows: Mapping[Window, Sequence[Snapshot]]) -> Explained:
    """Return the calls that these snapshots explain: one for each change of the inputs of an enrichment."""
    found = Explained(Counter(), Counter(), {})
    if not application.enrichments:
        return found
    fingerprints: dict[tuple[str, str], str] = {}
    for window, snapshots in windows.items():
        former: set[tuple[str, str]] = set()
        for snapshot in snapshots:
            requests = {(one.enrichment, one.target): one for one in _possible_requests(application, snapshot)}
            for call in requests.keys() - former:
                name, called = call
                if call not in fingerprints:
                    fingerprints[call] = requests[call].fingerprint(application)
                    found.results[name, fingerprints[call]] = true_answer(called)
                found.calls[called] += 1
                found.answers[window, name, fingerprints[call]] += 1
            former = set(requests)
    return found


def _possible_requests(application: Application, snapshot: Snapshot) -> Iterator[Request]:
    """The requests that a snapshot calls for. The owner in its slot may be that of a former plate.

    An answer of a later version is that of a job that reads again what it has read before: it has no result yet.
    """
    state, slot = snapshot.state, snapshot.enrichments.get("owner")
    owner = slot.result if slot and "plate" in state else None
    if "plate" in state:
        yield owner_request(state["plate"])
    owners = [owner, None] if owner and slot and slot.order >= snapshot.order else [owner]
    for known in owners:
        if "fit" in application.by_name:
            yield from _estimates(state["load"], known)
        elif _has_quote(application, state["load"]):
            yield _quote(state["load"], known)
    if owner is not None and "street" in application.by_name:
        yield _street(owner)


def _estimates(load: int, owner: Result) -> Iterator[Request]:
    """The rounds of all multiples that may stand for a load, and the requests that need the last result."""
    for multiple in _multiples(load):
        rounds = list(_rounds(multiple, owner))
        yield from rounds
        if (fit := true_answer(rounds[-1].target)) is not None:
            yield _offer(fit)


def true_answers(application: Application, snapshot: Snapshot) -> Answers:
    """Return the true answers for the state of a snapshot.

    Of the multiples that may stand for a load, it is the one whose estimate the snapshot has.
    """
    if not application.enrichments:
        return {}
    state, owner = snapshot.state, None
    found: Answers = {}
    if "plate" in state:
        owner = true_answer(owner_request(state["plate"]).target)
        found["owner"] = _answer(owner)
        if "street" in application.by_name:
            found["street"] = ("skipped", None) if owner is None else _answer(true_answer(_street(owner).target))
    if "quote" in application.by_name:
        quote = _answer(true_answer(_quote(state["load"], owner).target))
        return found | {"quote": quote if _has_quote(application, state["load"]) else ("skipped", None)}
    ends = [true_answer(list(_rounds(multiple, owner))[-1].target) for multiple in _multiples(state["load"])]
    slot = snapshot.enrichments.get("fit")
    fit = slot.result if slot and slot.result in ends else ends[0]
    offer = ("skipped", None) if fit is None else _answer(true_answer(_offer(fit).target))
    return found | {"fit": _answer(fit), "offer": offer}


def _answer(result: Result) -> tuple[str, Result]:
    return ("absence" if result is None else "result"), result


def _multiples(load: int) -> list[int]:
    """The multiples of the step that may stand for a load."""
    nearest = round(load / STEP)
    within = (number for number in range(nearest - 1, nearest + 2) if abs(load / STEP - number) <= REACH)
    return [number * STEP for number in within]


def _rounds(load: int, owner: Result) -> Iterator[Request]:
    """The rounds of an estimate: the last one is the declared one, repeats its result, or has none."""
    read: Result = None
    for number in range(1, MOST_ROUNDS + 1):
        value = "none" if read is None else read["value"]
        target = "/fits?" + urlencode({"load": load, "name": _name(owner), "value": value})
        yield Request("fit", target, {"load": load, "owner": owner}, number, read)
        result = true_answer(target)
        if result is None or result == read:
            return
        read = result


def _has_quote(application: Application, load: int) -> bool:
    return application.name != "refreshed" or load % 100 >= LEAST_LOAD


def owner_request(plate: str) -> Request:
    """Return the request of the owner of a plate."""
    return Request("owner", f"/owners/{plate}", {"plate": plate})


def _street(owner: dict[str, Any]) -> Request:
    return Request("street", "/streets?" + urlencode({"name": owner["name"]}), {"owner": owner})


def _quote(load: int, owner: Result) -> Request:
    target = "/quotes?" + urlencode({"load": load, "name": _name(owner)})
    return Request("quote", target, {"load": load, "owner": owner})


def _offer(fit: dict[str, Any]) -> Request:
    return Request("offer", "/offers?" + urlencode({"value": fit["value"]}), {"fit": fit})


def _name(owner: Result) -> str:
    return owner["name"] if owner else "nobody"
