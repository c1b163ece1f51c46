"""A short run of tests/torture/kill_resume.py; `make torture` is the long one."""

import subprocess
import sys
from pathlib import Path


def test_killed_fits_end_in_the_same_model() -> None:
    script = Path(__file__).parent / "torture" / "kill_resume.py"
    found = subprocess.run(
        [sys.executable, str(script), "--kills", "8", "--writes", "6", "--no-boundaries"],
        capture_output=True,
        text=True,
    )
    assert found.returncode == 0, found.stdout + found.stderr
