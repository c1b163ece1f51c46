"""Generated imagery with labels, for the demo.

It has what makes satellite data hard: six 16-bit bands that vary smoothly, regions with edges, mixed pixels
along them, a class that covers most of the scene, one that covers less than a thousandth of it, and some
wrong labels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..checks import whole
from ..errors import DataError, ParameterError

BAND_NAMES = ("blue", "green", "red", "near infrared", "short-wave 1", "short-wave 2")
MIN_SIDE = 100

# Reflectance times 10,000 in each band, as in common satellite products.
_SIGNATURES = {
    "woodland": (260, 460, 310, 3000, 1450, 650),
    "grassland": (400, 760, 600, 3500, 2250, 1250),
    "cropland": (520, 860, 900, 3200, 2600, 1700),
    "water": (480, 450, 300, 160, 90, 60),
    "built-up": (1150, 1300, 1450, 2250, 2350, 2050),
    "bare soil": (950, 1300, 1750, 2450, 3300, 2750),
    "old growth": (207, 375, 240, 2190, 870, 340),
}
CLASS_NAMES = tuple(_SIGNATURES)
_WOOD, _GRASS, _CROP, _WATER, _BUILT, _SOIL, _RARE = range(len(CLASS_NAMES))

_WATER_SHARE, _OPEN_SHARE, _SOIL_OF_OPEN, _BUILT_SHARE, _GRASS_SHARE = 0.07, 0.16, 0.2, 0.03, 0.12
_RARE_SHARE = 0.0007
_RARE_OBJECT_PIXELS = 28
_SINGLE_ERRORS, _ERROR_PATCHES = 0.01, 0.01
_PARCEL = (22.0, 13.0)

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Scene:
    """Bands of shape (bands, height, width), and the label and the true class of each pixel."""

    bands: npt.NDArray[np.uint16]
    labels: Labels
    truth: Labels
    class_names: tuple[str, ...] = CLASS_NAMES

    @property
    def shape(self) -> tuple[int, int]:
        height, width = self.labels.shape
        return height, width


def make_scene(height: int = 600, width: int = 600, seed: int = 0) -> Scene:
    """A scene in which the last class is the rare one.

    Parameters
    ----------
    height, width : int
        Pixels; at least 100 each, so that the rare class has a few pixels.
    seed : int
        The same seed gives the same scene.

    Examples
    --------
    >>> from oldgrowth.demo.scene import make_scene
    >>> make_scene(100, 120, seed=1).bands.shape
    (6, 100, 120)
    """
    height, width = whole("height", height, MIN_SIDE), whole("width", width, MIN_SIDE)
    rng = np.random.default_rng(seed)
    parcels = _parcels(rng, height, width)
    truth = _land_cover(rng, parcels)
    _plant_rare(rng, truth)
    bands = _render(rng, truth, parcels)
    return Scene(bands, _mislabel(rng, truth), truth)


def split_blocks(scene: Scene, test_share: float = 0.3, block: int = 25, seed: int = 0) -> Bools:
    """Which pixels are for testing, in whole blocks of `block` x `block` pixels; of the scene's shape.

    Neighbouring pixels are alike and share most of their patches, so a test on pixels in between those
    trained on flatters a model. Blocks are assigned from the rarest to the most common class, so that each
    class is in both parts.
    """
    _check_share(test_share)
    block = whole("block", block, 1)
    rng = np.random.default_rng(seed)
    height, width = scene.shape
    across = -(-width // block)
    n_blocks = across * -(-height // block)
    block_of = (np.arange(height) // block)[:, None] * across + np.arange(width) // block
    n_classes = len(scene.class_names)
    pairs = block_of.ravel() * n_classes + scene.truth.ravel()
    counts = np.bincount(pairs, minlength=n_blocks * n_classes).reshape(n_blocks, n_classes)
    totals = counts.sum(axis=0)
    in_test, dealt = np.zeros(n_blocks, dtype=bool), np.zeros(n_blocks, dtype=bool)
    for label in np.argsort(totals, kind="stable"):
        for b in rng.permutation(np.flatnonzero((counts[:, label] > 0) & ~dealt)):
            in_test[b] = counts[in_test, label].sum() < test_share * totals[label]
            dealt[b] = True
    tested = counts[in_test].sum(axis=0)
    for label in np.flatnonzero((totals > 0) & ((tested == 0) | (tested == totals))):
        raise DataError(
            f"Blocks of {block} x {block} pixels cannot put class {scene.class_names[label]!r} into both "
            "train and test: choose a smaller block."
        )
    test: Bools = in_test[block_of]
    return test


def _check_share(test_share: float) -> None:
    if not 0 < test_share < 1:
        raise ParameterError("test_share", test_share, "between 0 and 1")


def _smooth(rng: np.random.Generator, height: int, width: int, length: float) -> Floats:
    """Noise without detail finer than about `length` pixels, of mean 0 and deviation 1."""
    fy, fx = np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None, :]
    spectrum = np.fft.rfft2(rng.standard_normal((height, width)))
    field = np.fft.irfft2(spectrum * np.exp(-2 * (np.pi * length) ** 2 * (fy**2 + fx**2)), s=(height, width))
    field -= field.mean()
    smooth: Floats = field / field.std()
    return smooth


def _parcels(rng: np.random.Generator, height: int, width: int) -> npt.NDArray[np.intp]:
    """The number of each pixel's parcel: bricks of a slanted wall, as fields lie along a road."""
    y, x = np.mgrid[:height, :width]
    angle = rng.uniform(0.2, 0.7)
    along, beside = x * np.cos(angle) + y * np.sin(angle), y * np.cos(angle) - x * np.sin(angle)
    strip = np.floor(beside / _PARCEL[1]).astype(np.intp)
    strip -= strip.min()
    shift = rng.uniform(0, 1, strip.max() + 1)
    brick = np.floor(along / _PARCEL[0] + shift[strip]).astype(np.intp)
    _, numbers = np.unique(strip * (brick.max() + 1) + brick, return_inverse=True)
    return numbers.reshape(height, width)


