# Written by `python -m pyjx.cli.stubs` from the table of pyjx.scipy.spatial.transform.

from pyjx.scipy.rotations import Rotation as Rotation
from pyjx.scipy.rotations import Slerp as Slerp

__all__ = [
    "Rotation",
    "Slerp",
]
