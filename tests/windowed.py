"""Windowed states, and strategies for their windows."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from hypothesis import strategies as st

from contracts import Count, State
from contracts.model.state import MAX_WINDOWS

MICROSECOND = timedelta(microseconds=1)


@st.composite
def spans(draw: st.DrawFn) -> tuple[timedelta, timedelta, timedelta]:
    """Give the size, the step and the offset of windows."""
    every = draw(st.integers(1, 10**12)) * MICROSECOND
    offset = draw(st.integers(0, every // MICROSECOND - 1)) * MICROSECOND
    return every * draw(st.integers(1, MAX_WINDOWS)), every, offset


def windowed(window: timedelta, every: timedelta, offset: timedelta) -> type[State]:
    """A state that counts the events of each of these windows."""

    class Views(State, key="page", window=window, every=every, offset=offset):
        views: Annotated[int, Count()]

    return Views