def _highest(field: Floats, pixels: float, where: Bools) -> Bools:
    """About `pixels` of the pixels `where`, those with the highest values."""
    values = field[where]
    level = np.quantile(values, max(0.0, 1 - pixels / len(values)))
    found: Bools = where & (field > level)
    return found


def _land_cover(rng: np.random.Generator, parcels: npt.NDArray[np.intp]) -> Labels:
    height, width = parcels.shape
    n, side = height * width, min(height, width)
    relief = _smooth(rng, height, width, side / 14) + 0.25 * _smooth(rng, height, width, side / 60 + 1)
    truth = np.full((height, width), _WOOD, dtype=np.uint8)
    truth[_highest(-relief, _WATER_SHARE * n, truth == _WOOD)] = _WATER
    # Whole parcels are cleared, the most open first, until the share is reached.
    openness = _smooth(rng, height, width, side / 12) - 0.3 * relief
    sizes = np.bincount(parcels.ravel())
    means = np.bincount(parcels.ravel(), openness.ravel()) / sizes
    order = np.argsort(-means)
    cleared = order[: int(np.searchsorted(np.cumsum(sizes[order]), _OPEN_SHARE * n)) + 1]
    use = np.full(len(sizes), _WOOD, dtype=np.uint8)
    use[cleared] = _CROP
    use[rng.permutation(cleared)[: max(1, round(_SOIL_OF_OPEN * len(cleared)))]] = _SOIL
    land = truth != _WATER
    truth[land] = use[parcels][land]
    # Houses stand in clusters in and around the open country, with gaps between them.
    houses = (
        openness + 0.8 * _smooth(rng, height, width, 1.5) + 1.2 * _smooth(rng, height, width, side / 40 + 1)
    )
    truth[_highest(houses, _BUILT_SHARE * n, truth != _WATER)] = _BUILT
    meadows = _smooth(rng, height, width, side / 30) + 0.3 * _smooth(rng, height, width, 2.5) + 0.5 * openness
    truth[_highest(meadows, _GRASS_SHARE * n, truth == _WOOD)] = _GRASS
    return truth


