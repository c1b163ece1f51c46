"""Masks: a band whose bits or values tell which pixels do not count."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import ParameterError
from ...messages.surface import Say, in_words_of

_RULE = re.compile(r"\s*(bits|values|not values)\s+(-?\d+(?:\s*,\s*-?\d+)*)\s*")


def _wanted(say: Say) -> str:
    example = in_words_of(say, "('*QA_PIXEL.TIF', 'bits 1,3,4')", "'*QA_PIXEL.TIF' 'bits 1,3,4'")
    return f"a file and a rule, such as {example}; other rules are 'values 0,255' and 'not values 1'"


@dataclass(frozen=True)
class MaskRule:
    """Pixels do not count where one of these bits is set, or the value is one of these, or none of them."""

    kind: str
    numbers: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.kind} {','.join(map(str, self.numbers))}"

    def check_type(self, dtype: np.dtype[Any], file: str) -> None:
        """Refuse bits of pixels that have none, or not so many."""
        bits = 8 * dtype.itemsize if dtype.kind in "iu" else 0
        if self.kind == "bits" and max(self.numbers) >= bits:
            has = f"{bits} bits" if bits else "no bits"
            raise ParameterError("mask", str(self), f"a rule for {dtype.name}, which has {has} ({file})")

    def masked(self, values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        if self.kind == "bits":
            bits = sum(1 << bit for bit in set(self.numbers))
            return (values.astype(np.int64) & bits) != 0
        listed = np.isin(values, self.numbers)
        return ~listed if self.kind == "not values" else listed


def same_rule(rule: MaskRule, text: str) -> bool:
    """Whether a text is the same rule, with the numbers in any order."""
    found = _RULE.fullmatch(text)
    if found is None:
        return False
    return rule.kind == found[1] and set(rule.numbers) == {int(number) for number in found[2].split(",")}


def parse_mask(mask: Any) -> tuple[str, MaskRule]:
    """The file or pattern of a mask, and its rule."""
    if not isinstance(mask, Sequence) or isinstance(mask, str) or len(mask) != 2:
        raise ParameterError("mask", mask, _wanted)
    file, rule = mask
    found = _RULE.fullmatch(rule) if isinstance(rule, str) else None
    if found is None:
        raise ParameterError("mask", mask, _wanted)
    numbers = tuple(int(number) for number in found[2].split(","))
    if found[1] == "bits" and not all(0 <= bit < 63 for bit in numbers):
        raise ParameterError("mask", mask, "bits from 0 to 62")
    return str(file), MaskRule(found[1], numbers)
