"""The batch that publishes each window of a state that was restored, or activated."""

from typing import Any

import pytest
from typing_extensions import override

from spark_app.checkpoint.commit_log import COMMITS, OFFSETS
from spark_app.checkpoint.damage import forget_batches
from spark_app.checkpoint.republish import FILE, is_republication_due, repeat_request, request_republication
from tests.simulation.savepoints import MemoryFolder


class PowerlessFolder(MemoryFolder):
    """A folder after a power failure: a file that was written in place is empty, and one that was created is whole."""

    @override
    def overwrite(self, name: str, content: Any) -> None:
        super().overwrite(name, "")


def test_a_request_is_there_after_a_power_failure() -> None:
    """The activation after it is: without the request, its job would publish idle windows under no new epoch."""
    folder: Any = PowerlessFolder("a generation")
    request_republication(folder)
    for batch in (4, 5):
        folder.create(f"{OFFSETS}/{batch}", "v1")
        folder.create(f"{COMMITS}/{batch}", "v1")
    assert not is_republication_due(folder)
    request_republication(folder)
    assert is_republication_due(folder)


def test_a_request_outlasts_damage_that_the_first_start_finds() -> None:
    """Without it, the job would publish idle windows under no new epoch."""
    folder: Any = MemoryFolder("a generation")
    for batch in range(6):
        commit(folder, batch)
    request_republication(folder)
    forget_batches(folder, 4)
    assert is_republication_due(folder)
    repeat_request(folder)
    assert is_republication_due(folder), "until a batch is committed"
    commit(folder, 4)
    assert not is_republication_due(folder), "once, not until the batch of the request"


@pytest.mark.parametrize("content", ["", "1\ufffd"])
def test_a_request_that_a_crash_of_the_machine_left_unreadable_is_made_anew(content: str) -> None:
    folder: Any = MemoryFolder("a generation")
    commit(folder, 3)
    folder.overwrite(FILE, content)
    assert is_republication_due(folder)
    repeat_request(folder)
    commit(folder, 4)
    assert not is_republication_due(folder)


@pytest.mark.parametrize(("committed", "planned"), [((), (0,)), ((4, 5), (4, 5)), ((4, 5), (4, 5, 6))])
def test_the_next_batch_repeats_no_batch_that_was_planned_only(
    committed: tuple[int, ...], planned: tuple[int, ...]
) -> None:
    """Its windows would be published as they were when it was planned, under the newest epoch."""
    folder: Any = MemoryFolder("the checkpoint")
    for log, batches in ((COMMITS, committed), (OFFSETS, planned)):
        for batch in batches:
            folder.overwrite(f"{log}/{batch}", "v1")
            folder.overwrite(f"{log}/.{batch}.crc", "crc")
    request_republication(folder)
    assert is_republication_due(folder)
    for log in (COMMITS, OFFSETS):
        assert set(folder.names(log)) == {name for batch in committed for name in (str(batch), f".{batch}.crc")}
    folder.overwrite(f"{OFFSETS}/6", "v1")
    folder.overwrite(f"{COMMITS}/6", "v1")
    assert not is_republication_due(folder)


def commit(folder: Any, batch: int) -> None:
    """Write a batch to both logs."""
    for log in (OFFSETS, COMMITS):
        folder.overwrite(f"{log}/{batch}", "v1")
