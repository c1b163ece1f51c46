"""Text helpers: numbers with nouns and units, and names from files made safe to show."""

from __future__ import annotations

import math
import re

# Control characters, which terminals obey, and characters that change the direction of the text around them.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def printable(text: object, keep: str = "") -> str:
    """The text with control characters escaped, as in `\\x1b`, except those in `keep`."""
    return _CONTROL.sub(lambda found: found[0] if found[0] in keep else _spelled(found[0]), str(text))


def _spelled(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def counted(n: int, noun: str, plural: str | None = None) -> str:
    """A number with a noun: "1 row", "2,000 rows"."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def capitalized(source: str) -> str:
    """The name of a source at the start of a sentence; paths stay as they are."""
    return source[0].upper() + source[1:] if source.startswith(("the ", "batch ")) else source


def size_setting(n: float) -> str:
    """A number of bytes as the value of a parameter such as memory_limit, rounded up: "1235MB"."""
    return f"{math.ceil(n / 10**6)}MB"


def human_bytes(n: float) -> str:
    """A number of bytes as "1.5 GB", in decimal units."""
    for unit in ("B", "kB", "MB", "GB"):
        if n < 999.5:  # larger ones would be rounded to 1000
            return f"{n:.0f} {unit}" if unit == "B" else f"{n:.3g} {unit}"
        n /= 1000
    return f"{n:.3g} TB"
