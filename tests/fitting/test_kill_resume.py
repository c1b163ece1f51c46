"""Short runs of scripts in tests/torture; `make torture` has the long ones."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "command",
    [
        "kill_resume.py --kills 4 --writes 4 --no-boundaries --cases labels_in_a_file many_top_trees",
        "kill_resume.py --kills 4 --writes 4 --no-boundaries --cases text_columns",
        "power_cut.py --cuts 5 --cases labels_in_arrays_in_rounds weighted_labels_in_csv",
        "damage.py --forgeries 4 --cases weighted_labels_in_csv --files top-00000.npz",
    ],
)
def test_interrupted_and_damaged_fits_end_in_the_same_model(command: str) -> None:
    script, *options = command.split()
    path = Path(__file__).parents[1] / "torture" / script
    found = subprocess.run([sys.executable, str(path), *options], capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr
