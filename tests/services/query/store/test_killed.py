"""After kill -9 of the process that writes, the position and the data agree."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from services.query.store.scan import Scan
from services.query.store.store import Store
from tests.services.query.store.declared import HISTORY, named

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

KEYS = 300
WRITE = """
import sys
from pathlib import Path
from services.query.store.store import Store
from tests.services.query.store.declared import named, update
from tests.services.query.store.test_killed import KEYS
store = Store(Path(sys.argv[1]), named(history=int(sys.argv[2])), "boot")
version = store.position(0) or 0
while True:
    version += 1
    store.apply([update(str(key), 20 * version, version, status=str(version)) for key in range(KEYS)], {0: version})
    print(version, flush=True)
"""


@pytest.mark.parametrize("history", [HISTORY, 1], ids=["plain", "mapped"])
@pytest.mark.parametrize("printed", [1, 20, 77])
def test_position_and_data_agree_after_a_kill(tmp_path: Path, printed: int, history: int) -> None:
    acknowledged = 0
    for _ in range(3):
        with subprocess.Popen(
            [sys.executable, "-c", WRITE, tmp_path, str(history)], stdout=subprocess.PIPE, text=True
        ) as writer:
            assert writer.stdout is not None
            for _, line in zip(range(printed), writer.stdout, strict=False):
                acknowledged = int(line)
            writer.kill()
        store = Store(tmp_path, named(history=history), "boot")
        position = store.position(0)
        assert position is not None
        assert position >= acknowledged
        assert {one and one.version for one in store.get_many([str(key) for key in range(KEYS)])} == {position}
        page = store.scan(Scan((0,), KEYS, where={"state.status": str(position)}))
        assert len(page.items) == KEYS
        store.close()


FORGET = """
import sys
from pathlib import Path
from services.query.store.store import Store
from tests.services.query.store.declared import named, update
store = Store(Path(sys.argv[1]), named(history=int(sys.argv[2])), "boot")
store.apply([update(f"{key:06}", 1, 1, partition=key % 2, status="x") for key in range(60_000)], {0: 1, 1: 1})
while not store.clear_partition(0):
    print("some", flush=True)
    sys.stdin.readline()
"""
"""It waits after each part, because the test may get the processor only when all is cleared."""


@pytest.mark.parametrize("history", [HISTORY, 1], ids=["plain", "mapped"])
@pytest.mark.parametrize("printed", [1, 3])
def test_a_partition_half_cleared_at_a_kill_is_cleared_after_a_restart(
    tmp_path: Path, printed: int, history: int
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", FORGET, tmp_path, str(history)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    ) as writer:
        assert writer.stdin is not None
        assert writer.stdout is not None
        for _ in range(printed):
            writer.stdout.readline()
            writer.stdin.write("\n")
        writer.kill()
    store = Store(tmp_path, named(history=history), "boot")
    assert store.position(0) is None
    assert store.is_clear_pending(0)
    assert store.key_count() > 30_000
    while not store.clear_partition(0):
        pass
    assert store.key_count() == 30_000
    assert len(store.scan(Scan((1,), 9, where={"state.status": "x"})).items) == 9
    store.close()
