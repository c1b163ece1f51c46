"""Makes tests/helpers.py importable, hypothesis patient on slow machines, and adds --on-disk and --every."""

import signal
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

# `nohup` and jobs in the background ignore these, and children would inherit that.
for _number, _default in ((signal.SIGHUP, signal.SIG_DFL), (signal.SIGINT, signal.default_int_handler)):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _default)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--on-disk",
        action="store_true",
        help="fit every forest twice, in memory and with the disk store at its tightest, and compare",
    )
    parser.addoption(
        "--every",
        action="store_true",
        help="damage model files in every bit, and read them in both ways, where some bits do else",
    )


@pytest.fixture
def every(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--every"))


@pytest.fixture(autouse=True)
def _forced_to_disk(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--on-disk"):
        from on_disk import force_to_disk

        force_to_disk(request.getfixturevalue("monkeypatch"), request.getfixturevalue("tmp_path"))
