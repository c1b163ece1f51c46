"""Errors about maps: what a forest does not know of scenes, and files that cannot be written."""

from __future__ import annotations

import errno

from ..messages.surface import Say, in_words_of
from ..messages.text import human_bytes
from .base import DataError, OldgrowthError
from .models import UnwritableFileError


class RememberedSceneError(DataError):
    """What a forest remembers of the scene that it was trained on cannot be used."""

    def __init__(self, what: str) -> None:
        super().__init__(f"The forest does not tell how to open a scene for it: {what}.")


class SameFileError(OldgrowthError):
    """A file to write is one that is read, or is written as another one, too."""

    def __init__(self, name: str, path: object, what: str) -> None:
        def message(say: Say) -> str:
            option = in_words_of(say, name, "--output" if name == "path" else f"--{name}")
            return f"{path} ({option}) is {what}: choose another file. Nothing was written."

        super().__init__(message)


class TooManyClassesError(DataError):
    """A forest has more classes than a map can show."""

    def __init__(self, classes: int, most: int) -> None:
        super().__init__(
            f"The forest has {classes:,} classes, but a map shows at most {most:,}: pixels have 16 bits, and "
            "one value is for nodata. Train a forest on fewer classes."
        )


class MapInUseError(OldgrowthError):
    """Another process writes the same map."""

    def __init__(self, path: object) -> None:
        super().__init__(f"{path} is being written by another process: wait for it, or choose another file.")


class UnfinishedMapError(OldgrowthError, OSError):
    """A map could not be finished; what is done is kept. `errno` is the number of the system's error."""

    def __init__(self, path: object, directory: object, number: int, why: str) -> None:
        full = number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        way = "free some space and write the map again" if full else "write the map again"
        super().__init__(
            f"{path} could not be written: {why}. An existing file is unchanged. What is done is kept in "
            f"{directory}: {way} to go on, or remove the directory."
        )
        self.errno = number


class MapTooLargeError(UnwritableFileError):
    """The disk has too little space for a map."""

    def __init__(self, path: object, needed: int, free: int) -> None:
        OldgrowthError.__init__(
            self,
            f"{path} needs {human_bytes(needed)} of disk while it is made, but {human_bytes(free)} are free: "
            "free some space, or choose another disk. Nothing was written.",
        )
        self.errno = errno.ENOSPC
