"""Where arrays lie: a look at their shardings, and pictures of them."""

from __future__ import annotations

import colorsys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from pyjx.core.effects import Effects
from pyjx.core.primitive import Primitive, register
from pyjx.engine.rules import done_again
from pyjx.jaxlib_api import inspection_config
from pyjx.lax.callbacks import debug_effect
from pyjx.lax.common import operand
from pyjx.lazy import deferred
from pyjx.runtime.sharding import Sharding

console = deferred("rich.console")  # an optional package
text = deferred("rich.text")

_Color = tuple[float, float, float]
_HEIGHT = 10  # lines of a picture of rank 2
_RATIO = 2.5  # how much higher than wide a character is


def inspect_array_sharding(value: Any, *, callback: Callable[[Sharding], None]) -> None:
    """Call a function with the sharding of an array, also of one inside a compiled program.

    It is called when the program is compiled, once; at once for an array that is known.

    Args:
      value: an array.
      callback: gets the sharding.

    >>> import pyjx as jax
    >>> seen = []
    >>> _ = jax.jit(lambda x: jax.debug.inspect_array_sharding(x, callback=seen.append))(1.0)
    >>> seen[0].num_devices
    1
    """
    if not callable(callback):
        raise TypeError("inspect_array_sharding: callback must be a function of a sharding, got "
                        f"{callback!r}.")
    inspect_sharding_p.bind(operand("inspect_array_sharding", value, 0), callback=callback,
                             encode=inspection_config)


def visualize_array_sharding(arr: Any, **kwargs: Any) -> None:
    """Print a picture of where the parts of an array lie; see `visualize_sharding`.

    Args:
      arr: an array of rank 1 or 2, also one that is traced: then the picture is printed when the
        program is compiled.
      kwargs: for `visualize_sharding`.

    >>> import pyjx as jax
    >>> jax.debug.visualize_array_sharding(jax.numpy.ones(4))  # doctest: +SKIP
    ┌───────┐
    │ CPU 0 │
    └───────┘
    """
    shape = np.shape(arr)
    _check_shape(shape)
    _console()
    inspect_array_sharding(
        arr, callback=lambda sharding: visualize_sharding(shape, sharding, **kwargs))


def visualize_sharding(shape: Sequence[int], sharding: Sharding, *, use_color: bool = True,
                       scale: float = 1.0, min_width: int = 9, max_width: int = 80,
                       color_map: Callable[[float], Sequence[float]] | None = None) -> None:
    """Print a picture of which device holds which part of an array.

    Args:
      shape: of the array, of rank 1 or 2.
      sharding: where its parts lie.
      use_color: whether each part has a color of its own.
      scale: how large the picture is.
      min_width, max_width: of a part and of the picture, in characters.
      color_map: from a number between 0 and 1 to red, green and blue between 0 and 1.

    Raises:
      ValueError: the package rich is not installed, or the array has another rank.

    >>> import pyjx as jax
    >>> x = jax.numpy.ones(4)
    >>> jax.debug.visualize_sharding(x.shape, x.sharding, use_color=False)  # doctest: +SKIP
    ┌───────┐
    │ CPU 0 │
    └───────┘
    """
    _check_shape(shape)
    console, text = _console()
    labels = part_labels(shape, sharding)
    names = list(dict.fromkeys([label for row in labels for label in row]))
    hue = color_map or (lambda number: colorsys.hsv_to_rgb(number, 0.5, 0.8))
    colors = {name: hue(i / len(names)) for i, name in enumerate(names)}
    for line in picture(shape, labels, scale, min_width, max_width):
        shown = text()
        for piece, label in line:
            colored = use_color and label in colors and console.color_system is not None
            shown.append(piece, style=_style(colors[label]) if colored else "")
        console.print(shown, no_wrap=True, crop=False)


def _check_shape(shape: Sequence[int]) -> None:
    if len(shape) not in (1, 2):
        raise ValueError("`visualize_sharding` only works for shapes with 1 and 2 dimensions, got "
                         f"the shape {tuple(shape)}.")


def _console() -> Any:
    """A console of rich, and its class of texts."""
    try:
        return console.Console(), text.Text
    except ImportError:
        raise ValueError("`visualize_sharding` requires `rich` to be installed: pip install "
                         "rich.") from None


def part_labels(shape: Sequence[int], sharding: Sharding) -> list[list[str]]:
    """The devices of each part of an array, such as `CPU 0,1`, row by row.

    >>> import pyjx as jax
    >>> part_labels((4, 8), jax.numpy.ones(1).sharding)
    [['CPU 0']]
    """
    held: dict[tuple[int, ...], list[Any]] = {}
    for device, index in sharding.devices_indices_map(tuple(shape)).items():
        starts = tuple([0 if s.start is None else s.start for s in index or ()])
        held.setdefault((0,) * (2 - len(shape)) + starts, []).append(device)
    rows = sorted({row for row, _ in held})
    columns = sorted({column for _, column in held})
    return [[_label(held[row, column]) for column in columns] for row in rows]


def _label(devices: Iterable[Any]) -> str:
    found = sorted(devices, key=lambda d: d.id)
    return f"{found[0].platform.upper()} {','.join([str(d.id) for d in found])}"


def picture(shape: Sequence[int], labels: Sequence[Sequence[str]], scale: float, min_width: int,
            max_width: int) -> list[list[tuple[str, str]]]:
    """The lines of a picture, each in pieces: a text, and the label of the part it is of."""
    rows, columns = len(labels), len(labels[0])
    ratio = shape[1] / shape[0] if len(shape) == 2 and shape[0] else 1.0
    lines = int(_HEIGHT * scale) if len(shape) == 2 else 2
    whole = min(max(int(int(lines * ratio) * _RATIO), min_width), max_width)
    width = max(whole // columns, min_width) - 2
    width = max(width, *[len(label) for row in labels for label in row])
    height = max(lines // rows - 1, 1)

    def border(left: str, between: str, right: str) -> list[tuple[str, str]]:
        return [(left + between.join(["─" * width] * columns) + right, "")]

    drawn = [border("┌", "┬", "┐")]
    for r, row in enumerate(labels):
        if r:
            drawn.append(border("├", "┼", "┤"))
        for i in range(height):
            line = [("│", "")]
            for label in row:
                text = label if i == (height - 1) // 2 else ""
                line += [(f"{text:^{width}}", label), ("│", "")]
            drawn.append(line)
    drawn.append(border("└", "┴", "┘"))
    return drawn


def _style(color: Sequence[float]) -> str:
    red, green, blue = [round(255 * c) for c in color[:3]]
    dark = 0.299 * red + 0.587 * green + 0.114 * blue < 128
    return f"{'white' if dark else 'black'} on #{red:02x}{green:02x}{blue:02x}"


# -- the operation ---------------------------------------------------------------------------------


def _impl(x: Any, *, callback: Callable[[Sharding], None], encode: Any) -> list[Any]:
    callback(x.sharding)
    return []


def _effects(params: dict[str, Any]) -> Effects:
    return frozenset({debug_effect})


inspect_sharding_p = done_again(register(Primitive(
    "inspect_sharding", multiple_results=True, cached=False, impl=_impl,
    shape_rule=lambda aval, **params: [], effects=_effects)))
