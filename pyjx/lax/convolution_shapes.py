"""Sizes, padding and axis names of convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyjx.core.integers import as_int, as_ints, max_dim
from pyjx.core.records import Record
from pyjx.core.value_texts import shortened_text

Padding = tuple[tuple[int, int], ...]


class ConvDimensionNumbers(Record):
    """Which axes of input, kernel and result are which.

    Each field lists axes: batch, feature, space... for `lhs_spec` and `out_spec`; output feature,
    input feature, space... for `rhs_spec`.
    """

    lhs_spec: Sequence[int]
    rhs_spec: Sequence[int]
    out_spec: Sequence[int]


ConvGeneralDilatedDimensionNumbers = None | ConvDimensionNumbers | tuple[str, str, str]


def permuted(values: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    return tuple([values[i] for i in order])


def check_strides(name: str, argument: str, strides: Any, count: int) -> tuple[int, ...]:
    """Strides as a tuple of `count` positive integers."""
    values = as_ints(name, argument, strides)
    if len(values) != count:
        raise ValueError(f"{name}: {argument} must have one element for each spatial axis, of "
                         f"which there are {count}, got {values}")
    if any(v <= 0 for v in values):
        raise ValueError(f"{name} {argument} must be positive, got {values}")
    return values


def dilated(size: int, dilation: int) -> int:
    """Size of an axis whose elements stand `dilation` apart."""
    return 0 if size == 0 else 1 + dilation * (size - 1)


class UnknownPadding(ValueError, RuntimeError):
    """A name of a padding that there is not. Code for JAX catches it as a RuntimeError.

    Ways out: `'SAME'`, `'SAME_LOWER'`, `'VALID'`, or a pair of numbers for each axis.
    """


def padtype_to_pads(in_shape: Sequence[int], window_shape: Sequence[int],
                    window_strides: Sequence[int], padding: str) -> list[tuple[int, int]]:
    """Pairs (low, high) for the padding "SAME", "SAME_LOWER" or "VALID".

    "SAME" gives ceil(size / stride) positions; of an odd total the larger part is high, or low with
    "SAME_LOWER".

    Args:
      in_shape: the sizes of the axes that are padded.
      window_shape: the sizes of the window.
      window_strides: how far it moves each time.
      padding: "SAME", "SAME_LOWER" or "VALID".

    Raises:
      UnknownPadding: another string.
      TypeError: no string, or no sequences of integers.
      ValueError: strides that are not positive, or other numbers of axes.

    >>> import pyjx as jax
    >>> jax.lax.padtype_to_pads((8, 7), (3, 2), (1, 2), "SAME")
    [(1, 1), (0, 1)]
    """
    return named_pads("padtype_to_pads", in_shape, window_shape, window_strides, padding)


def named_pads(name: str, in_shape: Sequence[int], window_shape: Sequence[int],
               window_strides: Sequence[int], padding: str) -> list[tuple[int, int]]:
    """`padtype_to_pads` for the function `name`, which errors mention."""
    if not isinstance(padding, str):
        raise TypeError(f"{name}: Unknown padding type: {padding!r}.")
    sizes = as_ints(name, "in_shape", in_shape)
    windows = as_ints(name, "window_shape", window_shape)
    strides = check_strides(name, "window_strides", window_strides, len(sizes))
    if len(windows) != len(sizes):
        raise ValueError(f"{name}: window_shape must have one element for each of in_shape, "
                         f"got {windows} and {sizes}")
    kind = padding.upper()
    if kind == "VALID":
        return [(0, 0)] * len(in_shape)
    if kind not in ("SAME", "SAME_LOWER"):
        raise UnknownPadding(f"{name}: Unrecognized padding type: expected 'VALID', 'SAME', or "
                             f"'SAME_LOWER', got {shortened_text(padding, 80)}.")
    pads = []
    for n, window, stride in zip(sizes, windows, strides, strict=True):
        total = max_dim((-(-n // stride) - 1) * stride + window - n, 0)
        less = total // 2
        pads.append((less, total - less) if kind == "SAME" else (total - less, less))
    return pads


def padding_pairs(name: str, argument: str, padding: Any) -> Padding:
    """Pairs (low, high) of integers as a tuple; TypeError names the argument."""
    try:
        pairs = [(low, high) for low, high in padding]
    except (TypeError, ValueError):
        raise TypeError(f"{name}: {argument} must be a string or a sequence of pairs of "
                        f"padding (low, high), got {padding!r}") from None
    flat = as_ints(name, argument, [p for pair in pairs for p in pair])
    return tuple(zip(flat[::2], flat[1::2], strict=True))


def conv_shape_tuple(lhs_shape: Sequence[int], rhs_shape: Sequence[int], strides: Sequence[int],
                     pads: Any, batch_group_count: int = 1) -> tuple[int, ...]:
    """The result's shape for an input (batch, feature, space...) and a kernel (out, in, space...).

    Args:
      lhs_shape, rhs_shape: the shapes of input and kernel.
      strides: how far the window moves each time, one int for each axis of space.
      pads: "SAME", "SAME_LOWER", "VALID", or a pair (low, high) for each axis of space.
      batch_group_count: how many groups the batch is cut in, as for `conv_general_dilated`.

    Raises:
      TypeError: not one pair of pads an axis.
      ValueError: padding removes more elements than there are.

    >>> import pyjx as jax
    >>> jax.lax.conv_shape_tuple((2, 3, 8), (4, 3, 3), (1,), [(0, 0)])
    (2, 4, 6)
    """
    return named_conv_shape("conv_shape_tuple", lhs_shape, rhs_shape, strides, pads,
                            batch_group_count)


def named_conv_shape(name: str, lhs_shape: Sequence[int], rhs_shape: Sequence[int],
                     strides: Sequence[int], pads: Any, batch_group_count: int = 1
                     ) -> tuple[int, ...]:
    """`conv_shape_tuple` for the function `name`, which errors mention."""
    lhs_shape = as_ints(name, "lhs_shape", lhs_shape)
    rhs_shape = as_ints(name, "rhs_shape", rhs_shape)
    if len(lhs_shape) != len(rhs_shape) or len(lhs_shape) < 2:
        raise TypeError(f"{name}: lhs_shape and rhs_shape must have the same rank, of at least 2, "
                        f"got {lhs_shape} and {rhs_shape}")
    strides = check_strides(name, "strides", strides, len(lhs_shape) - 2)
    if isinstance(pads, str):
        pads = named_pads(name, lhs_shape[2:], rhs_shape[2:], strides, pads)
    pads = padding_pairs(name, "pads", pads)
    if len(pads) != len(lhs_shape) - 2:
        raise TypeError(f"{name}: Wrong number of explicit pads for convolution: expected "
                        f"{len(lhs_shape) - 2}, got {len(pads)}.")
    count = as_int(name, "batch_group_count", batch_group_count)
    if count < 1 or lhs_shape[0] % count:
        raise ValueError(f"{name}: batch_group_count must be positive and divide the size of the "
                         f"batch, {lhs_shape[0]}, got {batch_group_count}")
    space = []
    for n, window, stride, (low, high) in zip(lhs_shape[2:], rhs_shape[2:], strides, pads,
                                              strict=True):
        padded = n + low + high
        if padded < 0:
            raise ValueError(
                f"{name}: Negative padding is larger than the size of the corresponding dimension: "
                f"got padding={tuple(pads)} for lhs_shape[2:]={tuple(lhs_shape[2:])}")
        space.append(max_dim((padded - window) // stride + 1, 0))
    return (lhs_shape[0] // batch_group_count, rhs_shape[0], *space)


# -- axis names ------------------------------------------------------------------------------------


def conv_general_permutations(dimension_numbers: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """The axes of input, kernel and result, from their names, in the order of the kernel's names.

    Args:
      dimension_numbers: three strings, such as ("NHWC", "HWIO", "NHWC").

    Raises:
      TypeError: N and C, O and I, or a spatial letter is missing or repeated.

    >>> import pyjx as jax
    >>> jax.lax.conv_general_permutations(("NHWC", "HWIO", "NHWC"))
    ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
    """
    if isinstance(dimension_numbers, str) or not isinstance(dimension_numbers, Sequence) \
            or len(dimension_numbers) != 3 \
            or not all(isinstance(spec, str) for spec in dimension_numbers):
        raise TypeError("convolution dimension_numbers must be three strings, got "
                        f"{dimension_numbers!r}.")
    lhs, rhs, out = dimension_numbers
    for i, (spec, first, second) in enumerate(((lhs, "N", "C"), (rhs, "O", "I"), (out, "N", "C"))):
        if spec.count(first) != 1 or spec.count(second) != 1:
            raise TypeError(f"convolution dimension_numbers[{i}] must contain the characters "
                            f"'{first}' and '{second}' exactly once, got {spec}.")
        if len(spec) != len(set(spec)):
            raise TypeError(
                f"convolution dimension_numbers[{i}] cannot have duplicate characters, got {spec}.")
    if not set(lhs) - {"N", "C"} == set(rhs) - {"O", "I"} == set(out) - {"N", "C"}:
        raise TypeError("convolution dimension_numbers elements must each have the same set of "
                        f"spatial characters, got {tuple(dimension_numbers)}.")
    space = [c for c in rhs if c not in "OI"]

    def axes(spec: str, *front: str) -> tuple[int, ...]:
        return tuple([spec.index(c) for c in (*front, *space)])

    return axes(lhs, "N", "C"), axes(rhs, "O", "I"), axes(out, "N", "C")


def conv_dimension_numbers(lhs_shape: Sequence[int], rhs_shape: Sequence[int],
                           dimension_numbers: Any) -> ConvDimensionNumbers:
    """`ConvDimensionNumbers` from any of the spellings of `dimension_numbers`.

    Args:
      lhs_shape, rhs_shape: the shapes of input and kernel.
      dimension_numbers: None, three strings such as ("NCHW", "OIHW", "NCHW"), three tuples of axes,
        or a `ConvDimensionNumbers`.

    Raises:
      TypeError: ranks differ, or it is none of the spellings.

    >>> import pyjx as jax
    >>> jax.lax.conv_dimension_numbers((1, 8, 3), (2, 3, 4), ("NHC", "HIO", "NHC"))
    ConvDimensionNumbers(lhs_spec=(0, 2, 1), rhs_spec=(2, 1, 0), out_spec=(0, 2, 1))
    """
    n = len(as_ints("conv_dimension_numbers", "lhs_shape", lhs_shape))
    m = len(as_ints("conv_dimension_numbers", "rhs_shape", rhs_shape))
    if n != m:
        raise TypeError(f"convolution requires lhs and rhs ndim to be equal, got {n} and {m}.")
    if n < 2:
        raise TypeError(f"convolution requires lhs and rhs ndim to be at least 2, got {n}.")
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return ConvDimensionNumbers(*[
            _permutation(field, spec, n)
            for field, spec in zip(dimension_numbers._fields, dimension_numbers, strict=True)])
    if dimension_numbers is None:
        return ConvDimensionNumbers(*[tuple(range(n))] * 3)
    if not isinstance(dimension_numbers, (list, tuple)):
        raise TypeError("convolution dimension_numbers must be tuple/list or None, got "
                        f"{type(dimension_numbers)}.")
    if len(dimension_numbers) != 3:
        raise TypeError("convolution dimension_numbers list/tuple must be length 3, got "
                        f"{len(dimension_numbers)}.")
    if not all(isinstance(s, str) for s in dimension_numbers):
        raise TypeError("convolution dimension_numbers elements must be strings, got "
                        f"{tuple([type(s) for s in dimension_numbers])}.")
    for i, spec in enumerate(dimension_numbers):
        if len(spec) != n:
            raise TypeError(f"convolution dimension_numbers[{i}] must have len equal to the ndim "
                            f"of lhs and rhs, got {len(spec)} for lhs and rhs shapes "
                            f"{tuple(lhs_shape)} and {tuple(rhs_shape)}.")
    return ConvDimensionNumbers(*conv_general_permutations(dimension_numbers))


def _permutation(field: str, spec: Any, ndim: int) -> tuple[int, ...]:
    axes = as_ints("convolution", f"dimension_numbers.{field}", spec)
    if sorted(axes) != list(range(ndim)):
        raise TypeError(f"convolution dimension_numbers.{field} must be a permutation of the "
                        f"{ndim} axes, got {axes}.")
    return axes


# -- transposed convolution ------------------------------------------------------------------------


def check_transposable(lhs_shape: Sequence[int], rhs_shape: Sequence[int]) -> None:
    if len(lhs_shape) != len(rhs_shape) or len(lhs_shape) < 2:
        raise ValueError("conv_transpose: lhs and rhs must have the same rank, of at least 2, got "
                         f"shapes {tuple(lhs_shape)} and {tuple(rhs_shape)}")


def default_transpose_dimension_numbers(ndim: int) -> tuple[str, str, str]:
    """Features last, as in `("NHWC", "HWIO", "NHWC")`.

    Raises:
      ValueError: more than three spatial axes, which have no names by default.
    """
    if ndim > 5:
        raise ValueError("conv_transpose: No 4+ dimensional dimension_number defaults.")
    space = "HWD"[:ndim - 2]
    return f"N{space}C", f"{space}IO", f"N{space}C"


def transpose_pads(name: str, window: Sequence[int], strides: Sequence[int], padding: Any,
                   consistent: bool) -> list[tuple[int, int]]:
    """Padding of the dilated input.

    With a window w and a stride s the total is w + s - 2 for "SAME", which makes the result s
    times as large as the input, and w - s more (if that is positive) for "VALID", which lets each
    element of the input reach all of its window.
    """
    strides = check_strides(name, "strides", strides, len(window))
    if not isinstance(padding, str):
        pairs = padding_pairs(name, "padding", padding)
        if len(pairs) != len(window):
            raise ValueError(f"{name}: padding must have one pair for each spatial axis, "
                             f"of which there are {len(window)}, got {pairs}")
        if consistent:
            return [(w - 1 - low, w - 1 - high)
                    for w, (low, high) in zip(window, pairs, strict=True)]
        return list(pairs)
    kind = padding.upper()
    if kind not in ("SAME", "VALID"):
        raise ValueError(f"{name}: Invalid padding mode: {padding}. It is 'SAME' or 'VALID'.")
    pads = []
    for w, s in zip(window, strides, strict=True):
        total = w + s - 2 + (max(w - s, 0) if kind == "VALID" else 0)
        low = w - 1 if kind == "VALID" or s > w - 1 else -(-total // 2)
        pads.append((low, total - low))
    return pads
