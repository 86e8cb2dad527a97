"""The items of a stream: deliveries, and reports about the stream and its subscriptions."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from services.query.lookup.problems import Problem
    from services.query.push.event import Answer
    from services.query.push.names import ClientLag
    from services.query.push.subscription import Subscription

BATCH_BYTES = 32 * 1024
"""About how much is read and written at once."""


class Delivery(NamedTuple):
    """An answer for some subscriptions of one client, by name. `at`: since when this instance knows of the change."""

    answer: Answer
    ids: list[str]
    at: float


class EarlierVersions(NamedTuple):
    """The earlier versions of a key that the client of a subscription lacks: read when the client takes them."""

    subscription: Subscription
    deliveries: Iterator[list[Delivery]]


class ProgressMark(NamedTuple):
    """How far the client is behind. `complete`: everything known before the mark was sent."""

    lag: ClientLag
    complete: bool


class StreamReset(NamedTuple):
    """The client was so slow that changes were lost: it must read again."""


class InitialStateSent(NamedTuple):
    """The present values of these partitions were sent."""

    subscription: Subscription
    partitions: set[int]


class PartitionsStarted(NamedTuple):
    """Everything after these offsets of the partitions is sent from now on: for another instance."""

    subscription: Subscription
    offsets: dict[int, int]


class SubscriptionDenied(NamedTuple):
    """The client's subscription of this name was ended."""

    name: str
    problem: Problem


class StreamRefused(NamedTuple):
    """The stream ends with this problem."""

    problem: Problem


class CommandResponse(NamedTuple):
    """The response to a command of the client."""

    message: bytes


ControlItem = (
    ProgressMark
    | StreamReset
    | InitialStateSent
    | PartitionsStarted
    | SubscriptionDenied
    | StreamRefused
    | CommandResponse
)
StreamItem = list[Delivery] | ControlItem


def deliver(answer: Answer, subscription: Subscription, at: float, deliveries: list[Delivery]) -> None:
    """Deliver the answer to the subscription: once for all subscriptions that receive the same."""
    for delivery in deliveries:
        if delivery.answer.kind is answer.kind and delivery.answer.body == answer.body:
            delivery.ids.append(subscription.name)
            return
    deliveries.append(Delivery(answer, [subscription.name], at))


def denies(name: str, item: StreamItem | EarlierVersions) -> bool:
    """Return whether the item is the denial of the client's subscription of this name."""
    return isinstance(item, SubscriptionDenied) and item.name == name


def is_earlier(subscription: Subscription, item: StreamItem | EarlierVersions) -> bool:
    """Return whether the item has the earlier versions of the key of the subscription."""
    return isinstance(item, EarlierVersions) and item.subscription is subscription


def size_of(item: StreamItem) -> int:
    """The bytes of the answers of an item."""
    return sum(len(delivery.answer.body) for delivery in item) if isinstance(item, list) else 0


def remove_subscription(subscription: Subscription, item: StreamItem | EarlierVersions) -> bool:
    """Remove the subscription from the item; return whether the item is still for another one, or for the client."""
    if isinstance(item, list):
        for delivery in item:
            if subscription.name in delivery.ids:
                delivery.ids.remove(subscription.name)
        return any(delivery.ids for delivery in item)
    of_one = PartitionsStarted | InitialStateSent | EarlierVersions
    return not (isinstance(item, of_one) and item.subscription is subscription)
