"""Images moved, mirrored, turned and scaled.

Images keep their size and their type of numbers. What comes from outside of the frame is the nearest pixel of its edge
(`fill="edge"`), or a gray value (`fill=0`).

A turn and a scaling are one map of the plane, so sets of them that stand next to each other in a product are made in
one go and interpolated once. A pixel is the bilinear mean of the four that lie around the place it comes from.
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
    return Translations(call_repr("translate", pixels, **options, **_fill_option(fill)), moves, fill)


def mirror() -> Mirror:
    """The image, and the image with left and right exchanged."""
    return Mirror("mirror()")


def rotate(degrees: float, *, step: float | None = None, fill: Fill = "edge") -> Warps:
    """Turns about the middle of the image; positive angles turn it to the left.

    degrees, step: the angles are -degrees, -degrees + step, ..., degrees; without a step -degrees, 0 and degrees.
    fill:          what comes from outside of the frame: "edge", or a gray value.
    """
    degrees = number("degrees has to be", degrees)
    if not 0 < degrees <= 180:
        raise TransformError(f"degrees has to be above 0 and at most 180, and not {degrees}")
    step = degrees if step is None else number("step has to be", step)
    angles = steps(degrees, step)
    if degrees == 180:
        angles = angles[1:]  # half a turn to the right is half a turn to the left
    options = {} if step == degrees else {"step": step}
    return Warps(call_repr("rotate", degrees, **options, **_fill_option(fill)), angles, np.ones(len(angles)), fill)


def scale(share: float, *, step: float | None = None, fill: Fill = "edge") -> Warps:
    """Makes what is seen smaller and larger about the middle of the image.

    share, step: the factors are 1 - share, 1 - share + step, ..., 1 + share; without a step 1 - share, 1 and 1 + share.
    fill:        what comes from outside of the frame: "edge", or a gray value.
    """
    share = number("share has to be", share)
    if not 0 < share < 1:
        raise TransformError(f"share has to be above 0 and below 1, and not {share}")
    step = share if step is None else number("step has to be", step)
    factors = 1 + steps(share, step)
    options = {} if step == share else {"step": step}
    return Warps(call_repr("scale", share, **options, **_fill_option(fill)), np.zeros(len(factors)), factors, fill)


def _fill_option(fill: Fill) -> dict[str, Fill]:
    """How `fill` is written."""
    return {} if isinstance(fill, str) and fill == "edge" else {"fill": number('fill has to be "edge" or', fill)}


class ImageTransforms(Transforms):
    """A set for images."""

    takes = (Images,)

    def __init__(self, written: str, fill: Fill = "edge") -> None:
        super().__init__(written)
        self.fill, self.edge = fill, isinstance(fill, str)
        self.gray = 0.0 if isinstance(fill, str) else float(fill)

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

    def names(self) -> list[str]:
        return ["as it is", "mirrored"]

    def make(self, images: np.ndarray, rows: np.ndarray, which: np.ndarray, out: np.ndarray) -> None:
        _mirror(images, rows, which, out)


class Warps(ImageTransforms):
    """Turned by an angle (in degrees) and scaled by a factor, for each of some pairs."""

    costly = True

    def __init__(self, written: str, angles: np.ndarray, factors: np.ndarray, fill: Fill) -> None:
        super().__init__(written, fill)
        self.angles, self.factors = angles, factors
        radians = np.radians(angles)  # rounded sines, so that quarter turns are exact
        self.turns = np.stack([np.round(np.cos(radians), 15), np.round(np.sin(radians), 15)], axis=1) / factors[:, None]

    def __len__(self) -> int:
        return len(self.angles)

    @property
    def identity(self) -> int:
        return int(np.flatnonzero((self.angles == 0) & (self.factors == 1))[0])

    def names(self) -> list[str]:
        return [_warp_name(angle, factor) for angle, factor in zip(self.angles, self.factors, strict=True)]

    def then(self, after: Transforms) -> Warps | None:
        if not isinstance(after, Warps) or after.fill != self.fill:
            return None
        angles = np.add.outer(self.angles, after.angles).ravel()
        factors = np.multiply.outer(self.factors, after.factors).ravel()
        return Warps(f"{after!r} * {self!r}", angles, factors, self.fill)

    def make(self, images: np.ndarray, rows: np.ndarray, which: np.ndarray, out: np.ndarray) -> None:
        if not out.size:
            return
        height, width = out.shape[1:]
        # A rim of one pixel around the image, and a last line and column that only let the rim have neighbours.
        frame = np.full((height + 3, width + 3), self.gray, np.float64 if out.dtype == np.float64 else np.float32)
        half = frame.dtype.type(0.5 if out.dtype.kind == "u" else 0.0)
        order = np.argsort(which, kind="stable")  # images with the same warp follow each other
        _warp(images, rows, which, order, self.turns, self.edge, half, frame, out)


def _move_name(down: int, right: int) -> str:
    vertical = [f"{abs(down)} {'down' if down > 0 else 'up'}"] if down else []
    horizontal = [f"{abs(right)} {'right' if right > 0 else 'left'}"] if right else []
    return ", ".join(vertical + horizontal) or "as it is"


def _warp_name(angle: float, factor: float) -> str:
    turned = [f"turned {'left' if angle > 0 else 'right'} by {abs(angle):g} degrees"] if angle else []
    scaled = [f"scaled by {factor:g}"] if factor != 1 else []
    return ", ".join(turned + scaled) or "as it is"


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
        _copy(image, max(-ahead, 0), size - abs(ahead), moved, max(ahead, 0))
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
                _copy(moved, top if line < top else bottom - width, width, moved, line)
            else:
                for x in range(line, line + width):
                    moved[x] = gray


@inner
def _copy(source, first, count, target, at):
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
                _copy(line, 0, width, made, 0)
            else:
                for x in range(width):
                    made[x] = line[width - 1 - x]


@kernel
def _warp(images, rows, which, order, turns, edge, half, frame, out):
    """Write image rows[j], turned and scaled by member which[j], to out[j].

    `turns` has a cosine and a sine for each member, divided by its factor; `half` rounds where pixels are whole.
    """
    height, width = images.shape[1], images.shape[2]
    corner = np.empty(height * width, np.int32)
    below, beside = np.empty(height * width, np.float32), np.empty(height * width, np.float32)
    flat = frame.reshape(frame.size)
    one, line = np.uint64(1), np.uint64(width + 3)
    located = np.int64(-1)
    for j in order:
        image, made = images[rows[j]].reshape(height * width), out[j].reshape(height * width)
        cosine, sine = turns[which[j], 0], turns[which[j], 1]
        if cosine == 1.0 and sine == 0.0:
            _copy(image, 0, height * width, made, 0)
            continue
        if which[j] != located:
            _locate(height, width, cosine, sine, corner, below, beside)
            located = which[j]
        _put_in_frame(images[rows[j]], edge, frame)
        for p in range(np.uint64(height * width)):
            at = np.uint64(corner[p])
            upper = flat[at] + beside[p] * (flat[at + one] - flat[at])
            at += line
            lower = flat[at] + beside[p] * (flat[at + one] - flat[at])
            made[p] = upper + below[p] * (lower - upper) + half


@inner
def _locate(height, width, cosine, sine, corner, below, beside):
    """Where each pixel comes from: the upper left one of four in the frame, and how far below and beside it.

    The frame begins one pixel above and left of the image. Beyond it all is as at its rim.
    """
    y_middle, x_middle = (height - 1) / 2, (width - 1) / 2
    lowest, rightmost = height + 1.0, width + 1.0
    line = np.int32(width + 3)
    for y in range(height):
        v_first = 1.0 + y_middle + cosine * (y - y_middle) - sine * x_middle
        u_first = 1.0 + x_middle - sine * (y - y_middle) - cosine * x_middle
        first = np.uint64(y * width)
        for x in range(np.uint64(width)):
            v = min(max(v_first + sine * np.int32(x), 0.0), lowest)
            u = min(max(u_first + cosine * np.int32(x), 0.0), rightmost)
            row, column = np.int32(v), np.int32(u)
            corner[first + x] = row * line + column
            below[first + x] = v - row
            beside[first + x] = u - column


@inner
def _put_in_frame(image, edge, frame):
    """The image with a rim of one pixel: the image's edge once more, or what is there already."""
    height, width = image.shape
    for y in range(height):
        line, framed = image[y], frame[y + 1]
        _copy(line, 0, width, framed, 1)
        if edge:
            framed[0], framed[width + 1] = line[0], line[width - 1]
    if edge:
        _copy(frame[1], 0, width + 2, frame[0], 0)
        _copy(frame[height], 0, width + 2, frame[height + 1], 0)
