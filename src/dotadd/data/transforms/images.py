"""Images moved and mirrored, and what all sets of transformations of images share.

Images keep their size and their type of numbers. What comes from outside of the frame is the nearest pixel of its edge
(`fill="edge"`), or a gray value (`fill=0`).
"""

from __future__ import annotations

import numpy as np

from dotadd._jit import inner, kernel, plain
from dotadd._util.expression import call_repr
from dotadd.data.batches import Batch, Images
from dotadd.data.transforms.base import TransformError, Transforms, number, steps, whole_number

Fill = str | float

DTYPES = tuple(map(np.dtype, (np.uint8, np.uint16, np.float32, np.float64)))


def translate(pixels: int, *, step: int = 1, fill: Fill = "edge") -> Translations:
    """Moves by up to so many pixels up, down, left and right, and both ways at once.

    pixels, step: each of the two moves is one of -pixels, -pixels + step, ..., pixels.
    fill:         what comes from outside of the frame: "edge", or a gray value.
    """
    pixels, step = whole_number("pixels", pixels), whole_number("step", step)
    moves = steps(pixels, step).astype(np.int64)
    options = {} if step == 1 else {"step": step}
    return Translations(call_repr("translate", pixels, **options, **fill_option(fill)), moves, fill)


def mirror() -> Mirror:
    """The image, and the image with left and right exchanged."""
    return Mirror("mirror()")


def fill_option(fill: Fill) -> dict[str, Fill]:
    """How `fill` is written."""
    return {} if isinstance(fill, str) and fill == "edge" else {"fill": number('fill has to be "edge" or', fill)}


class ImageTransforms(Transforms):
    """A set for images. `written` is the expression that makes it."""

    takes = (Images,)

    def __init__(self, written: str, fill: Fill = "edge") -> None:
        self.written, self.fill = written, fill
        self.edge = isinstance(fill, str)
        self.gray = 0.0 if isinstance(fill, str) else float(fill)

    def __repr__(self) -> str:
        return self.written

    def check(self, batch: Batch) -> None:
        super().check(batch)
        assert isinstance(batch, Images)
        dtype = batch.values.dtype
        if dtype not in DTYPES:
            names = ", ".join(known.name for known in DTYPES)
            raise TransformError(f"{self!r} changes images of {names}, and these are of {dtype}: convert them first")
        if dtype.kind == "u" and not (self.gray.is_integer() and 0 <= self.gray <= np.iinfo(dtype).max):
            raise TransformError(f"{self!r}: {self.fill} is no gray value of images of {dtype}")

    def apply(self, batch: Batch, rows: np.ndarray, which: np.ndarray) -> Images:
        self.check(batch)  # kernels rely on it, and it looks at no pixels
        assert isinstance(batch, Images)
        out = np.empty((len(rows), *batch.values.shape[1:]), batch.values.dtype)
        self.make(plain(batch.values), plain(np.asarray(rows, np.int64)), plain(np.asarray(which, np.int64)), out)
        return Images(out)

    def make(self, images: np.ndarray, rows: np.ndarray, which: np.ndarray, out: np.ndarray) -> None:
        """Write image rows[j], changed by member which[j], to out[j]."""
        raise NotImplementedError


class Translations(ImageTransforms):
    """Moves by all pairs of some numbers of pixels."""

    def __init__(self, written: str, moves: np.ndarray, fill: Fill) -> None:
        super().__init__(written, fill)
        self.down, self.right = np.repeat(moves, len(moves)), np.tile(moves, len(moves))

    def __len__(self) -> int:
        return len(self.down)

    @property
    def identity(self) -> int:
        return len(self) // 2

    def names(self) -> list[str]:
        return [_move_name(down, right) for down, right in zip(self.down.tolist(), self.right.tolist(), strict=True)]

    def check(self, batch: Batch) -> None:
        super().check(batch)
        assert isinstance(batch, Images)
        height, width = batch.values.shape[1:]
        if self.down[-1] >= min(height, width):
            raise TransformError(f"{self!r} moves an image of {height} x {width} pixels out of its frame")

    def make(self, images: np.ndarray, rows: np.ndarray, which: np.ndarray, out: np.ndarray) -> None:
        height, width = out.shape[1:]
        long, long_out = images.reshape(-1, height * width), out.reshape(-1, height * width)
        _translate(long, width, rows, self.down[which], self.right[which], self.edge, self.gray, long_out)


class Mirror(ImageTransforms):
    """The image itself and its mirror image."""

    def __len__(self) -> int:
        return 2

    @property
    def identity(self) -> int:
        return 0

    def names(self) -> list[str]:
        return ["as it is", "mirrored"]

    def make(self, images: np.ndarray, rows: np.ndarray, which: np.ndarray, out: np.ndarray) -> None:
        _mirror(images, rows, which, out)


def _move_name(down: int, right: int) -> str:
    vertical = [f"{abs(down)} {'down' if down > 0 else 'up'}"] if down else []
    horizontal = [f"{abs(right)} {'right' if right > 0 else 'left'}"] if right else []
    return ", ".join(vertical + horizontal) or "as it is"


@kernel
def _translate(images, width, rows, down, right, edge, gray, out):
    """Pixel (y, x) of out[j] is pixel (y - down[j], x - right[j]) of image rows[j].

    The pixels of an image are one long row here, so that it moves by one copy. What came around a side in this way is
    then overwritten, and at last the lines that come from above or below the frame.
    """
    size = images.shape[1]
    for j in range(len(rows)):
        image, moved = images[rows[j]], out[j]
        dy, dx = down[j] * width, right[j]
        ahead = dy + dx
        copy(image, max(-ahead, 0), size - abs(ahead), moved, max(ahead, 0))
        top, bottom = max(dy, 0), size + min(dy, 0)
        left, end, side = (0, dx, 0) if dx > 0 else (width + dx, width, width - 1)
        for line in range(top, bottom, width):
            value = float(image[line - dy + side]) if edge else gray
            for x in range(line + left, line + end):
                moved[x] = value
        for line in range(0, size, width):
            if top <= line < bottom:
                continue
            if edge:
                copy(moved, top if line < top else bottom - width, width, moved, line)
            else:
                for x in range(line, line + width):
                    moved[x] = gray


@inner
def copy(source, first, count, target, at):
    """target[at + k] = source[first + k] for k < count."""
    first, at = np.uint64(first), np.uint64(at)
    for k in range(np.uint64(count)):
        target[at + k] = source[first + k]


@kernel
def _mirror(images, rows, which, out):
    height, width = images.shape[1], images.shape[2]
    for j in range(len(rows)):
        for y in range(height):
            line, made = images[rows[j], y], out[j, y]
            if which[j] == 0:
                copy(line, 0, width, made, 0)
            else:
                for x in range(width):
                    made[x] = line[width - 1 - x]
