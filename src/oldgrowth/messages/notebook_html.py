"""HTML for notebooks. What comes from files is text in it, whatever it holds."""

from __future__ import annotations

import html
from collections.abc import Sequence

from .text import printable


def in_html(text: object) -> str:
    """The text with nothing in it that is markup, nor what cannot be encoded."""
    known = printable(text).encode("utf-8", "backslashreplace").decode("utf-8")
    return html.escape(known)


def html_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of cells that are HTML already; the first column is aligned to the left, as are two columns."""
    width = max(map(len, [head, *rows]), default=0)

    def line(cells: Sequence[str], tag: str) -> str:
        sides = ["left" if i == 0 or width == 2 else "right" for i in range(len(cells))]
        inside = (
            f"<{tag} style='text-align:{side}'>{cell}</{tag}>"
            for side, cell in zip(sides, cells, strict=True)
        )
        return f"<tr>{''.join(inside)}</tr>"

    above = f"<thead>{line(head, 'th')}</thead>" if head else ""
    return f"<table>{above}<tbody>{''.join(line(cells, 'td') for cells in rows)}</tbody></table>"
