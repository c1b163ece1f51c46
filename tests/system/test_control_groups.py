"""The memory available to a process follows from its control group and those above it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import oldgrowth
import oldgrowth.system.limits
import oldgrowth.system.memory
from oldgrowth.errors import DiskTooSmallError
from oldgrowth.messages.warnings import SpillsToMemoryWarning
from oldgrowth.system.control_groups import GroupMemory, group_memory, is_memory
from oldgrowth.system.limits import limits_of

MB = 10**6
V2 = "{n} 1 0:29 {root} {point} rw,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
V1 = "{n} 1 0:32 {root} {point} rw,relatime - cgroup cgroup rw,memory\n"


def system(tmp_path: Path, cgroup: str, mounts: str) -> Path:
    proc = tmp_path / "proc"
    proc.mkdir()
    (proc / "cgroup").write_text(cgroup)
    (proc / "mountinfo").write_text(mounts)
    return proc


def group(directory: Path, **files: object) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (directory / name.replace("__", ".")).write_text(f"{text}\n")


def test_the_limit_of_a_job_is_found_in_a_group_above_the_process(tmp_path) -> None:
    top = tmp_path / "cgroup with a space"
    group(top, memory__stat="inactive_file 5")  # the root has no limit
    job = top / "system.slice" / "slurmstepd.scope" / "job_17"
    group(
        job, memory__max=500 * MB, memory__current=200 * MB, memory__stat=f"anon 1\ninactive_file {50 * MB}"
    )
    group(job / "step_0", memory__max="max", memory__high="max", memory__current=10 * MB)
    group(job / "step_0" / "user", memory__max="max", memory__high=700 * MB, memory__current=MB)
    mounts = V2.format(n=1, root="/", point=str(top).replace(" ", "\\040"))
    proc = system(tmp_path, "0::/system.slice/slurmstepd.scope/job_17/step_0/user\n", mounts)
    assert group_memory(proc) == [GroupMemory(700 * MB, MB), GroupMemory(500 * MB, 150 * MB)]


def test_the_first_version_beside_the_second(tmp_path) -> None:
    top = tmp_path / "memory"
    group(top, memory__limit_in_bytes=2**63 - 4096, memory__usage_in_bytes=9 * MB)
    group(
        top / "user.slice",
        memory__limit_in_bytes=300 * MB,
        memory__usage_in_bytes=100 * MB,
        memory__stat=f"inactive_file 3\ntotal_inactive_file {20 * MB}",
    )
    mounts = V2.format(n=1, root="/", point=tmp_path / "unified") + V1.format(n=2, root="/", point=top)
    proc = system(tmp_path, "9:cpu:/\n4:memory,hugetlb:/user.slice\n0::/\n", mounts)
    assert group_memory(proc) == [GroupMemory(300 * MB, 80 * MB), GroupMemory(2**63 - 4096, 9 * MB)]


def test_a_container_sees_its_own_group_as_the_root(tmp_path) -> None:
    top = tmp_path / "cgroup"
    group(top, memory__max=400 * MB, memory__current=100 * MB)
    mounts = V2.format(n=1, root="/docker/abc", point=top)
    assert group_memory(system(tmp_path, "0::/docker/abc\n", mounts)) == [GroupMemory(400 * MB, 100 * MB)]


@pytest.mark.parametrize("cgroup", ["", "0::\n", "nonsense\n", "0::/../../elsewhere\n"])
def test_what_cannot_be_found_limits_nothing(tmp_path, cgroup: str) -> None:
    proc = system(tmp_path, cgroup, "short line\n" + V2.format(n=1, root="/", point=tmp_path / "none"))
    assert group_memory(proc) == []
    assert group_memory(tmp_path / "no proc") == []


def test_the_tightest_group_counts(monkeypatch) -> None:
    groups = [GroupMemory(800 * MB, 100 * MB), GroupMemory(900 * MB, 850 * MB)]
    monkeypatch.setattr(oldgrowth.system.memory, "group_memory", lambda: groups)
    assert oldgrowth.system.memory.total_memory() == 800 * MB
    assert oldgrowth.system.memory.free_memory() == 50 * MB


def test_directories_that_are_memory(tmp_path) -> None:
    mounts = "".join(
        f"{i} 1 0:{i} / {point} rw - {kind} {kind} rw\n"
        for i, (point, kind) in enumerate([("/", "ext4"), ("/tmp", "tmpfs"), ("/tmp/disk", "xfs")])
    )
    proc = system(tmp_path, "", mounts)
    assert [is_memory(Path(p), proc) for p in ("/home/x", "/tmp", "/tmp/a/b", "/tmp/disk/a", "/tmpa")] == [
        False,
        True,
        True,
        False,
        False,
    ]


def test_files_in_memory_share_it_with_the_process(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(oldgrowth.system.limits, "is_memory", lambda directory: True)
    monkeypatch.setattr(oldgrowth.system.limits, "auto_room", lambda: 1000 * MB)
    asked = {"memory_limit": "auto", "spill_dir": tmp_path, "checkpoint_dir": None}
    limits = limits_of(asked)
    assert limits.memory - limits.resident == limits.spill_limit == 500 * MB
    limits = limits_of(asked | {"memory_limit": limits.resident + 300 * MB, "spill_limit": "900MB"})
    assert limits.memory == limits.resident + 300 * MB
    assert 690 * MB < (limits.spill_limit or 0) <= 700 * MB
    rng = np.random.default_rng(0)
    x, y = rng.random((2000, 3)), rng.integers(0, 2, 2000)
    model = oldgrowth.RandomForestClassifier(2, store="disk", spill_dir=tmp_path, random_state=0)
    with pytest.warns(SpillsToMemoryWarning, match="is in memory"):
        model.fit(x, y)
    monkeypatch.setattr(oldgrowth.system.limits, "auto_room", lambda: 1000)
    with pytest.raises(DiskTooSmallError):
        model.fit(x, y)
