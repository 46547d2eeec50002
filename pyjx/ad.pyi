# Written by `python -m pyjx.cli.stubs` from the table of pyjx.ad.

from pyjx.transforms.vjp import DidntWant as DidntWant
from pyjx.transforms.vjp import DontWant as DontWant
from pyjx.transforms.vjp import GradRef as GradRef
from pyjx.transforms.vjp import GradValue as GradValue

__all__ = [
    "DidntWant",
    "DontWant",
    "GradRef",
    "GradValue",
]
