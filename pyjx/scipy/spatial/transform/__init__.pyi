# Written by `python -m pyjx.cli.stubs` from the table of pyjx.scipy.spatial.transform.

from pyjx.scipy.spatial.transform.interpolation import Slerp as Slerp
from pyjx.scipy.spatial.transform.rotations import Rotation as Rotation

__all__ = [
    "Slerp",
    "Rotation",
]
