"""Lists the datasets of an HDF5 file. Links are followed, into other files only if allowed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from ..errors import BrokenLinkError, DataError, OtherFilesError
from .files import SourceFile

DEEPEST = 16  # maximum length of a chain of links


class Links:
    """Walks an HDF5 file. `broken` maps links that cannot be followed to errors, `elsewhere` maps links to
    other files to their paths."""

    def __init__(self, file: SourceFile, allowed: bool) -> None:
        self._file = file
        self._allowed = allowed and file.system is None
        self._seen: set[tuple[int, int]] = set()  # groups in other files
        self.broken: dict[str, DataError] = {}
        self.elsewhere: dict[str, str] = {}  # the file of each dataset that is not in this one

    def datasets(self, root: Any) -> Iterator[tuple[str, Any]]:
        """Yield the name and the id of each dataset."""
        yield from self._below(root, root, b"")

    def _below(self, root: Any, group: Any, prefix: bytes) -> Iterator[tuple[str, Any]]:
        import h5py

        links: list[tuple[bytes, bool]] = []
        hard = h5py.h5l.TYPE_HARD
        group.links.visit(lambda name, info: links.append((bytes(name), info.type == hard)), info=True)
        for path, plain in links:
            name = (prefix + path).decode(errors="surrogateescape")
            try:
                found = h5py.h5o.open(group, path) if plain else self._follow(name, group, path, 0)
            except DataError as error:
                self.broken[name] = error
                continue
            if isinstance(found, h5py.h5d.DatasetID):
                if not plain:
                    self._note(name, root, found)
                yield name, found
            elif isinstance(found, h5py.h5g.GroupID) and not plain and self._is_new(root, found):
                yield from self._below(root, found, prefix + path + b"/")

    def _note(self, name: str, root: Any, found: Any) -> None:
        import h5py

        if h5py.h5o.get_info(found).fileno != h5py.h5o.get_info(root).fileno:
            self.elsewhere[name] = os.fsdecode(h5py.h5f.get_name(found))

    def _is_new(self, root: Any, group: Any) -> bool:
        """Whether a group is in another file and not visited yet; groups of this file are visited anyway."""
        import h5py

        info = h5py.h5o.get_info(group)
        key = (info.fileno, info.addr)
        if info.fileno == h5py.h5o.get_info(root).fileno or key in self._seen:
            return False
        self._seen.add(key)
        return True

    def _follow(self, name: str, group: Any, path: bytes, depth: int) -> Any:
        """Resolve a path link by link, so that other files are opened only if allowed."""
        import h5py

        where = f"{self._file.path} ({name})"
        if depth == DEEPEST:
            raise BrokenLinkError(where, f"a chain of more than {DEEPEST} other links")
        at = h5py.h5o.open(group, b"/") if path.startswith(b"/") else group
        for part in path.split(b"/"):
            if part in (b"", b"."):
                continue
            if not isinstance(at, h5py.h5g.GroupID) or not at.links.exists(part):
                raise BrokenLinkError(where, f"{os.fsdecode(path)}, which does not exist")
            kind = at.links.get_info(part).type
            if kind == h5py.h5l.TYPE_SOFT:
                at = self._follow(name, at, at.links.get_val(part), depth + 1)
            elif kind == h5py.h5l.TYPE_EXTERNAL:
                at = self._open_other(where, at, part)
            else:
                at = h5py.h5o.open(at, part)
        return at

    def _open_other(self, where: str, group: Any, part: bytes) -> Any:
        import h5py

        other, inner = (os.fsdecode(text) for text in group.links.get_val(part))
        if not self._allowed:
            raise OtherFilesError(where, other)
        here = os.fsdecode(h5py.h5f.get_name(group))
        if not any(map(os.path.isfile, _places(here, other))):
            raise BrokenLinkError(where, f"the file {other}, which does not exist")
        try:
            return h5py.h5o.open(group, part)
        except (KeyError, OSError) as error:
            raise BrokenLinkError(where, f"{inner} of {other}, which cannot be read ({error})") from error


def _places(path: str, name: str) -> Iterator[str]:
    """The paths at which HDF5 searches for the file of a link."""
    for prefix in os.environ.get("HDF5_EXT_PREFIX", "").split(os.pathsep):
        if prefix:
            yield os.path.join(prefix, name)
    yield os.path.join(os.path.dirname(path), name)
    yield name
    yield os.path.join(os.path.dirname(path), os.path.basename(name))
