"""After kill -9 of the process that writes, the position and the data agree."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from services.query.storage.lmdb_store import LmdbStore
from tests.services.query.storage.declared import named

if TYPE_CHECKING:
    from pathlib import Path

KEYS = 300
WRITE = """
import sys
from pathlib import Path
from services.query.storage.lmdb_store import LmdbStore
from tests.services.query.storage.declared import named, update
from tests.services.query.storage.test_killed import KEYS
store = LmdbStore(Path(sys.argv[1]), named(), "boot")
version = store.position(0) or 0
while True:
    version += 1
    store.apply([update(str(key), 20 * version, version, status=str(version)) for key in range(KEYS)], {0: version})
    print(version, flush=True)
"""


@pytest.mark.parametrize("printed", [1, 20, 77])
def test_position_and_data_agree_after_a_kill(tmp_path: Path, printed: int) -> None:
    told = 0
    for _ in range(3):
        with subprocess.Popen([sys.executable, "-c", WRITE, tmp_path], stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            for _, line in zip(range(printed), writer.stdout, strict=False):
                told = int(line)
            writer.kill()
        store = LmdbStore(tmp_path, named(), "boot")
        position = store.position(0)
        assert position is not None
        assert position >= told
        assert {one and one.version for one in store.gets([str(key) for key in range(KEYS)])} == {position}
        page = store.page(prefix="", after=None, limit=KEYS, where={"state.status": str(position)}, partitions=(0,))
        assert len(page.items) == KEYS
        store.close()
