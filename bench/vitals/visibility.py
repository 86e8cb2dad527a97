"""How long a chunk takes until its samples are pushed to a watcher, and until a GET of the open blob returns them."""

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from datetime import datetime

import orjson

from bench.harness import topics
from bench.harness.background import Background
from bench.harness.figures import Figures, percentiles
from bench.harness.jobs import Job
from bench.harness.oracle import OracleReport
from bench.harness.plan import Plan, Site
from bench.harness.process import RunningJob
from bench.harness.progress import Show
from bench.harness.receive import Received, receive
from bench.harness.results import RunResult
from bench.query.facts import service_facts
from bench.query.store_clients import HttpStoreClient
from bench.vitals.application import blobs, suite
from bench.vitals.chunks import SentChunk, steady_chunks
from bench.vitals.jobs import VITALS_SERVICE
from bench.vitals.measures import ChunkVisibility
from bench.vitals.probe import Probe
from bench.vitals.watch import PushedChunk, watch

LEAD_S = 2.0
"""How long the watcher is there before it counts."""
SETTLE_S = 3.0
"""How long to wait for the last chunks."""


class ChunkVisible:
    """Measures the job of the example, its raw source included, together with the service."""

    def __init__(self, chunks: ChunkVisibility, plan: Plan, site: Site) -> None:
        self._chunks, self._plan, self._site = chunks, plan, site

    def measure(self, job: Job, run: int, show: Show) -> RunResult:
        """One run. Raises RunFailedError."""
        chunks, boot, name = self._chunks, self._site.boot, f"{self._chunks.name}-{job.name}-{run}"
        configs = {topic.name: topic.config() for topic in suite.catalogue()}
        topics.renew(boot, tuple(configs), configs)
        with (
            service_facts(self._site, name) as facts,
            RunningJob(VITALS_SERVICE, self._plan, self._site, f"{name}-service", facts) as service,
            RunningJob(job, self._plan, self._site, name) as running,
            Background(steady_chunks, boot, chunks.patients) as load,
            closing(HttpStoreClient(int(facts["port"]), blobs.name)) as client,
        ):
            probe = Probe(boot, client, (running, service))
            show("starting", 0.0)
            probe.read_for(0)
            show("warming up", 0.2)
            probe.read_for(chunks.warm_s)
            with (
                Background(watch, int(facts["port"])) as watcher,
                Background(receive, boot, blobs.topics.events) as decoded,
            ):
                probe.read_for(LEAD_S)
                show("sending chunks and reading blobs", 0.4)
                begin, used = time.time(), running.group.cpu_s()
                took = probe.read_for(chunks.seconds)
                end, used = time.time(), running.group.cpu_s() - used
                sent = load.finish()
                time.sleep(SETTLE_S)
                pushed, events = watcher.finish(), decoded.finish()
        sent = {chunk: at for chunk, at in sent.items() if begin <= at < end}
        figures = latencies(sent, decoded_at(events), pushed, took) | {"cores": used / (end - begin)}
        return RunResult(chunks.name, job.name, run, figures, oracle_report(sent, pushed), size=self._plan.size(chunks))


def decoded_at(events: Iterable[Received]) -> dict[SentChunk, float]:
    """Return the time at which a consumer received the event of each chunk."""
    found = dict[SentChunk, float]()
    for at, value in events:
        if not value:
            continue
        event = orjson.loads(value)
        found.setdefault(SentChunk(event["patient"], round(datetime.fromisoformat(event["ts"]).timestamp())), at)
    return found


def latencies(
    sent: Mapping[SentChunk, float],
    decoded: Mapping[SentChunk, float],
    pushed: Mapping[SentChunk, PushedChunk],
    read_s: Sequence[float],
) -> Figures:
    """From the sending of a chunk until it is decoded, is pushed, and is read."""
    times = {
        "decoded": [decoded[one] - at for one, at in sent.items() if one in decoded],
        "push": [pushed[one].at - at for one, at in sent.items() if one in pushed],
        "visible": read_s,
    }
    return {f"{what}_{name}": value for what, took in times.items() for name, value in percentiles(took).items()}


def oracle_report(sent: Mapping[SentChunk, float], pushed: Mapping[SentChunk, PushedChunk]) -> OracleReport:
    """Whether each chunk was pushed, with its own samples."""
    found = [pushed[one] for one in sent if one in pushed]
    return OracleReport(
        events=len(sent),
        snapshots=len(found),
        missing=len(sent) - len(found),
        wrong=sum(not one.is_right for one in found),
        given="chunks",
        gives="push of its samples",
    )
