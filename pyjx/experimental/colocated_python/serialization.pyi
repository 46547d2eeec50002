# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.colocated_python.serialization.

from pyjx.jaxlib_api import DeviceList as DeviceList

__all__ = [
    "DeviceList",
]
