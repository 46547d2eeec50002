# Written by `python -m pyjx.cli.stubs` from the table of pyjx.image.

from pyjx.image.resampling import ResizeMethod as ResizeMethod
from pyjx.image.resampling import resize as resize
from pyjx.image.resampling import scale_and_translate as scale_and_translate

__all__ = [
    "ResizeMethod",
    "resize",
    "scale_and_translate",
]
