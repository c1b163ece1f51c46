"""Simulates power cuts during fits, resumes them and compares every bit of the results.

    python tests/torture/power_cut.py --cuts 100

A fit dies at some call that changes a file. Its checkpoint is then what a disk may hold after a power cut:
what was synced is there; of what was not, names may be missing or old, and bytes lost, torn, zeros or
garbage.
"""

from __future__ import annotations

import argparse
import os
import pickle
import random
import shutil
import stat
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from cases import parsed, quick_directory, verdict
from kill_resume import Arm, Torture, die, run

CALLS = ("pwrite", "fsync", "fdatasync", "replace", "ftruncate", "unlink", "symlink", "mkdir")
Entry = tuple[int, str]  # inode, and where a symbolic link leads


def listing(directory: Path) -> dict[str, Entry]:
    found = {}
    for entry in os.scandir(directory):
        target = os.readlink(entry.path) if entry.is_symlink() else ""
        found[entry.name] = entry.stat(follow_symlinks=False).st_ino, target
    return found


class Synced:
    """What is on the disk for certain."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)
        self.names: dict[str, dict[str, Entry]] = {}
        self.contents: dict[int, bytes] = {}
        for directory in (root, root / "oldgrowth-fit"):  # what an earlier cut has left is there for good
            if directory.is_dir():
                self.names[str(directory)] = listing(directory)
                for path in directory.iterdir():
                    if path.is_file() and not path.is_symlink():
                        self.contents[path.stat().st_ino] = path.read_bytes()

    def sync(self, descriptor: int) -> None:
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            self.names[path] = listing(Path(path))
        elif path.startswith(self.root):
            self.contents[status.st_ino] = Path(path).read_bytes()


def cut_at(k: int, root: Path, notes: Path) -> Arm:
    """Note what is synced, and die in the k-th call that changes a file."""

    def arm() -> None:
        synced, left = Synced(root), [k]

        def hook(name: str) -> None:
            real = getattr(os, name)

            def call(*args: Any, **options: Any) -> Any:
                left[0] -= 1
                if left[0] == -1:
                    notes.write_bytes(pickle.dumps(synced))
                    die()
                if name in ("fsync", "fdatasync"):
                    synced.sync(args[0])
                return real(*args, **options)

            setattr(os, name, call)

        for name in CALLS:
            hook(name)

    return arm


def after_the_cut(root: Path, synced: Synced, chance: random.Random) -> None:
    """Make of a checkpoint directory what a disk may hold."""
    files = root / "oldgrowth-fit"
    if not files.is_dir() or (files.name not in synced.names.get(str(root), {}) and chance.random() < 0.5):
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir(mode=0o700)
        return
    old, new = synced.names.get(str(files), {}), listing(files)
    held = {entry[0]: (files / name).read_bytes() for name, entry in new.items() if not entry[1]}
    shutil.rmtree(files)
    files.mkdir(mode=0o700)
    for name in sorted(old.keys() | new.keys()):
        entry = chance.choice([old.get(name), new.get(name)])
        if entry is None:
            continue
        if entry[1]:
            (files / name).symlink_to(entry[1])
            continue
        certain = synced.contents.get(entry[0], b"")
        data = survived(certain, held.get(entry[0], certain), chance)
        with os.fdopen(os.open(files / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(data)


def survived(certain: bytes, written: bytes, chance: random.Random) -> bytes:
    """What may be left of a file of which the beginning is certain."""
    if not written.startswith(certain):  # it was cut since
        return chance.choice([certain, written])
    rest = written[len(certain) :]
    kind = chance.choice(["lost", "torn", "zeros", "garbage", "holes", "whole"])
    if kind == "lost":
        rest = b""
    elif kind == "torn":
        rest = rest[: chance.randrange(len(rest) + 1)]
    elif kind == "zeros":
        rest = bytes(len(rest))
    elif kind == "garbage":
        rest = chance.randbytes(len(rest))
    elif kind == "holes":
        pages = [rest[at : at + 4096] for at in range(0, len(rest), 4096)]
        rest = b"".join(page if chance.random() < 0.5 else bytes(len(page)) for page in pages)
    return certain + rest


class PowerCuts(Torture):
    def cut(self, case: str) -> None:
        """Cut the power of a fit, perhaps that of the one that takes it up, too; then let it finish."""
        directory, notes = self.folder / "checkpoint", self.folder / "synced"
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(mode=0o700)
        self.trials += 1
        cuts, said = 0, []
        while True:
            k = int(2 ** self.random.uniform(0, 9.5)) if cuts == 0 or self.random.random() < 0.3 else 10**9
            params = {"checkpoint_dir": directory} | self._means(case, cuts)
            found = run(case, self.folder, params, cut_at(k, directory, notes), None)
            if found is not None:
                break
            cuts += 1
            said.append(k)
            after_the_cut(directory, pickle.loads(notes.read_bytes()), self.random)
        self.killed += cuts
        if found != self.expected[case] or list(directory.iterdir()):
            self.bad += 1
            left = [path.name for path in directory.rglob("*")]
            print(f"NOT THE SAME: {case}, cuts at calls {said}, left {left}\n{found}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description="Cut the power of fits, take them up, compare.")
    parser.add_argument("--cuts", type=int, default=100)
    options = parsed(parser)
    with tempfile.TemporaryDirectory(dir=quick_directory()) as folder:
        torture = PowerCuts(Path(os.path.realpath(folder)), options.seed, options.cases)
        while torture.killed < options.cuts:
            torture.cut(torture.random.choice(options.cases))
    return verdict(torture, "cuts")


if __name__ == "__main__":
    sys.exit(main())
