"""Items of a stream as they are written: events of SSE, and messages of a WebSocket."""

from __future__ import annotations

from struct import pack
from typing import TYPE_CHECKING, Any

import orjson

from services.query.push.notification import NotificationKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from services.query.push.notification import Notification
    from services.query.push.send_queue import Delivery
    from services.query.push.subscription import Subscription


TEXT = 0x81
"""The first byte of a whole text."""
SHORT, LONG = 126, 1 << 16
"""From these sizes on, a frame tells its size in two bytes, and in eight."""
_SPACES = bytes.maketrans(b"\r\n", b"  ")


def event_of(notice: Notification) -> bytes:
    """A notice as an event, made once for all who get it. Only a value has an id: after it a client can go on."""
    if notice.sse is None:
        name = f"id: {notice.tag}\n" if notice.kind is NotificationKind.STATE else ""
        notice.sse = _chunk(f"event: {notice.kind}\n{name}data: ".encode() + _one_line(notice.body) + b"\n\n")
    return notice.sse


def control_event(name: str, facts: Mapping[str, Any]) -> bytes:
    """An event about the stream itself."""
    return _chunk(b"event: " + name.encode() + b"\ndata: " + orjson.dumps(facts) + b"\n\n")


def websocket_frame(text: bytes) -> bytes:
    """A text as a server's frame: RFC 6455, section 5.2."""
    size = len(text)
    if size < SHORT:
        return bytes((TEXT, size)) + text
    if size < LONG:
        return pack("!BBH", TEXT, SHORT, size) + text
    return pack("!BBQ", TEXT, SHORT + 1, size) + text


def delivery_message(letter: Delivery[Subscription]) -> bytes:
    """A letter as a message: what differs between clients stands before what does not."""
    notice = letter.notice
    ids = orjson.dumps([one.name for one in letter.subscriptions])
    head = b'{"type":"' + notice.kind.encode() + b'","ids":' + ids
    if notice.kind is NotificationKind.STATE:
        return head + b',"tag":"' + notice.tag.encode() + b'","answer":' + notice.body + b"}"
    return head + b"," + notice.body[1:]


def control_message(kind: str, facts: Mapping[str, Any]) -> bytes:
    """A message about the connection or a subscription."""
    return orjson.dumps({"type": kind, **facts})


def _chunk(data: bytes) -> bytes:
    """A part of a body whose length is not known: RFC 9112, section 7.1."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def _one_line(body: bytes) -> bytes:
    """A line break in JSON is only ever space between its parts, and would end the event's data."""
    return body.translate(_SPACES) if b"\n" in body or b"\r" in body else body
