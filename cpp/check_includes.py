"""Fail if a C++ file includes a room that its own room must not know: docs/architecture.md, "C++"."""

import re
import sys
from pathlib import Path

KNOWS = {"base": [], "rows": ["base"], "grow": ["base", "rows"], "predict": ["base"]}
CPP = Path(__file__).parent

wrong = [
    f"{path.relative_to(CPP.parent)}: {room}/ must not include {included}"
    for room, known in KNOWS.items()
    for path in sorted((CPP / room).rglob("*.[ch]pp"))
    for included in re.findall(r'#include "([^"]+)"', path.read_text())
    if included.split("/")[0] not in [room, *known]
]
sys.exit("\n".join(wrong) or 0)
