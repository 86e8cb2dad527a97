from __future__ import annotations

import subprocess
import sys

from tests.deadline import DEADLINE_S
from tests.services.tools.broker.embedded import CHECKOUT, free_ports, reserve_port

TRY = """import sys
from tests.services.tools.broker.embedded import reserve_port
print(*(reserve_port(int(port)) for port in sys.argv[1:]))
"""


def test_a_reserved_port_is_refused_to_this_process_and_to_every_other() -> None:
    first = free_ports(2)
    ports = range(first, first + 2)
    assert not any(map(reserve_port, ports))
    command = [sys.executable, "-c", TRY, *map(str, ports)]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=DEADLINE_S, check=True)
    assert done.stdout == "False False\n"
