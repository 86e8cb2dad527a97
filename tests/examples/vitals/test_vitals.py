"""The example in plain Python: what arrives of the recordings, decoded and folded, is what was recorded."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from contracts import RawRecord
from contracts.records.decode import Decoder
from contracts.records.fold import Fold
from contracts.records.raw import RawDecoder
from contracts.records.record import Record, timestamp_ms
from examples.vitals.application import is_complete, suite
from examples.vitals.arrivals import LATE, LOST, REPEATED, arrivals, transmission
from examples.vitals.chunk import CHANNELS, PULSE
from examples.vitals.rates import heart_rate
from tests.examples.vitals.oracle import WindowKey, expected

if TYPE_CHECKING:
    from contracts import Application
    from contracts.wire import Snapshot

SEED, PATIENTS = 7, 4
SECONDS = range(1_767_225_600 - 25, 1_767_225_600 + 30)
"""Around the beginning of an hour."""
NOW = datetime.fromtimestamp(SECONDS.stop, UTC)
blobs, hours = suite.applications
((_, raw),) = suite.raw_sources()


def folded(application: Application) -> dict[WindowKey, Snapshot]:
    """The last snapshot of each window."""
    decoder, events, fold = RawDecoder(application, raw), Decoder(application, clock=lambda: NOW), Fold(application)
    newest = {}
    sent = [arrival for number in SECONDS for arrival in arrivals(SEED, PATIENTS, number)]
    for offset, one in enumerate(sent):
        for event in decoder.decode(RawRecord(raw.topic, 0, offset, NOW, one.patient.encode(), one.value)):
            for delta in events.event(Record("", 0, offset, timestamp_ms(NOW), event.key, event.value)):
                snapshot = fold.add(delta)
                assert snapshot is not None
                newest[snapshot.window] = snapshot
    return newest


def test_blobs_have_the_samples_of_the_recordings_and_gaps_where_chunks_were_lost() -> None:
    found = {
        window: {one.name: snapshot.state[one.name] for one in CHANNELS} for window, snapshot in folded(blobs).items()
    }
    known = expected(SEED, PATIENTS, SECONDS).blobs
    assert found == known
    assert any(is_complete(blob["pulse"]) for blob in known.values())
    assert all(any(None in blob[one.name] for blob in known.values()) for one in CHANNELS)


def test_hours_have_the_seconds_with_data() -> None:
    found = {window: snapshot.state["covered"] for window, snapshot in folded(hours).items()}
    known = expected(SEED, PATIENTS, SECONDS).hours
    assert found == known
    assert any(len(spans) > 1 for spans in known.values())


def test_the_seed_decides_losses_repetitions_and_delays() -> None:
    transmissions = [transmission(SEED, PULSE, patient, number) for patient in range(50) for number in range(200)]
    shares = [
        sum(test(one) for one in transmissions) / len(transmissions)
        for test in (lambda f: not f.count, lambda f: f.count == 2, lambda f: f.delay > 0)
    ]
    for share, wanted in zip(shares, (LOST, REPEATED, LATE), strict=True):
        assert 0.5 * wanted < share < 2 * wanted
    assert transmissions == [
        transmission(SEED, PULSE, patient, number) for patient in range(50) for number in range(200)
    ]


def test_a_pulse_has_a_heart_rate_and_a_flat_line_has_none() -> None:
    rates = expected(SEED, PATIENTS, SECONDS).rates()
    assert rates
    assert all(rate is not None and 50 < rate < 150 for rate in rates.values())
    assert heart_rate([512] * 1000, 100) is None
