"""A client whose process kills itself in the middle of a fit: python killed_client.py PARAMETERS.

PARAMETERS is JSON: `scheduler`, `case`, `files`, `stage`, `share`, and `more` parameters of the forest.
"""

from __future__ import annotations

import json
import os
import signal
import sys

from cluster_cases import CASES
from clusters import once_in
from distributed import Client

from oldgrowth.cluster import driver


def main() -> None:
    wanted = json.loads(sys.argv[1])
    driver.RANGE_BYTES = wanted["range_bytes"]
    with Client(wanted["scheduler"]) as client:
        kill = once_in(wanted["stage"], wanted["share"], lambda: os.kill(os.getpid(), signal.SIGKILL))
        CASES[wanted["case"]].fitted(wanted["files"], callback=kill, client=client, **wanted["more"])


if __name__ == "__main__":
    main()
