"""Lists the local files of a directory or a glob, each once, and warns of skipped files that may be data.

Links are followed, but no directory or file is read twice. A file that cannot be read is an error.
"""

from __future__ import annotations

import fnmatch
import os
import re
import stat
from collections.abc import Iterator, Sequence
from urllib.parse import unquote

from ..errors import UnknownSourceError, UnreadableFileError
from ..messages.log import warn
from ..messages.surface import listed

NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
MAGIC = re.compile(r"[*?[]")
COMPRESSED = (".gz", ".bz2", ".zst", ".xz", ".lz4", ".lzma", ".zip", ".7z", ".snappy", ".br", ".z")
# Files that often accompany data and contain no rows.
BESIDE = re.compile(
    r"(readme|license|licence|citation|changelog|makefile).*"
    r"|.*\.(md|rst|pdf|crc|md5|sha\d*|sum|py|ipynb|r|ya?ml|toml|sh|png|svg|jpe?g)",
    re.IGNORECASE,
)
KINDS = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class Chosen:
    """Decides by their names which files of a directory are data, and warns of the others."""

    def __init__(self, root: str, extensions: Sequence[str]) -> None:
        self._root = root
        self._extensions = tuple(extensions)
        self._left_out: list[str] = []

    def is_data(self, path: str) -> bool:
        """Whether a file is data, by the part of its path below the root."""
        parts = [part for part in path[len(self._root) :].split("/") if part]
        name = parts[-1].lower()
        data = name.endswith(self._extensions)
        if any(map(is_hidden, parts)):
            if data:
                self.leave_out(path)
            return False
        if not data and _unpacked(name).endswith(self._extensions):
            raise UnknownSourceError(
                path, "its compression is not supported: unpack it, or move it elsewhere"
            )
        if not data and not BESIDE.fullmatch(name):
            self.leave_out(path)
        return data

    def leave_out(self, path: str) -> None:
        self._left_out.append(path[len(self._root) :].strip("/"))

    def say(self) -> None:
        if self._left_out:
            names = listed(sorted(self._left_out), 5)
            warn(
                f"Skipped in {self._root or '.'}: {names}. Names that start with a dot or an underscore, "
                "other formats, and files reached a second time by links are not read.",
                UserWarning,
                stacklevel=7,
            )


def _unpacked(name: str) -> str:
    while name.endswith(COMPRESSED):
        name = name[: name.rindex(".")]
    return name


def is_hidden(name: str) -> bool:
    return name.startswith((".", "_")) and "=" not in name


def partition_of(inner: str) -> dict[str, str | None]:
    """The key=value directories of a part of a path."""
    pairs = [part.split("=", 1) for part in inner.split("/")[:-1] if "=" in part]
    return {unquote(key): None if value == NULL_PARTITION else unquote(value) for key, value in pairs}


def walk(root: str, chosen: Chosen) -> list[str]:
    """The data files in a directory and its subdirectories."""
    seen: set[object] = set()
    found: list[tuple[bool, str]] = []  # whether reached by a link, and path
    folders = [(root, False)]
    while folders:  # links last, so that files are found under their own names
        folder, linked = folders.pop(0)
        if linked and _leads_back(folder):
            chosen.leave_out(folder)
            continue
        if not _is_new(folder, folder[len(root) :] + "/", seen):
            chosen.leave_out(folder)
            continue
        for entry in _entries(folder):
            linked_too = linked or entry.is_symlink()
            if not _is_folder(entry):
                found.append((linked_too, entry.path))
            elif is_hidden(entry.name):  # skipped, even if it cannot be read
                found += [
                    (True, os.path.join(at, name)) for at, _, names in os.walk(entry.path) for name in names
                ]
            elif linked_too:
                folders.append((entry.path, True))
            else:
                folders.insert(0, (entry.path, False))
    files = []
    for _, path in sorted(found):
        if not chosen.is_data(path):
            continue
        check_regular(path)
        if _is_new(path, path[len(root) :], seen):
            files.append(path)
        else:
            chosen.leave_out(path)
    return files


