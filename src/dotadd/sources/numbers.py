"""Decimal numbers out of text, for kernels: correctly rounded to float64 without a call to the C library.

Most numbers have at most 53 bits of digits and a small exponent, and one multiplication by an exact power of ten rounds
them correctly. For the rest the digits are multiplied with the first 64 bits of the power of ten as integers; where
the bits left over do not settle the rounding (about one number in a thousand of those), or the number is close to the
ends of the range, the kernel says ODD and Python's `float` decides.
"""

from __future__ import annotations

import numpy as np

from dotadd._jit import inner

NUMBER, NOT_A_NUMBER, ODD = 0, 1, 2

_SMALLEST, _LARGEST = -290, 270  # powers of ten that keep 19 digits well inside float64


def _mantissas() -> np.ndarray:
    """The first 64 bits of each power of ten, rounded down."""
    found = []
    for exponent in range(_SMALLEST, _LARGEST + 1):
        if exponent >= 0:
            power = 10**exponent
            shift = power.bit_length() - 64
            found.append(power >> shift if shift >= 0 else power << -shift)
        else:
            power = 10**-exponent
            scaled = (1 << (power.bit_length() + 64)) // power
            found.append(scaled >> (scaled.bit_length() - 64))
    return np.array(found, np.uint64)


_POWERS = np.array([10.0**exponent for exponent in range(23)])
_MANTISSAS = _mantissas()
_BINARY = np.array([2.0**exponent for exponent in range(-1022, 1024)])
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_ONE = np.uint64(1)
_TEN = np.uint64(10)


@inner
def _scaled(digits, exponent):
    """digits * 10**exponent in float64, and whether its rounding is certain."""
    shift = np.uint64(0)
    for step in (32, 16, 8, 4, 2, 1):
        if digits >> np.uint64(64 - step) == np.uint64(0):
            digits <<= np.uint64(step)
            shift += np.uint64(step)
    power = _MANTISSAS[exponent - _SMALLEST]
    # The upper 64 bits of the product; the bits of the power that were cut off could raise them by one at most.
    low_low = (digits & _LOW) * (power & _LOW)
    high_low = (digits >> _HALF) * (power & _LOW)
    low_high = (digits & _LOW) * (power >> _HALF)
    middle = (low_low >> _HALF) + (high_low & _LOW) + (low_high & _LOW)
    upper = (digits >> _HALF) * (power >> _HALF) + (high_low >> _HALF) + (low_high >> _HALF) + (middle >> _HALF)
    normal = upper >> np.uint64(63)
    spare = np.uint64(10) + normal
    rest = upper & ((_ONE << spare) - _ONE)
    half = _ONE << (spare - _ONE)
    rounded = (upper >> spare) + (_ONE if rest > half else np.uint64(0))
    # floor(exponent * log2(10)) + 1 is the power's length in bits before it was cut to 64.
    length = ((exponent * 217706) >> 16) + 1
    binary = length - np.int64(shift) + np.int64(spare)
    return np.float64(rounded) * _BINARY[binary + 1022], rest != half and rest != half - _ONE


@inner
def _significand(text, p):
    """Digits with a point among them, however many: the first 19 that count, their exponent, and whether these are all.

    The careful twin of the loop in `number`, for long numbers.
    """
    digits, exponent, exact = np.uint64(0), np.int64(0), True
    seen, behind_point = 0, False
    while text[p] == 46 or 48 <= text[p] <= 57:
        if text[p] == 46:
            behind_point = True
        else:
            if seen < 19:
                digits = digits * np.uint64(10) + np.uint64(text[p] - 48)
                seen += digits != np.uint64(0)  # leading zeros do not count
                exponent -= behind_point
            else:
                exact = exact and text[p] == 48
                exponent += not behind_point
        p += _ONE
    return digits, exponent, exact


@inner
def number(text, p):
    """The number that begins at p: its value, where it ends, and NUMBER, NOT_A_NUMBER or ODD.

    The text has to end in a newline, so no digit loop runs over its end.
    """
    negative = text[p] == 45
    if negative or text[p] == 43:
        p += _ONE
    first = p
    digits, exponent, exact = np.uint64(0), np.int64(0), True
    digit = np.int64(text[p]) - 48
    while 0 <= digit < 10:
        digits = digits * _TEN + np.uint64(digit)
        p += _ONE
        digit = np.int64(text[p]) - 48
    length = p - first
    if text[p] == 46:
        p += _ONE
        point = p
        digit = np.int64(text[p]) - 48
        while 0 <= digit < 10:
            digits = digits * _TEN + np.uint64(digit)
            p += _ONE
            digit = np.int64(text[p]) - 48
        length += p - point
        exponent = -np.int64(p - point)
    if length == np.uint64(0):
        return 0.0, p, NOT_A_NUMBER
    if length > np.uint64(19):
        digits, exponent, exact = _significand(text, first)
    if text[p] == 101 or text[p] == 69:
        p += _ONE
        down = text[p] == 45
        if down or text[p] == 43:
            p += _ONE
        digit = np.int64(text[p]) - 48
        if not 0 <= digit < 10:
            return 0.0, p, NOT_A_NUMBER
        written = np.int64(0)
        while 0 <= digit < 10:
            written = min(written * 10 + digit, np.int64(100_000))
            p += _ONE
            digit = np.int64(text[p]) - 48
        exponent += -written if down else written
    certain = exact
    if digits == np.uint64(0):
        value = 0.0
    elif digits <= np.uint64(1 << 53) and -22 <= exponent <= 22:
        value = np.float64(np.int64(digits))
        value = value / _POWERS[-exponent] if exponent < 0 else value * _POWERS[exponent]
    elif exact and _SMALLEST <= exponent <= _LARGEST:
        value, certain = _scaled(digits, exponent)
    else:
        value, certain = 0.0, False
    return -value if negative else value, p, NUMBER if certain else ODD