def _plant_rare(rng: np.random.Generator, truth: Labels) -> None:
    """Turn some of the woodland into a few small, round stands of the rare class, far from each other."""
    height, width = truth.shape
    pixels = max(4, int(_RARE_SHARE * truth.size))
    stands = max(2, min(12, pixels // _RARE_OBJECT_PIXELS))
    y, x = np.mgrid[:height, :width]
    room = int(np.sqrt(pixels / stands / np.pi)) + 2
    inside = _all_around(truth == _WOOD, room)
    border = min(height, width) // 20
    inside &= (np.minimum(y, height - 1 - y) >= border) & (np.minimum(x, width - 1 - x) >= border)
    apart = min(height, width) / np.sqrt(stands)
    for stand in range(stands):
        free = np.flatnonzero(inside)
        while not len(free):  # little woodland is left: allow stands to be closer
            apart /= 2
            inside = _all_around(truth == _WOOD, room if apart > 2 * room else 0)
            free = np.flatnonzero(inside)
        cy, cx = divmod(int(rng.choice(free)), width)
        distance = np.hypot(y - cy, x - cx)
        wanted = pixels // stands + (stand < pixels % stands)
        ragged = distance + rng.uniform(0, 0.8, distance.shape) + 1e6 * (truth != _WOOD)
        truth.ravel()[np.argpartition(ragged, wanted, axis=None)[:wanted]] = _RARE
        inside &= distance > apart


def _all_around(mask: Bools, radius: int) -> Bools:
    """The pixels whose square of this radius lies in the mask and in the scene."""
    height, width = mask.shape
    sums = np.pad(mask.astype(np.int64).cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))
    k = 2 * radius + 1
    found = np.zeros_like(mask)
    full = sums[k:, k:] - sums[:-k, k:] - sums[k:, :-k] + sums[:-k, :-k] == k * k
    found[radius : height - radius, radius : width - radius] = full
    return found


def _render(rng: np.random.Generator, truth: Labels, parcels: npt.NDArray[np.intp]) -> npt.NDArray[np.uint16]:
    """The image of a sensor: light and shade, growth that differs by parcel, mixed pixels, noise."""
    height, width = truth.shape
    side = min(height, width)
    signatures = np.array(list(_SIGNATURES.values()), dtype=np.float64)
    light = 1 + 0.07 * _smooth(rng, height, width, side / 50 + 1) + 0.03 * _smooth(rng, height, width, 1.0)
    farmed = (truth == _CROP) | (truth == _SOIL)
    n_parcels = parcels.max() + 1
    # Parcels differ mostly in brightness and a little in colour.
    crops = rng.normal(0, 0.2, (n_parcels, 1)) + rng.normal(0, 0.1, (n_parcels, len(BAND_NAMES)))
    bands = np.empty((len(BAND_NAMES), height, width), dtype=np.uint16)
    for b in range(len(BAND_NAMES)):
        seen = signatures[:, b][truth] * (light + 0.05 * _smooth(rng, height, width, side / 25 + 1))
        seen *= 1 + np.where(farmed, crops[:, b][parcels], 0)
        seen *= 1 + np.where(truth == _BUILT, 0.2, 0.02) * rng.standard_normal((height, width))
        seen = _blur(seen) * (1 + 0.07 * rng.standard_normal((height, width)))
        seen += 25 * rng.standard_normal((height, width))
        bands[b] = np.clip(np.rint(seen), 1, np.iinfo(np.uint16).max)
    return bands


def _blur(image: Floats) -> Floats:
    """Blur the image: a pixel of a sensor also sees some of its neighbours."""
    for axis in (0, 1):
        edges = [(1, 1) if a == axis else (0, 0) for a in (0, 1)]
        wide = np.moveaxis(np.pad(image, edges, mode="edge"), axis, 0)
        image = np.moveaxis((wide[:-2] + 4 * wide[1:-1] + wide[2:]) / 6, 0, axis)
    return image


def _mislabel(rng: np.random.Generator, truth: Labels) -> Labels:
    """Labels with errors, single ones and whole patches, but none in the rare class."""
    height, width = truth.shape
    wrong = rng.random(truth.shape) < _SINGLE_ERRORS
    wrong |= _highest(_smooth(rng, height, width, 4), _ERROR_PATCHES * truth.size, np.ones_like(wrong))
    wrong &= truth != _RARE
    # One of the other ordinary classes, the same one within a patch of 16 x 16 pixels.
    steps = rng.integers(1, _RARE, (-(-height // 16), -(-width // 16)), dtype=np.uint8)
    step = np.kron(steps, np.ones((16, 16), dtype=np.uint8))[:height, :width]
    labels = truth.copy()
    labels[wrong] = (truth[wrong] + step[wrong]) % _RARE
    return labels
