"""Whether the loop is healthy, and if not, where and what to do: a pure function of its figures and their course."""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.query.console.answers import Figures, Kind, PartNow, Point, Trouble, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

AWAY_S = 5.0
"""A part that does not answer for so long is away; once may be chance."""
LOOKED_BACK_S = 60.0
LEAST_S = 30.0
"""Over how long a lag is looked at, and over how much of it at the least."""
LEAST_LAG = 100
LAG_S = 5.0
"""A lag of less than so many records, or of less than what comes in so many seconds, is no trouble."""
GROWTH_S = 1.0
"""Nor is one that has grown by less than what comes in so many."""
SILENT_S = 20.0
SILENT_AT_FIRST_S = 5.0
LEAST_SILENT = 10
"""Nothing came out for so long beside the time that rates are over, and so many records in 20 s went in."""
LETTERS_SHARE = 0.001
"""The share of records that may become dead letters."""
STILL_S = 600.0
BATCH_S = 60.0
BATCHES = 3
"""A batch not committed for so many of its lengths and a minute, a watermark still for as long and ten, are stuck."""


def verdict(figures: Figures, course: Sequence[Point]) -> Verdict:
    """The troubles, what is likely to cause others first."""
    rules: tuple[Callable[[], Iterator[Trouble]], ...] = (
        lambda: _kafka(figures),
        lambda: _parts(figures),
        lambda: _states(figures),
        lambda: _job(figures),
        lambda: _silence(figures, course),
        lambda: _breakers(figures),
        lambda: _lags(figures, course),
        lambda: _letters(course),
    )
    troubles = tuple(trouble for rule in rules for trouble in rule())
    unknown = figures.not_watched and not troubles
    return Verdict(healthy=None if unknown else not troubles, troubles=troubles)


def _kafka(figures: Figures) -> Iterator[Trouble]:
    if not figures.kafka:
        says = "Kafka does not answer: nothing flows, and what is shown may be old"
        yield _trouble("kafka_away", "kafka", says, "Start the brokers again, or check STATELOOP_KAFKA")


def _parts(figures: Figures) -> Iterator[Trouble]:
    named = (("job", figures.job), ("workers", figures.workers), *figures.others.items())
    for where, parts in named:
        for part in parts:
            if not part.up and part.away_s >= AWAY_S:
                yield _away(where, part)


def _away(where: str, part: PartNow) -> Trouble:
    name = {"job": "The job", "workers": "A worker"}.get(where, f"A part ({where})")
    says = f"{name} at {part.url} has not answered for {part.away_s:.0f} s: {part.why}"
    do = "Look at its log, and start it again; if it is meant to be gone, take it out of STATELOOP_PARTS"
    return _trouble("part_away", where, says, do)


def _states(figures: Figures) -> Iterator[Trouble]:
    for state in figures.states:
        if count := state.roles.get("catching_up", 0):
            says = (
                f"The query service is still catching up with {state.name}: {count} partitions, {state.lag:,} records"
            )
            yield _trouble("catching_up", "query", says, "Wait: reads of these keys are answered once it is there")
        elif state.unowned:
            says = f"Nobody answers for {state.unowned} partitions of {state.name}"
            do = "Look at the instances of the query service: one is away, or they cannot reach the brokers"
            yield _trouble("unowned", "query", says, do)


def _job(figures: Figures) -> Iterator[Trouble]:
    if figures.failures_lately:
        says = f"The job's query failed {figures.failures_lately} times in the last ten minutes, and was started again"
        yield _trouble("job_failing", "job", says, "Look for the cause in the job's log")
    for one in figures.job:
        if one.starting:
            says = f"The job at {one.url} is starting: nothing is published until it runs"
            do = "Wait: it goes on where it was. If it takes minutes, look at its log"
            yield _trouble("job_starting", "job", says, do)
        patience = BATCHES * (one.batch_s or 0.0)
        if one.committed_s is not None and one.committed_s > patience + BATCH_S:
            says = f"The job has committed no batch for {one.committed_s:.0f} s"
            yield _trouble("batch_stuck", "job", says, "Look at its log; if it hangs, restart it: it loses nothing")
        if figures.watermark_still_s is not None and figures.watermark_still_s > patience + STILL_S:
            says = f"The watermark has stood still for {figures.watermark_still_s / 60:.0f} min while records come in"
            do = "No life began meanwhile: look at the devices' first_seen, for nothing expires until one does"
            yield _trouble("watermark_stuck", "job", says, do)


