"""In which order the elements of an array stand in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from pyjx.core.places import Space
from pyjx.core.records import Value, filled
from pyjx.core.specs import PartitionSpec
from pyjx.jaxlib_api import Device, Sharding


class AutoLayout:
    """The type of `Layout.AUTO`, which leaves the layout to XLA."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "AutoLayout"


class Layout(Value):
    """The order of dimensions in memory, and the tiles that hardware cuts them into.

    Args:
      major_to_minor: the dimensions, the one whose neighbours are farthest apart first.
      tiling: the sizes of tiles, or None for what the device likes.
      sub_byte_element_size_in_bits: of elements that are smaller than a byte, or 0.

    >>> from pyjx.experimental.layout import Layout
    >>> Layout((1, 0)).major_to_minor  # columns, one after the other
    (1, 0)
    """

    __slots__ = ("major_to_minor", "sub_byte_element_size_in_bits", "tiling")
    AUTO = AutoLayout()

    major_to_minor: tuple[int, ...]
    tiling: tuple[tuple[int, ...], ...] | None
    sub_byte_element_size_in_bits: int

    def __init__(self, major_to_minor: Sequence[int], tiling: Any = None,
                 sub_byte_element_size_in_bits: int = 0) -> None:
        filled(self, major_to_minor=tuple(major_to_minor),
               tiling=None if tiling is None else tuple(map(tuple, tiling)),
               sub_byte_element_size_in_bits=sub_byte_element_size_in_bits)

    def mapped(self, dim: int) -> Layout:
        """That of a batch whose axis is `dim`, which is the outermost one in memory."""
        return Layout((dim, *[d + (d >= dim) for d in self.major_to_minor]))

    @staticmethod
    def from_pjrt_layout(pjrt_layout: Any) -> Layout:
        """The layout that the runtime says."""
        xla = pjrt_layout._xla_layout()
        return Layout(xla.minor_to_major()[::-1], xla.tiling(), xla.element_size_in_bits())

    @staticmethod
    def for_array(x: Any) -> Layout:
        """The layout of an array."""
        return Layout.from_pjrt_layout(x._pjrt_layout)

    def check_compatible_aval(self, aval_shape: Sequence[int]) -> None:
        """ValueError if arrays of this shape have other dimensions than the layout."""
        if len(self.major_to_minor) != len(aval_shape):
            raise ValueError("Length of major_to_minor and the rank of the value should match. Got "
                             f"major_to_minor={self.major_to_minor} and shape={aval_shape}")

    def is_of(self, x: Any) -> bool:
        """Whether the elements of an array stand so in memory."""
        own = Layout.for_array(x)
        return own.major_to_minor == self.major_to_minor and self.tiling in (None, own.tiling)

    def text(self) -> str:
        """XLA's spelling, the innermost dimension first: `{0,1}`."""
        order = ",".join(map(str, self.major_to_minor[::-1]))
        tiles = "".join([f"({','.join(map(str, t))})" for t in self.tiling or ()])
        size = self.sub_byte_element_size_in_bits
        rest = (f"T{tiles}" if tiles else "") + (f"E({size})" if size else "")
        return f"{{{order}:{rest}}}" if rest else f"{{{order}}}"

    def __repr__(self) -> str:
        return (f"Layout(major_to_minor={self.major_to_minor}, tiling={self.tiling}, "
                f"sub_byte_element_size_in_bits={self.sub_byte_element_size_in_bits})")


class Format(Value):
    """A layout and a sharding.

    Args:
      layout: a `Layout`, `Layout.AUTO`, or None for what the device likes.
      sharding: a `Sharding`, or None where any will do; a `Layout` needs one with devices.

    Raises:
      TypeError: they are none.
      ValueError: a `Layout` is given without a sharding.

    >>> import pyjx as jax
    >>> jax.numpy.ones((2, 3)).format.layout.major_to_minor
    (0, 1)
    """

    __slots__ = ("layout", "sharding")

    layout: Any
    sharding: Any

    def __init__(self, layout: Any = None, sharding: Any = None) -> None:
        if not (layout is None or isinstance(layout, (Layout, AutoLayout))):
            raise TypeError(
                "Invalid value received for the layout argument. Expected values are `None`, "
                f"`Layout.AUTO` or an instance of `Layout`. Got {layout} of type {type(layout)}")
        if not (sharding is None or isinstance(sharding, Sharding)):
            raise TypeError(
                "Invalid value received for the sharding argument. Expected values are `None` or "
                f"an instance of `jax.Sharding`. Got {sharding} of type {type(sharding)}")
        if isinstance(layout, Layout) and sharding is None:
            raise ValueError(
                f"Sharding has to be concrete when layout is of type {type(layout)}. Please pass a "
                "`jax.sharding.NamedSharding` or `jax.sharding.SingleDeviceSharding` to the "
                f"sharding argument. Got sharding {sharding}")
        filled(self, layout=layout, sharding=sharding)

    def __repr__(self) -> str:
        return f"Format(layout={self.layout}, sharding={self.sharding})"


# What says how a result lies along a mesh, and where a function puts an array that it makes.
ShardingLike: TypeAlias = Sharding | PartitionSpec | None
DeviceLike: TypeAlias = Device | Sharding | PartitionSpec | Format | Space | None