def _leads_back(link: str) -> bool:
    """Whether a link points to a directory that contains it."""
    target = os.path.realpath(link)
    folder = os.path.realpath(os.path.dirname(link))
    return os.path.commonpath([target, folder]) == target


def _is_new(path: str, inner: str, seen: set[object]) -> bool:
    """Whether a file or directory was not seen before with the same key=value directories."""
    status = _status(path)
    key = (status.st_dev, status.st_ino, tuple(sorted(partition_of(inner).items())))
    if key in seen:
        return False
    seen.add(key)
    return True


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder or ".") as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        raise UnreadableFileError(folder, error) from error


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError as error:
        raise UnreadableFileError(entry.path, error) from error


def _status(path: str) -> os.stat_result:
    try:
        return os.stat(path)
    except FileNotFoundError as error:
        if os.path.islink(path):
            raise UnknownSourceError(path, "it is a broken symbolic link") from error
        raise UnreadableFileError(path, error) from error
    except OSError as error:
        raise UnreadableFileError(path, error) from error


def check_regular(path: str) -> None:
    """Refuse pipes, sockets and devices, which may block forever or never end."""
    mode = _status(path).st_mode
    for test, kind in KINDS:
        if test(mode):
            raise UnknownSourceError(path, f"it is {kind}, not a file that can be read more than once")


def match(pattern: str) -> list[str]:
    """The files that a glob matches, by the rules of Python's glob, with `**` for any directories."""
    root, rest = split_glob(pattern)
    chosen = Chosen(root, ())
    files = []
    for path in dict.fromkeys(_matches(root, rest, {})):
        if stat.S_ISDIR(_status(path).st_mode):
            if rest[-1] != "**":
                chosen.leave_out(path)
        else:
            check_regular(path)
            files.append(path)
    seen: set[object] = set()
    once = []
    for path in sorted(files, key=lambda path: (os.path.realpath(path) != os.path.abspath(path), path)):
        if _is_new(path, path[len(root) :], seen):
            once.append(path)
        else:
            chosen.leave_out(path)
    if once:
        chosen.say()
    return once


def split_glob(pattern: str) -> tuple[str, list[str]]:
    """Split a glob into the directory before the first wildcard and the remaining parts."""
    parts = pattern.split("/")
    fixed = next((i for i, part in enumerate(parts) if MAGIC.search(part)), len(parts) - 1)
    root = "/".join(parts[:fixed])
    return root or ("/" if pattern.startswith("/") else ""), parts[fixed:]


def _matches(folder: str, parts: list[str], seen: dict[tuple[int, int], None]) -> Iterator[str]:
    part, rest = parts[0], parts[1:]
    if part == "**":
        yield from _matches(folder, rest or ["*"], {})
        for entry in _folder_entries(folder):
            if _is_folder(entry) and not entry.name.startswith("."):
                status = _status(entry.path)
                key = (status.st_dev, status.st_ino)
                if not (entry.is_symlink() and _leads_back(entry.path)) and key not in seen:
                    seen[key] = None
                    yield from _matches(entry.path, parts, seen)
        return
    if not MAGIC.search(part):
        path = os.path.join(folder, part)
        if rest:
            yield from _matches(path, rest, seen)
        elif _exists(path):
            yield path
        return
    for entry in _folder_entries(folder):
        if fnmatch.fnmatchcase(entry.name, part) and (part.startswith(".") or not entry.name.startswith(".")):
            if not rest:
                yield entry.path
            elif _is_folder(entry):
                yield from _matches(entry.path, rest, seen)


def _folder_entries(folder: str) -> list[os.DirEntry[str]]:
    if not _exists(folder or ".") or not os.path.isdir(folder or "."):
        return []
    return _entries(folder)


def _exists(path: str) -> bool:
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise UnreadableFileError(path, error) from error
    return True
