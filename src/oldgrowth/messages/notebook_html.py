"""HTML for notebooks. Text from files is escaped."""

from __future__ import annotations

import html
from collections.abc import Sequence

from .text import printable


def in_html(text: object) -> str:
    """The text as HTML: markup, control characters and what cannot be encoded are escaped."""
    known = printable(text).encode("utf-8", "backslashreplace").decode("utf-8")
    return html.escape(known)


def html_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of cells of HTML; the first column is left-aligned, as are all columns of a table of two."""
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
