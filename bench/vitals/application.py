"""The applications of `examples/vitals`, on the topics of the benchmark."""

from bench.harness.topics import PARTITIONS
from contracts import Application, State, Suite, Topics
from contracts.model.enrichment import Enrichment
from examples.vitals.application import heart_rate
from examples.vitals.chunk import Chunk, waveforms
from examples.vitals.state import Blob, Hour


def _application(name: str, state: type[State], *enrichments: Enrichment) -> Application:
    topics = Topics(prefix=f"{name}.", events="chunks", partitions=PARTITIONS)
    raw = (waveforms("waveforms"),)
    return Application(name=name, event=Chunk, state=state, enrichments=enrichments, topics=topics, raw=raw)


blobs, hours = _application("blobs", Blob, heart_rate), _application("hours", Hour)
suite = Suite(blobs, hours)
