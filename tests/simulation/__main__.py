"""Runs the scripts of many seeds: `python -m tests.simulation --seeds 1000`. Prints the shortest script that fails.

With `--instances` they are of instances of the query service, without of the loop.
"""

from __future__ import annotations

import argparse
import logging
import secrets
import sys
import time
from typing import Any

from tests.simulation.generate import script as script_of
from tests.simulation.instances.generate import script as instances_script_of
from tests.simulation.shrink import as_test, shrunk
from tests.simulation.verdict import instances_verdict, verdict

MOST_FIRST = 1 << 32


def main() -> int:
    """Run the seeds; return 1 if one fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="the number of scripts")
    parser.add_argument("--first", type=int, default=secrets.randbelow(MOST_FIRST), help="the first seed; else random")
    parser.add_argument("--goes-on", action="store_true", help="run the others after one has failed")
    parser.add_argument("--instances", action="store_true", help="of instances of the query service")
    options = parser.parse_args()
    kind: Any = (instances_script_of, instances_verdict) if options.instances else (script_of, verdict)
    make, judge = kind
    logging.disable(logging.CRITICAL)
    print(f"seeds {options.first} to {options.first + options.seeds - 1}")
    began, failed = time.process_time(), 0
    for number in range(options.seeds):
        script = make(options.first + number)
        if found := judge(script):
            failed += 1
            print(f"\n\nseed {script.seed} fails:", *found[:5], sep="\n  ")
            print(f"\n{as_test(shrunk(script, lambda smaller: bool(judge(smaller))), found)}")
            if not options.goes_on:
                break
        rate = (number + 1) * 60 / (time.process_time() - began)
        print(f"\r{number + 1} scripts, {failed} failed, {rate:.0f} a minute of this core ", end="", flush=True)
    print()
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
