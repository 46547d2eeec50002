# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.transfer.

from pyjx.extend.bindings import TransferConnection as TransferConnection
from pyjx.extend.bindings import TransferServer as TransferServer
from pyjx.extend.bindings import start_transfer_server as start_transfer_server

__all__ = [
    "TransferConnection",
    "TransferServer",
    "start_transfer_server",
]
