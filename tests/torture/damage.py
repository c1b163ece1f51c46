"""Damages every file of checkpoints, resumes the fits, and checks the results.

    python tests/torture/damage.py --forgeries 300

A file that is flipped, cut, emptied, removed, filled with zeros or garbage, or exchanged must lead to the
same model: what was lost is done again. Only what the fit is (checkpoint.json) cannot be found out again: an
error names the file and says what to do. Contents that are wrong under right checksums
must not crash the process, come out as an error of Python, or take memory.

Each case has a process, and as many run at a time as there are cores; each fit has a process of its own, too.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import resource
import shutil
import struct
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from cases import parsed, quick_directory
from kill_resume import CRASHED, Torture, in_write, run

from oldgrowth import _core
from oldgrowth.storage.checkpoint import IDENTITY

MOMENTS = 3  # of each case, at which its fit is interrupted
MORE_MEMORY = 2**30  # that a resumed fit may take, in bytes of address space
Damage = Callable[[bytes, random.Random], bytes | None]


def flip(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]


DAMAGES: dict[str, Damage] = {
    "flipped": flip,
    "cut": lambda data, chance: data[: chance.randrange(len(data))],
    "emptied": lambda data, chance: b"",
    "removed": lambda data, chance: None,
    "zeros": lambda data, chance: bytes(len(data)),
    "garbage": lambda data, chance: chance.randbytes(len(data)),
    "longer": lambda data, chance: data + chance.randbytes(100),
    "another file": lambda data, chance: b"dear to its owner",
}


def crc(*parts: bytes) -> int:
    return _core.crc32c(np.frombuffer(b"".join(parts), dtype=np.uint8))


def number(chance: random.Random) -> int:
    return chance.choice([0, 1, 7, 255, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**53, 2**62, 2**63 - 1])


def forged_npz(data: bytes, chance: random.Random) -> bytes:
    """One value exchanged, with the right checksum."""
    with np.load(io.BytesIO(data[:-4])) as found:
        arrays = {key: found[key].copy() for key in found.files}
    values = json.loads(arrays.pop("values").tobytes())
    if arrays and chance.random() < 0.5:
        key = chance.choice(list(arrays))
        array = arrays[key]
        if chance.random() < 0.3 or array.size == 0:
            arrays[key] = chance.choice(
                [array[:-1], np.concatenate([array, array]), array.astype(np.float64)]
            )
        else:
            array.reshape(-1).view(np.uint8)[chance.randrange(array.nbytes)] ^= 1 << chance.randrange(8)
    else:
        place: Any = values
        while isinstance(place, dict | list) and place:
            key = chance.choice(list(place) if isinstance(place, dict) else range(len(place)))
            if not isinstance(place[key], dict | list) or chance.random() < 0.2:
                place[key] = chance.choice([number(chance), -number(chance), None, "x", [], {}, 1e300, True])
                break
            place = place[key]
    out = io.BytesIO()
    text = np.frombuffer(json.dumps(values).encode(), dtype=np.uint8)
    np.savez(out, **(arrays | {"values": text}))
    return out.getvalue() + crc(out.getvalue()).to_bytes(4, "little")


def forged_log(data: bytes, chance: random.Random) -> bytes:
    """A byte of an entry's numbers or payload exchanged, with right checksums of the entry."""
    offset, entries = 0, []
    while offset < len(data):
        size = struct.unpack_from("<Q", data, offset + 8)[0]
        entries.append((offset, 40 + size))
        offset += 40 + size
    begin, length = chance.choice(entries)
    entry = bytearray(data[begin : begin + length])
    at = chance.randrange(16, min(length, 120)) if chance.random() < 0.6 else chance.randrange(16, length)
    entry[at] = chance.randrange(256)
    if chance.random() < 0.7 and length >= 64:  # a tree's own checksum, too, if it is one tree
        struct.pack_into("<I", entry, 60, crc(bytes(entry[64:])))
    struct.pack_into("<I", entry, 4, crc(bytes(entry[8:])))
    return data[:begin] + bytes(entry) + data[begin + length :]


def forged_rows(data: bytes, chance: random.Random) -> bytes:
    """A byte of a block exchanged, with the right checksum."""
    offset, blocks = 0, []
    while offset < len(data):
        rows, row_bytes = struct.unpack_from("<II", data, offset + 24)
        blocks.append((offset, 32 + rows * row_bytes))
        offset += 32 + rows * row_bytes
    begin, length = chance.choice(blocks)
    block = bytearray(data[begin : begin + length])
    block[chance.randrange(8, length)] = chance.choice([0, 1, 127, 254, 255])
    struct.pack_into("<I", block, 4, crc(bytes(block[8:])))
    return data[:begin] + bytes(block) + data[begin + length :]


