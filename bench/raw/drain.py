"""How fast a raw source is decoded, from a topic that was filled before."""

import time
from itertools import islice
from typing import NamedTuple

from bench.harness import topics
from bench.harness.figures import Figures
from bench.harness.jobs import Job
from bench.harness.load import preload
from bench.harness.plan import Plan, Site
from bench.harness.process import RunningJob
from bench.harness.progress import Show
from bench.harness.results import RunResult
from bench.raw.application import CHUNKS, FORMATS, PREFIX, ChunkFormat
from bench.raw.chunks import Chunks
from bench.raw.measures import RawChunks
from contracts import RawRecord
from contracts.records.raw import RawDecoder
from contracts.types.quantize import EPOCH

EVENTS = f"{PREFIX}events"
MADE = (CHUNKS, EVENTS, f"{PREFIX}dead_letters")
LOOK_S = 0.1
PATIENCE_S = 120.0
"""How long a job may write nothing."""
ALONE = 2_000
"""How many chunks are decoded without a job, to measure the decoder by itself."""


class DecodeProgress(NamedTuple):
    """How far a job is: the time, in seconds, the CPU seconds that it has used, and the number of events."""

    at: float
    cpu_s: float
    events: int


class RawDrain:
    """Each job decodes chunks of its own format."""

    def __init__(self, raw: RawChunks, plan: Plan, site: Site) -> None:
        self._raw, self._plan, self._site = raw, plan, site

    def measure(self, job: Job, run: int, show: Show) -> RunResult:
        """One run of one job. Raises RunFailedError."""
        raw, boot, form = self._raw, self._site.boot, FORMATS[job.name]
        chunks = Chunks(form, raw.chunks)
        topics.renew(boot, MADE)
        preload(boot, CHUNKS, chunks.records(), lambda sent: show(f"sent {sent:,} of {raw.chunks:,} chunks", 0.0))
        with RunningJob(job, self._plan, self._site, f"{raw.name}-{job.name}-{run}") as running:
            samples = self._follow(running, show)
        show("checking every event", 1.0)
        report = chunks.check(value for _, value in topics.records(boot, EVENTS))
        found = figures(samples, raw, form.size) | {"decoder_us": decoder_us(form, chunks)}
        return RunResult(raw.name, job.name, run, found, report, size=self._plan.size(raw))

    def _follow(self, running: RunningJob, show: Show) -> list[DecodeProgress]:
        """Wait until all is decoded. Raises JobExitedError, JobStalledError."""
        chunks, samples, since = self._raw.chunks, [DecodeProgress(0.0, 0.0, 0)], time.monotonic()
        with topics.Counter(self._site.boot, EVENTS) as counter:
            while samples[-1].events < chunks:
                running.require_running()
                if time.monotonic() - since > PATIENCE_S:
                    raise running.stalled(f"more events than {samples[-1].events:,}", PATIENCE_S)
                time.sleep(LOOK_S)
                now = DecodeProgress(time.monotonic(), running.group.cpu_s(), counter.count())
                show(f"{now.events:,} of {chunks:,} events" if now.events else "starting", now.events / chunks)
                if now.events > samples[-1].events:
                    samples.append(now)
                    since = now.at
        return samples


def figures(samples: list[DecodeProgress], raw: RawChunks, size: int) -> Figures:
    """The rate and the cost of the chunks after the skipped ones. No figures if all came at once."""
    begin, end = next(one for one in samples if one.events >= raw.skipped), samples[-1]
    chunks, seconds, cpu_s = end.events - begin.events, end.at - begin.at, end.cpu_s - begin.cpu_s
    found = {"cpu_s": end.cpu_s}
    if seconds > 0:
        found |= {"chunks_per_s": chunks / seconds, "mb_per_s": chunks * size / seconds / 1e6}
    if cpu_s > 0:
        found |= {"chunks_per_cpu_s": chunks / cpu_s, "mb_per_cpu_s": chunks * size / cpu_s / 1e6}
        found["us_per_chunk"] = 1e6 * cpu_s / chunks
    return found


def decoder_us(form: ChunkFormat, chunks: Chunks) -> float:
    """The CPU microseconds for a chunk of the decoder alone: from the record's bytes to the event's."""
    application = form.application
    decoder = RawDecoder(application, application.raw[0])
    records = [
        RawRecord(CHUNKS, 0, number, EPOCH, key.encode(), value)
        for number, (key, value) in enumerate(islice(chunks.records(), ALONE))
    ]
    for record in records[: len(records) // 2]:
        decoder.decode(record)
    used = time.process_time()
    for record in records:
        decoder.decode(record)
    return 1e6 * (time.process_time() - used) / len(records)
