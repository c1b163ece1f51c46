"""Memory that was freed inside the process is returned to the system, whichever threads had used it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

CODE = """
import threading
import numpy as np
from oldgrowth.system.memory import keep_freed_memory, release_memory, resident_memory

keep_freed_memory(2**30)  # blocks of up to 16 MB stay in the heap of their thread
begin = threading.Barrier(4)

def work():
    begin.wait()
    blocks = [np.ones(2**20) for _ in range(3)]  # of 8 MB
    begin.wait()
    while blocks:
        blocks.pop()
    begin.wait()

def run():
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(3):
        begin.wait()
    for thread in threads:
        thread.join()
    return resident_memory()

release_memory()
before = resident_memory()
kept = run()
release_memory()
print(kept - before, resident_memory() - before)
"""


@pytest.mark.skipif("CS_GNU_LIBC_VERSION" not in getattr(os, "confstr_names", {}), reason="glibc only")
def test_the_heaps_of_all_threads_are_trimmed() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    kept, left = map(int, done.stdout.split())
    assert kept > 16_000_000
    assert left < 4_000_000
