"""SIGTERM and SIGHUP end a fit, a save and a command like Ctrl-C, and the process by the signal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from helpers import make_data
from oldgrowth import RandomForestClassifier, load
from oldgrowth.system.signals import Terminated, ended_by_signals, uninterrupted

SIGNALS = [signal.SIGTERM, signal.SIGHUP]
# Every stage waits a little, so that a signal meets the fit in it.
FIT = """
import sys, time
sys.path.insert(0, {tests!r})
import numpy as np
import oldgrowth
from helpers import make_data, module_of_stage
slow = {slow!r}
for name in ("sample", "distribute_round", "grow", "assemble"):
    def late(*args, real=getattr(module_of_stage(name), name), name=name, **options):
        done = real(*args, **options)
        if name == slow:
            print("now", flush=True)
            time.sleep(60)
        return done
    setattr(module_of_stage(name), name, late)
x, y = make_data(600, 5, 3, seed=9)
model = oldgrowth.RandomForestClassifier(6, random_state=4, bucket_size=100, {params})
try:
    model.fit(x, y)
finally:
    print("the caller's own clean-up is not reached", flush=True)
"""


def fit_and_signal(stage: str, params: str, number: signal.Signals) -> tuple[int, str]:
    code = FIT.format(tests=str(Path(__file__).parents[1]), slow=stage, params=params)
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "now\n"
    process.send_signal(number)
    said = process.communicate(timeout=60)[0]
    return process.returncode, said


@pytest.mark.parametrize(
    ("stage", "number"), [("distribute_round", SIGNALS[0]), ("grow", SIGNALS[1]), ("assemble", SIGNALS[0])]
)
def test_a_signal_ends_a_fit_and_leaves_nothing(tmp_path, stage: str, number: signal.Signals) -> None:
    code, said = fit_and_signal(stage, f"store='disk', spill_dir={str(tmp_path)!r}", number)
    assert (code, said) == (-number, "")
    assert list(tmp_path.iterdir()) == []


def test_a_signal_keeps_the_checkpoint(tmp_path) -> None:
    code, _ = fit_and_signal("grow", f"checkpoint_dir={str(tmp_path)!r}", signal.SIGTERM)
    assert code == -signal.SIGTERM
    assert (tmp_path / "oldgrowth-fit" / "trees.log").stat().st_size > 0
    params = {"random_state": 4, "bucket_size": 100}
    resumed = RandomForestClassifier(6, checkpoint_dir=tmp_path, **params).fit(*make_data(600, 5, 3, seed=9))
    whole = RandomForestClassifier(6, **params).fit(*make_data(600, 5, 3, seed=9))
    assert resumed.forest_.digest() == whole.forest_.digest()


def command(*arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "oldgrowth", *map(str, arguments)], stderr=subprocess.PIPE, text=True
    )


def wait_for(folder: Path, pattern: str, process: subprocess.Popen[str]) -> None:
    while not list(folder.glob(pattern)):
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.005)


def test_a_signal_ends_a_command(tmp_path) -> None:
    x, y = make_data(200_000, 12, 3, seed=9)
    np.savez(tmp_path / "rows.npz", X=x, y=y)
    spill, output = tmp_path / "spill", tmp_path / "forest.og"
    spill.mkdir()
    options = ("--target", "y", "-q", "-o", output, "--store", "disk", "--spill-dir", spill)
    process = command("fit", tmp_path / "rows.npz", *options)
    wait_for(spill, "*/top-*.rows", process)
    process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == -signal.SIGTERM, said
    assert "oldgrowth: ended by SIGTERM." in said and "Traceback" not in said
    assert list(spill.iterdir()) == [] and not output.exists()


PREDICT = """
import sys, time
import oldgrowth.cli.predict as predict
def late(*_):
    print("now", flush=True)
    time.sleep(60)
predict.Predictions.of = late
from oldgrowth.cli.main import run
sys.exit(run(["predict", *sys.argv[1:]]))
"""


def test_a_signal_ends_predictions_and_removes_the_part(tmp_path) -> None:
    x, y = make_data(300, 5, 3, seed=9)
    RandomForestClassifier(4).fit(x, y).save(tmp_path / "forest.og")
    np.save(tmp_path / "rows.npy", x)
    paths = [tmp_path / "forest.og", tmp_path / "rows.npy", "-o", tmp_path / "out.csv"]
    process = subprocess.Popen([sys.executable, "-c", PREDICT, *paths], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "now\n"
    assert list(tmp_path.glob("out.csv.*.part"))
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGHUP
    assert sorted(path.name for path in tmp_path.iterdir()) == ["forest.og", "rows.npy"]


def test_handlers_are_there_only_during_a_fit() -> None:
    during = []

    def metric(*_: object) -> float:
        during.append([signal.getsignal(number) for number in SIGNALS])
        return 0.0

    x, y = make_data(300, 5, 3, seed=9)
    RandomForestClassifier(20, oob_score=metric).fit(x, y)
    assert all(callable(handler) for handler in during[0])
    assert [signal.getsignal(number) for number in SIGNALS] == [signal.SIG_DFL] * 2

    def mine(*_: object) -> None:
        pass

    before = signal.signal(signal.SIGTERM, mine)
    try:
        RandomForestClassifier(20, oob_score=metric).fit(x, y)
        assert during[1][0] is mine and during[1][1] is not signal.SIG_DFL
        assert signal.getsignal(signal.SIGTERM) is mine
    finally:
        signal.signal(signal.SIGTERM, before)
    thread = threading.Thread(target=RandomForestClassifier(20, oob_score=metric).fit, args=(x, y))
    thread.start()
    thread.join()
    assert during[2] == [signal.SIG_DFL] * 2


def test_what_must_not_be_left_half_done_is_finished_first() -> None:
    child = os.fork()
    if child == 0:
        done = 1
        try:
            with ended_by_signals():
                try:
                    with uninterrupted():
                        os.kill(os.getpid(), signal.SIGTERM)
                        done = 0
                except Terminated:
                    os.kill(os.getpid(), signal.SIGTERM)  # while it is unwound: heard, not raised again
                    if done:
                        os._exit(3)
                    raise
        except BaseException:  # noqa: BLE001 - it must have ended by the signal
            pass
        os._exit(2)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGTERM


SAVE = """
import sys, time
import oldgrowth, oldgrowth.forest.model_file
def late(*_):
    print("now", flush=True)
    time.sleep(60)
model = oldgrowth.load(sys.argv[1], mmap=False)
oldgrowth.forest.model_file.ModelWriter.add_meta = late
model.save(sys.argv[1])
"""


def test_a_signal_ends_a_save_and_leaves_the_old_file(tmp_path) -> None:
    path = tmp_path / "forest.og"
    model = RandomForestClassifier(5).fit(*make_data(300, 5, 3, seed=9))
    model.save(path)
    process = subprocess.Popen([sys.executable, "-c", SAVE, path], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "now\n"
    assert len(list(tmp_path.iterdir())) == 2
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGTERM
    assert list(tmp_path.iterdir()) == [path]
    assert load(path).forest_.digest() == model.forest_.digest()
