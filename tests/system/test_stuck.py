"""A process whose main thread is in a library that does not return ends by a signal all the same."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

BEGIN = """
import ctypes, os, signal, sys, threading, time
import oldgrowth.system.stuck
from oldgrowth.system.signals import ended_by_signals
oldgrowth.system.stuck._GRACE_SECONDS = 0.3
def wait_forever():
    libc, mutex = ctypes.CDLL(None), ctypes.create_string_buffer(128)
    libc.pthread_mutex_lock(mutex)
    threading.Timer(0.5, print, ["now"], {"flush": True}).start()
    libc.pthread_mutex_lock(mutex)  # a second time: signals do not end it
"""


def after_signal(code: str, number: signal.Signals) -> tuple[int, str]:
    process = subprocess.Popen(
        [sys.executable, "-c", BEGIN + code], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "now\n"
    process.send_signal(number)
    said = process.communicate(timeout=60)[0]
    return process.returncode, said


@pytest.mark.parametrize(
    ("number", "options"), [(signal.SIGTERM, ""), (signal.SIGHUP, ""), (signal.SIGINT, "interrupts=True")]
)
def test_it_ends_by_the_signal(number: signal.Signals, options: str) -> None:
    code, said = after_signal(f"with ended_by_signals({options}): wait_forever()", number)
    assert code == -number
    assert said == f"oldgrowth: ended by {number.name}: a library has not returned for 0.3 s.\n"


def test_a_main_thread_that_reacts_has_time() -> None:
    code = """
with ended_by_signals():
    try:
        print("now", flush=True)
        time.sleep(60)
    finally:
        time.sleep(1)
        print("cleaned up", flush=True)
"""
    assert after_signal(code, signal.SIGTERM) == (-signal.SIGTERM, "cleaned up\n")


def test_signals_of_a_forked_process_and_of_other_programs_are_theirs() -> None:
    code = """
with ended_by_signals(interrupts=True):
    child = os.fork()
    if not child:
        time.sleep(60)
    time.sleep(0.5)  # Python drops signals that meet a process in its fork
    os.kill(child, signal.SIGTERM)
    assert os.waitpid(child, 0)[1] == signal.SIGTERM
    time.sleep(1)
assert signal.set_wakeup_fd(-1) == -1 and signal.getsignal(signal.SIGINT) is signal.default_int_handler
theirs = os.open(os.devnull, os.O_WRONLY | os.O_NONBLOCK)
signal.set_wakeup_fd(theirs)
for _ in range(3):
    with ended_by_signals():
        pass
assert signal.set_wakeup_fd(-1) == theirs
print("now", flush=True)
time.sleep(60)
"""
    assert after_signal(code, signal.SIGTERM) == (-signal.SIGTERM, "")