def forgery(name: str) -> Damage | None:
    if name.endswith(".npz"):
        return forged_npz
    if name.endswith(".log"):
        return forged_log
    return forged_rows if name.startswith("top-") else None


def limited() -> None:
    """What a small file makes a fit allocate must be small."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (used + MORE_MEMORY, used + MORE_MEMORY))


class Damages(Torture):
    def checkpoint(self, case: str) -> dict[str, bytes]:
        """The files of a fit that was interrupted somewhere."""
        directory = self.folder / "checkpoint"
        while True:
            shutil.rmtree(directory, ignore_errors=True)
            arm = in_write(self.random.randrange(20, 300))
            run(case, self.folder, {"checkpoint_dir": directory}, arm, None)
            files = directory / "oldgrowth-fit"
            if files.is_dir():
                return {p.name: p.read_bytes() for p in files.iterdir() if not p.is_symlink()}

    def resumed(self, case: str, saved: dict[str, bytes], name: str, data: bytes | None) -> str:
        files = self.folder / "checkpoint" / "oldgrowth-fit"
        shutil.rmtree(files, ignore_errors=True)
        files.mkdir(mode=0o700)
        (files / "oldgrowth").symlink_to("files-of-a-fit")
        for other, held in (saved | ({} if data is None else {name: data})).items():
            if other != name or data is not None:
                (files / other).write_bytes(held)
        self.trials += 1
        found = run(case, self.folder, {"checkpoint_dir": files.parent}, limited, None)
        assert found is not None
        return found

    def damage(self, case: str, saved: dict[str, bytes], only: list[str] | None) -> None:
        for name in sorted(saved if only is None else saved.keys() & set(only)):
            for kind, change in DAMAGES.items():
                if name != "lock" and saved[name]:
                    found = self.resumed(case, saved, name, change(saved[name], self.random))
                    last = found.strip().splitlines()[-1]
                    refused = "DamagedCheckpointError" in last and "and fit again" in last
                    told = name == IDENTITY and refused and name in last
                    if found != self.expected[case] and not told:
                        self.bad += 1
                        print(f"{case}: {name} {kind}:\n{found}", flush=True)

    def forge(self, case: str, saved: dict[str, bytes], forgeries: int) -> None:
        names = [name for name in saved if saved[name] and forgery(name) is not None]
        for _ in range(forgeries if names else 0):
            name = self.random.choice(names)
            change = forgery(name)
            assert change is not None
            try:
                data = change(saved[name], self.random)
            except (struct.error, ValueError, IndexError):  # it ends in the middle of an entry
                continue
            found = self.resumed(case, saved, name, data)
            last = found.strip().splitlines()[-1]
            refused = "Traceback" in found and "oldgrowth.errors." in last
            if not refused and ("Traceback" in found or found.startswith(CRASHED)):
                self.bad += 1
                print(f"{case}: {name} forged:\n{found}", flush=True)


def torture(options: argparse.Namespace, case: str) -> tuple[int, int]:
    """The number of checkpoints of a case that were damaged, and how many of them were taken badly."""
    with tempfile.TemporaryDirectory(dir=quick_directory()) as folder:
        damages = Damages(Path(folder), f"{options.seed} {case}", [case])
        for _ in range(MOMENTS):
            saved = damages.checkpoint(case)
            damages.damage(case, saved, options.files)
            damages.forge(case, saved, -(-options.forgeries // (MOMENTS * len(options.cases))))
    return damages.trials, damages.bad


def main() -> int:
    parser = argparse.ArgumentParser(description="Damage checkpoints, take them up.")
    parser.add_argument("--forgeries", type=int, default=300)
    parser.add_argument("--files", nargs="*", default=None, help="only these are damaged")
    options = parsed(parser)
    trials = bad = 0
    with ProcessPoolExecutor(os.cpu_count(), get_context("fork")) as pool:
        for case, found in zip(
            options.cases, pool.map(partial(torture, options), options.cases), strict=True
        ):
            print(f"{case}: {found[0]} damaged checkpoints, {found[1]} of them taken badly", flush=True)
            trials, bad = trials + found[0], bad + found[1]
    print(f"{trials} damaged checkpoints, {bad} of them taken badly")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
