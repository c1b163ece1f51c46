"""Workers are like the driver, and have room on their disks."""

from __future__ import annotations

from typing import Any

import pytest

import oldgrowth
from oldgrowth.cluster import handshake
from oldgrowth.cluster.values import WorkerFacts
from oldgrowth.errors import DifferentWorkerError, WorkerDiskError


def facts(**more: Any) -> WorkerFacts:
    usual = {"version": oldgrowth.__version__, "digest": handshake.tiny_digest(), "threads": 1}
    return WorkerFacts(**(usual | {"memory": 10**9, "disk": 10**9, "resident": 10**8} | more))


def test_workers_that_differ_are_refused_by_name() -> None:
    handshake.check_worker("tcp://a", facts())
    with pytest.raises(DifferentWorkerError, match=r"Worker tcp://a .* it has oldgrowth 0\.0\.1"):
        handshake.check_worker("tcp://a", facts(version="0.0.1"))
    with pytest.raises(DifferentWorkerError, match=r"Worker tcp://b .* a tiny tree"):
        handshake.check_worker("tcp://b", facts(digest="00000000"))


def test_rounds_follow_from_the_smallest_disk() -> None:
    workers = {"tcp://a": facts(), "tcp://b": facts(disk=800_000)}
    assert handshake.tops_per_round(workers, 100_000, 50) == 12  # 62,500 bytes each, of 800,000
    assert handshake.tops_per_round(workers, 100_000, 3) == 3
    with pytest.raises(WorkerDiskError, match=r"disk of worker tcp://b is too small: .* 800 kB may be used"):
        handshake.tops_per_round(workers, 10**8, 3)
