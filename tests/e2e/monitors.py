"""Two applications over the chunks of monitors, which a raw source decodes, and direct events, in short windows."""

import os
from datetime import timedelta
from typing import Annotated

from contracts import Application, Count, Coverage, Emit, State, Suite, Topics
from examples.vitals.chunk import PULSE, Chunk, waveforms

SECOND = timedelta(seconds=1)


class Blob(State, key="patient", window=10 * SECOND, grace=20 * SECOND):
    """Ten seconds of a patient: the numbers of events and of chunks, and the seconds that the chunks cover."""

    events: Annotated[int, Count()]
    chunks: Annotated[int, Count(of="pulse")]
    covered: Annotated[list[list[int]], Coverage(SECOND, of="pulse", rate=PULSE.rate)]


def monitors(prefix: str) -> Suite:
    """The suite, with this prefix of all its topics: one application emits each event, the other closed windows."""

    def application(name: str, emit: Emit) -> Application:
        topics = Topics(prefix=f"{prefix}{name}.", events=f"{prefix}chunks", partitions=2)
        raw = (waveforms(f"{prefix}waveforms"),)
        return Application(
            name=name, event=Chunk, state=Blob, topics=topics, raw=raw, skew=SECOND, emit=emit, emit_interval=3 * SECOND
        )

    return Suite(application("blobs", Emit.EVENT), application("reports", Emit.CLOSE))


suite = monitors(os.environ.get("WINDOWS_PREFIX", ""))
