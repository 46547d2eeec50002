"""Compiled programs as bytes, for other processes on the same kind of machine.

`export` keeps programs for other machines and other versions; this keeps what XLA has made of them.
The bytes are a container like that of `pyjx.export`, without a pickle: `b"PYJXEXEC"`, the version
(4 bytes), the SHA-256 of the rest, then parts with their lengths before them: a header in JSON, the
executable, and the data of the constants that the program takes as arguments. The executable is
machine code: loading it may run anything, so load only what comes from whom you trust.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pyjx import jaxlib_api
from pyjx.core.avals import get_aval
from pyjx.core.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr, Var
from pyjx.core.options import Inline
from pyjx.export.container import aval_to_data
from pyjx.export.reading import Header, Scope, aval_from_data, part
from pyjx.lazy import directory
from pyjx.runtime import backends
from pyjx.runtime.compile import compile_options, register_targets
from pyjx.runtime.executable import Executable, physical_aval
from pyjx.runtime.jit import JitSpec, TracedCall
from pyjx.runtime.lower import lower_closed
from pyjx.runtime.placement import NO_REQUEST, on_device
from pyjx.runtime.stages import Compiled

__all__ = ["deserialize_and_load", "serialize"]

__dir__ = directory(__name__, __all__)

MAGIC = b"PYJXEXEC"
VERSION = 1


def serialize(compiled: Compiled) -> tuple[bytes, Any, Any]:
    """A compiled program as bytes, and the structures of its arguments and results.

    Returns:
      `(bytes, in_tree, out_tree)`, which `deserialize_and_load` takes.

    Raises:
      ValueError: the program calls Python functions, which are of this process.

    >>> import pyjx as jax
    >>> from pyjx.experimental.serialize_executable import deserialize_and_load, serialize
    >>> compiled = jax.jit(lambda x: x + 1).lower(1.0).compile()
    >>> loaded = deserialize_and_load(*serialize(compiled))
    >>> float(loaded(2.0))
    3.0
    """
    executable, traced = compiled._executable, compiled._traced
    if type(executable) not in (Executable, _LoadedExecutable):
        raise ValueError("Compilation does not support serialization: the program calls Python "
                         "functions, which are of this process, or was compiled for devices that "
                         "are not here.")
    if executable.placement.mesh is not None:
        raise ValueError("serialize: the program is spread over a mesh of "
                         f"{len(executable.placement.devices)} devices; those for one device can "
                         "be serialized. Use jax.export for a program that is compiled where it "
                         "is loaded.")
    client = executable.device.client
    closed = traced.closed
    consts = list(map(np.asarray, executable.const_args))
    header = {
        "jaxlib": list(jaxlib_api.JAXLIB_VERSION), "platform": client.platform,
        "name": traced.name, "arg_names": list(closed.debug_info.arg_names or ()),
        "in_avals": list(map(aval_to_data, closed.in_avals)),
        "out_avals": list(map(aval_to_data, closed.out_avals)),
        "donated": list(traced.donated), "kept": list(executable.kept),
        "consts": [aval_to_data(get_aval(c)) for c in executable.const_args],
    }
    parts = [json.dumps(header).encode(), _code(compiled), *[c.tobytes() for c in consts]]
    body = b"".join([struct.pack("<Q", len(p)) + p for p in parts])
    data = MAGIC + struct.pack("<I", VERSION) + hashlib.sha256(body).digest() + body
    return data, compiled.in_tree, compiled.out_tree


def _code(compiled: Compiled) -> bytes:
    """The executable as bytes. XLA cannot write one on the CPU that was read itself: it is kept,
    or compiled again where the disk cache had it."""
    executable, traced = compiled._executable, compiled._traced
    if type(executable) is _LoadedExecutable:
        return executable.data
    client, loaded = executable.device.client, executable.loaded
    if executable.from_disk is not None:
        program = lower_closed(traced.closed, traced.name, donated=traced.donated,
                               keep_unused=compiled._spec.keep_unused,
                               platform=executable.device.platform)
        devices = (executable.device,)
        loaded = jaxlib_api.compile_and_load(
            client, program.text, jaxlib_api.DeviceList(devices),
            compile_options(devices, compiler_options=executable.from_disk))
    return jaxlib_api.serialize_executable(client, loaded)


class _LoadedExecutable(Executable):
    """One that was read from `data`."""

    __slots__ = ("data",)

    data: bytes


class _Lowered(NamedTuple):
    """What an executable needs of the program that it was compiled from."""

    kept: list[bool]
    const_args: list[Any]
    keepalives: tuple[Any, ...] = ()


def deserialize_and_load(serialized: bytes, in_tree: Any, out_tree: Any, backend: Any = None,
                         execution_devices: Sequence[Any] | None = None) -> Compiled:
    """The compiled program that `serialize` wrote, loaded on a device.

    Loading runs machine code: load only bytes of whom you trust.

    Args:
      serialized, in_tree, out_tree: what `serialize` gave.
      backend: the name of the platform, or its client; by default the default one.
      execution_devices: the device to run on, in a sequence; by default the first of the backend.

    Raises:
      ValueError: the bytes are damaged or none that `serialize` wrote, by another version of
        jaxlib, or for another platform; or they do not fit the structures.
      RuntimeError: there is no such backend.
    """
    client = backends.get_backend(backend)
    devices = list(execution_devices) if execution_devices is not None else client.devices()[:1]
    if not devices or devices[0].client is not client:
        raise ValueError("Execution devices belong to a client other than `backend`. Got backend "
                         f"client: {client.platform} and devices {devices}.")
    header, executable, rest = _opened(serialized, client)
    scope = Scope(())
    in_avals, out_avals, const_avals = [
        [aval_from_data(a, scope) for a in header.listed(name, list)]
        for name in ("in_avals", "out_avals", "consts")]
    kept, donated = header.listed("kept", bool), header.listed("donated", bool)
    counts = in_tree.num_leaves, out_tree.num_leaves
    if not len(kept) == len(donated) == len(in_avals) or counts != (len(in_avals), len(out_avals)):
        raise ValueError("deserialize_and_load: the program and the pytrees differ in the number "
                         f"of arguments or results: {len(in_avals)}, {len(out_avals)} and "
                         f"{counts}.")
    consts = []
    for aval in const_avals:
        data, rest = part(rest, "constants")
        physical: Any = physical_aval(aval)
        consts.append(np.frombuffer(data, physical.dtype).reshape(physical.shape))
    register_targets(("lapack", "sparse", "unknown"), client.platform)
    device = devices[0]
    loaded = jaxlib_api.deserialize_executable(
        client, bytes(executable), jaxlib_api.DeviceList((device,)), compile_options((device,)))
    names = tuple(header.listed("arg_names", str))
    name = header.read("name", str)
    closed = _typed(in_avals, out_avals, name, names)
    spec = JitSpec(lambda *args, **kwargs: None, (), (), (), (), False, Inline.AUTO, (), None)
    spec.name = name
    traced = TracedCall(closed, in_tree, out_tree, name, tuple(donated), (), NO_REQUEST)
    lowered: Any = _Lowered(kept, consts)
    made = _LoadedExecutable(loaded, closed, lowered, on_device(device))
    made.data = bytes(executable)
    return Compiled(spec, traced, (None,) * len(in_avals), made)


def _opened(serialized: bytes, client: Any) -> tuple[Header, memoryview, memoryview]:
    """Header, executable and what follows it, all checked but the executable itself."""
    data = memoryview(bytes(serialized))
    if len(data) < 44 or data[:8] != MAGIC:
        raise ValueError("deserialize_and_load: these bytes are no compiled program: they do not "
                         f"start with {MAGIC!r}.")
    version, = struct.unpack("<I", data[8:12])
    if version != VERSION:
        raise ValueError(f"deserialize_and_load: version {version} of the format is not {VERSION}, "
                         "which this release reads.")
    if hashlib.sha256(data[44:]).digest() != data[12:44]:
        raise ValueError("deserialize_and_load: the checksum is wrong; the bytes are damaged.")
    text, rest = part(data[44:], "header")
    executable, rest = part(rest, "executable")
    header = Header.of(bytes(text))
    if header.read("platform", str) != client.platform:
        raise ValueError(f"deserialize_and_load: the program is for {header.fields['platform']}, "
                         f"the backend is {client.platform}.")
    if header.listed("jaxlib", int) != list(jaxlib_api.JAXLIB_VERSION):
        raise ValueError(
            "deserialize_and_load: the program was compiled by jaxlib "
            f"{'.'.join(map(str, header.fields['jaxlib']))}, this is "
            f"{'.'.join(map(str, jaxlib_api.JAXLIB_VERSION))}. Compile it again, or use "
            "`jax.export`, whose programs later versions read.")
    return header, executable, rest


def _typed(in_avals: list[Any], out_avals: list[Any], name: str, arg_names: tuple[str, ...]
           ) -> ClosedJaxpr:
    """A jaxpr that stands for a program of which the types alone are known."""
    return ClosedJaxpr(Jaxpr([], list(map(Var, in_avals)), list(map(Var, out_avals)), [],
                             debug_info=DebugInfo("jit", name, arg_names)), [])