def _silence(figures: Figures, course: Sequence[Point]) -> Iterator[Trouble]:
    """Records go in, and nothing comes out, from a job that is there: its own figures come with its batches only."""
    if any(one.starting or not one.up for one in figures.job):
        return
    is_new = any(one.committed_s is None for one in figures.job)
    patience_ms = 1000 * (SILENT_AT_FIRST_S if is_new else SILENT_S)
    lately = [one for one in course if one.at >= course[-1].at - patience_ms]
    if course[-1].at - course[0].at < patience_ms or any(one.snapshots != 0 or one.dead_letters for one in lately):
        return
    rate = sum((one.events or 0.0) + (one.feedback or 0.0) for one in lately) / len(lately)
    if rate * SILENT_S < LEAST_SILENT:
        return
    says = f"Nothing comes out of the job{' yet' * is_new}, and {rate:.1f} records a second go in"
    wait = "Wait: it has just begun. If it takes minutes, look at its log"
    hangs = "Look at its log; if it hangs, restart it: it loses nothing. It is no fault if all of them came before"
    yield _trouble("job_silent", "job", says, wait if is_new else hangs)


def _breakers(figures: Figures) -> Iterator[Trouble]:
    for api in figures.apis:
        if api.breaker in ("open", "half-open"):
            says = f"The API {api.name} is down: its circuit breaker is {api.breaker}, {api.held:,} requests wait"
            if (last := api.failure) is not None:
                says += f". The last {last.count:,} calls that failed: {last.reason}, at {last.at:%H:%M:%S} UTC"
            do = "Look at the API itself; requests wait, and are made by themselves once it is back"
            yield _trouble("breaker_open", f"api:{api.name}", says, do)


def _lags(figures: Figures, course: Sequence[Point]) -> Iterator[Trouble]:
    rates = {what: topic.rate or 0.0 for what, topic in figures.topics.items()}
    read, snapshots = rates.get("events", 0.0) + rates.get("feedback", 0.0), rates.get("snapshots", 0.0)
    lately = [one for one in course if one.at >= course[-1].at - LOOKED_BACK_S * 1000]
    job = "Look at its CPU and at the length of its batches; give it more cores (docs/how-to/scaling.md)"
    workers = "Start more workers, up to one for each partition, or let the API be called more at once"
    query = "Look at the query service's CPU and disk, or start another instance"
    for where, what, lags, rate, do in (
        ("job", "the job", [one.job_lag for one in lately], read, job),
        ("workers", "the workers", [one.worker_lag for one in lately], snapshots, workers),
        ("query", "the query service", [one.query_lag for one in lately], snapshots, query),
    ):
        if lately and lately[-1].at - lately[0].at >= LEAST_S * 1000 and _grows(lags, rate):
            says = f"The lag of {what} grows: {lags[-1]:,} records wait"
            yield _trouble("lag_growing", where, says, do)


def _grows(lags: Sequence[int | None], rate: float) -> bool:
    """Whether the least of the last third is well above the most of the first, so that no swing counts as growth."""
    known = [lag for lag in lags if lag is not None]
    third = len(known) // 3
    if not third or known[-1] < max(LEAST_LAG, LAG_S * rate):
        return False
    return min(known[-third:]) - max(known[:third]) > max(LEAST_LAG, GROWTH_S * rate)


def _letters(course: Sequence[Point]) -> Iterator[Trouble]:
    lately = [one for one in course if one.at >= course[-1].at - LOOKED_BACK_S * 1000]
    letters = sum(one.dead_letters or 0.0 for one in lately)
    records = sum((one.events or 0.0) + (one.feedback or 0.0) for one in lately)
    if letters > LETTERS_SHARE * records:
        a_minute = 60 * letters / len(lately)
        says = f"Dead letters rise: some {max(1, round(a_minute))} in the last minute"
        do = "See their reasons; mend the cause, and bring them back with stateloop redrive"
        yield _trouble("dead_letters_rising", "dead_letters", says, do)


def _trouble(what: Kind, where: str, says: str, do: str) -> Trouble:
    return Trouble(what=what, where=where, says=says, do=do)
