"""Encodes stream items: as server-sent events, and as messages and frames of a WebSocket."""

from __future__ import annotations

from struct import pack
from typing import TYPE_CHECKING, Any

import orjson

from services.query.push.event import EventKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from services.query.push.event import Answer
    from services.query.push.stream_items import Delivery


TEXT = 0x81
"""The first byte of an unfragmented text frame."""
SHORT, LONG = 126, 1 << 16
"""From these sizes on, a frame has its size in two bytes, and in eight."""
_SPACES = bytes.maketrans(b"\r\n", b"  ")


def event_of(answer: Answer) -> bytes:
    """The server-sent event of an answer, encoded once for all clients. Values only have an id to resume from."""
    if answer.sse is None:
        name = f"id: {answer.tag}\n" if answer.kind is EventKind.STATE else ""
        head = f"event: {answer.kind}\n{name}data: ".encode()
        answer.sse = head + _one_line(answer.body) + b"\n\n"
    return answer.sse


def control_event(name: str, facts: Mapping[str, Any]) -> bytes:
    """An event about the stream itself."""
    return b"event: " + name.encode() + b"\ndata: " + orjson.dumps(facts) + b"\n\n"


def chunk(data: bytes) -> bytes:
    """Data as a chunk of a body of unknown length, which HTTP/1.0 does not know: RFC 9112, section 7.1."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def websocket_frame(text: bytes) -> bytes:
    """A text as a frame of a server: RFC 6455, section 5.2."""
    size = len(text)
    if size < SHORT:
        return bytes((TEXT, size)) + text
    if size < LONG:
        return pack("!BBH", TEXT, SHORT, size) + text
    return pack("!BBQ", TEXT, SHORT + 1, size) + text


def delivery_message(delivery: Delivery) -> bytes:
    """A delivery as a message: the members that differ between clients precede those that do not."""
    answer = delivery.answer
    head = b'{"type":"' + answer.kind.encode() + b'","ids":' + orjson.dumps(delivery.ids)
    if answer.kind is EventKind.STATE:
        return head + b',"tag":"' + answer.tag.encode() + b'","answer":' + answer.body + b"}"
    return head + b"," + answer.body[1:]


def control_message(kind: str, facts: Mapping[str, Any]) -> bytes:
    """A message about the connection or a subscription."""
    return orjson.dumps({"type": kind, **facts})


def _one_line(body: bytes) -> bytes:
    """A line break in JSON is only whitespace between tokens, and would end the data of the event."""
    return body.translate(_SPACES) if b"\n" in body or b"\r" in body else body
