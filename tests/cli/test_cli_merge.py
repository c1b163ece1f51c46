"""`oldgrowth merge`: the same forest as `oldgrowth.merge`, in bounded memory, and nothing half-written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import oldgrowth
from cli_files import as_json, done, failed
from helpers import make_data
from oldgrowth import RandomForestClassifier, load, merge
from oldgrowth.messages.warnings import SameForestWarning

X, Y = make_data(900, 5, 4, seed=0)


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = []
    for k in range(3):
        model = RandomForestClassifier(3 + k, random_state=k, max_depth=6, bucket_size=200)
        paths.append(tmp_path / f"{k}.og")
        model.fit(X[k != Y], Y[k != Y]).save(paths[-1])
    return paths


def test_files_become_one(files: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    out = files[0].parent / "all.og"
    done("merge", *files, "-o", out)
    assert "12 trees" in capsys.readouterr().out
    merged, expected = load(out), merge([load(path) for path in files])
    merged.forest_.check()
    assert merged.forest_.digest() == expected.forest_.digest()
    assert merged.get_params() == expected.get_params()
    assert merged.fit_report_ == expected.fit_report_ and merged.classes_.tolist() == [0, 1, 2, 3]
    facts = as_json(capsys, "merge", out, files[0], "-o", out, "--force")  # the output is one of the sources
    assert facts["trees"] == 15 == len(load(out)) and facts["forests"] == 2
    assert as_json(capsys, "inspect", out)["estimator"] == "RandomForestClassifier"


def test_other_forests_are_named_by_file(files: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    other = files[0].parent / "other.og"
    oldgrowth.RandomForestRegressor(2).fit(X, Y).save(other)
    out = files[0].parent / "out.og"
    said = failed(capsys, 1, "merge", files[0], other, "-o", out)
    assert f"{files[0]} is a RandomForestClassifier, {other} a RandomForestRegressor" in said
    assert not out.exists()

    failed(capsys, 2, "merge", "-o", out)
    failed(capsys, 2, "merge", files[0], out.parent / "missing.og", "-o", out)
    failed(capsys, 2, "merge", *files, "-o", files[1])  # exists, and no --force


def test_sources_replaced_during_the_merge(files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    from oldgrowth.cli import merge as command

    expected = merge([load(path) for path in files]).forest_.digest()
    described = command.describe

    def replaced(estimator: object) -> object:
        RandomForestClassifier(1).fit(X, Y).save(files[1])
        return described(estimator)

    monkeypatch.setattr(command, "describe", replaced)
    out = files[0].parent / "out.og"
    done("merge", *files, "-o", out)
    assert load(out).forest_.digest() == expected


def child(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, check=False
    )


LIMITED = """
import resource, sys
from oldgrowth.cli.main import run
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
sys.exit(run(["merge", *sys.argv[1:]]))
"""


def test_a_full_disk_leaves_nothing(files: list[Path]) -> None:
    out = files[0].parent / "out.og"
    out.write_bytes(b"before")
    before = sorted(os.listdir(out.parent))
    found = child(LIMITED, *files, "-o", out, "--force")
    assert found.returncode == 1 and "out.og" in found.stderr and "Traceback" not in found.stderr
    assert out.read_bytes() == b"before" and sorted(os.listdir(out.parent)) == before


MEASURED = """
import sys
from oldgrowth.cli.main import run
code = run(["merge", *sys.argv[1:], "-q"])
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
sys.exit(code)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_memory_does_not_grow_with_the_forests(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(30_000, 3)).astype(np.float32), rng.integers(0, 3, 30_000)
    parts = [RandomForestClassifier(4, random_state=k).fit(x[y != k], y[y != k]) for k in range(2)]
    sizes = {}
    for copies in (1, 250):
        for k, part in enumerate(parts):
            path = tmp_path / f"{k}.og"
            with pytest.warns(SameForestWarning) if copies > 1 else np.errstate():
                merge([part] * copies).save(path)
        found = child(MEASURED, tmp_path / "0.og", tmp_path / "1.og", "-o", tmp_path / "out.og", "--force")
        assert found.returncode == 0, found.stderr
        sizes[(tmp_path / "out.og").stat().st_size] = 1024 * int(found.stdout)
    (small, low), (large, high) = sorted(sizes.items())
    assert large - small > 150e6
    assert high - low < 70e6
