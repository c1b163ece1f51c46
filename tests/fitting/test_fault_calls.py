"""A reduced run of tests/torture/faults.py; in `make torture`, every call fails once."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


@pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("cc") is None, reason="needs Linux and a C compiler"
)
def test_any_file_call_may_fail() -> None:
    script = Path(__file__).parents[1] / "torture" / "faults.py"
    found = subprocess.run([sys.executable, str(script), "--every", "60"], capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr
    assert " 0 badly" in found.stdout
