"""The decoder of packed integers: what most devices send of a waveform."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from contracts.errors import DeclarationError
from contracts.types.declaration import Declaration

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from contracts.types.raw_record import RawRecord

BYTES = {8: 1, 12: 3, 16: 2, 24: 3, 32: 4}
"""The number of bytes that a sample takes, or two of 12 bits."""
TWELVE, THREE = 12, 3


@dataclass(frozen=True)
class PackedIntegers(Declaration):
    """Decodes samples of `bits` (8, 12, 16, 24 or 32) that are packed without gaps, in this byte `order`.

    The samples of several `channels` alternate. Each channel names the event's field that gets its list. The value of
    a sample is `scale * number + offset`, or the number itself by default. The first sample is after `skip` bytes. A
    value with another number of `samples` of each channel, or with a part of one, is refused. Two samples of 12 bits
    are in three bytes: the first one in the lower bits if the order is little, and in the higher ones if it is big.
    The last of an odd number has two bytes. Needs numpy, of the extra `stateloop[raw]`.
    """

    bits: int = 16
    order: Literal["little", "big"] = "little"
    signed: bool = True
    channels: tuple[str, ...] = ("samples",)
    samples: int | None = None
    scale: float = 1.0
    offset: float = 0.0
    skip: int = 0

    def __post_init__(self) -> None:
        if self.bits not in BYTES:
            raise DeclarationError(
                f"PackedIntegers(bits={self.bits})", "cannot be unpacked", f"Write one of {[*BYTES]}"
            )
        if self.order not in ("little", "big"):
            raise DeclarationError(f"PackedIntegers(order={self.order!r})", "is no order", "Write 'little' or 'big'")
        if not self.channels or len(set(self.channels)) < len(self.channels):
            raise DeclarationError("PackedIntegers(channels=…)", f"got {self.channels}", "Name each field once")
        if self.skip < 0 or (self.samples is not None and self.samples < 1):
            raise DeclarationError("PackedIntegers", "has a negative size", "Write skip=0 or more, samples=1 or more")
        if not (math.isfinite(self.scale) and math.isfinite(self.offset)):
            raise DeclarationError("PackedIntegers(scale=…)", "is not finite", "Write numbers")

    @property
    def is_whole(self) -> bool:
        """Return whether samples are whole numbers."""
        return self.scale == 1 and self.offset == 0

    def __call__(self, record: RawRecord) -> dict[str, Any]:
        """Return an array of the samples of each channel. Raises ValueError for a value of another length."""
        if len(record.value) < self.skip:
            raise ValueError(f"has {len(record.value)} bytes, and {self.skip} come before the samples")
        numbers = self._numbers(record.value[self.skip :])
        each, more = divmod(len(numbers), len(self.channels))
        if more:
            raise ValueError(f"has {len(numbers)} samples, which {len(self.channels)} channels do not divide")
        if self.samples not in (None, each):
            raise ValueError(f"has {each} samples of each channel, and {self.samples} are declared")
        values = numbers if self.is_whole else numbers * self.scale + self.offset
        # Each channel in one piece, which orjson writes without a Python object for each sample.
        return dict(zip(self.channels, values.reshape(each, len(self.channels)).T.copy(), strict=True))

    def _numbers(self, packed: bytes) -> NDArray[Any]:
        import numpy as np  # noqa: PLC0415  # only the decoder needs it, and not where an application is declared

        if more := len(packed) % (whole := BYTES[self.bits]):
            if self.bits == TWELVE and more == whole - 1:
                return self._numbers(packed + b"\0")[:-1]
            raise ValueError(f"has {len(packed)} bytes of samples: the last one is truncated")
        if whole == THREE:
            return self._threes(packed)
        numbers = np.frombuffer(packed, f"{self._kind}{whole}")
        return numbers.astype(numbers.dtype.newbyteorder("="), copy=False)

    def _threes(self, packed: bytes) -> NDArray[Any]:
        """The samples of whole groups of three bytes, each read as a word of four, of which one byte is too many.

        A shift to the left removes what is before a sample; one to the right, what is after it, and extends its sign.
        """
        import numpy as np  # noqa: PLC0415  # as above

        count, little = len(packed) // THREE, self.order == "little"
        swapped = np.ndarray((count,), f"{self._kind}4", packed + b"\0", strides=(THREE,))
        words = swapped.astype(swapped.dtype.newbyteorder("="))
        if self.bits != TWELVE:
            return (words << 8 if little else words) >> 8
        pairs = np.empty((count, 2), words.dtype)
        pairs[:, 0] = (words << 20 if little else words) >> 20
        pairs[:, 1] = words << (8 if little else 12) >> 20
        return pairs.ravel()

    @property
    def _kind(self) -> str:
        """The order and sign of numpy's type of a word."""
        return ("<" if self.order == "little" else ">") + ("i" if self.signed else "u")
