"""Compiled programs as bytes, for other processes on the same kind of machine.

`export` keeps programs for other machines and other versions; this keeps what XLA has made of them.
The bytes are a container like that of `pyjx.export`, without a pickle: `b"PYJXEXEC"`, the version
(4 bytes), the SHA-256 of the rest, then parts with their lengths before them: a header in JSON, the
executable, and the data of the constants that the program takes as arguments. The executable is
machine code: loading it may run anything, so load only what comes from whom you trust.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pyjx import jaxlib_api
from pyjx.core.avals import get_aval
from pyjx.core.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr, Var
from pyjx.core.layouts import ShardingLike
from pyjx.core.meshes import AxisType, Mesh
from pyjx.core.specs import PartitionSpec, axes_of
from pyjx.engine.types import TreeDef
from pyjx.export.container import aval_to_data, part, sealed, unsealed
from pyjx.export.reading import Header, Scope, aval_from_data
from pyjx.lazy import directory
from pyjx.runtime import backends
from pyjx.runtime.compile import compile_options
from pyjx.runtime.executable import Executable, physical_aval
from pyjx.runtime.foreign_functions import register_targets
from pyjx.runtime.jit import JitSpec, TracedCall
from pyjx.runtime.placement import NO_REQUEST, Placement, on_device, placed_on
from pyjx.runtime.sharding import NamedSharding
from pyjx.runtime.stages import Compiled

__all__ = ["deserialize_and_load", "serialize"]

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
    placement = executable.placement
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
        "n_devices": len(placement.devices), "shardings": None,
    }
    if placement.mesh is not None:
        ins = iter(executable.in_shardings)
        every = [next(ins) if kept else None for kept in executable.kept]
        header["shardings"] = list(map(_sharding_to_data, (
            NamedSharding(placement.mesh, PartitionSpec()), *every, *executable.out_shardings)))
    parts = [json.dumps(header).encode(), _code(compiled), *[c.tobytes() for c in consts]]
    return sealed(MAGIC, VERSION, parts), compiled.in_tree, compiled.out_tree


def _sharding_to_data(sharding: ShardingLike) -> Any:
    """The axes of the mesh and how dimensions lie along them, as JSON has it."""
    if sharding is None:
        return None
    if not isinstance(sharding, NamedSharding) or sharding.memory_kind not in (None, "device"):
        raise ValueError(f"serialize: the program takes or gives a value that lies as {sharding}, "
                         "which follows no mesh or is in another memory. Say how it lies by "
                         "in_shardings and out_shardings.")
    mesh = sharding.mesh
    if not all([type(name) is str for name in mesh.axis_names]):
        raise ValueError(f"serialize: the names of mesh axes must be texts, got {mesh.axis_names}.")
    return [[[name, size, kind.name] for name, size, kind in zip(
        mesh.axis_names, mesh.axis_sizes, mesh.axis_types, strict=True)],
        [axes_of((entry,)) for entry in sharding.spec]]


def _sharding(data: Any, devices: Sequence[Any]) -> Any:
    """The sharding over a mesh of these devices that was written."""
    if data is None:
        return None
    try:
        axes, entries = data
        names, sizes, kinds = zip(*axes, strict=True)
        mesh = Mesh(np.array(devices, dtype=object).reshape(sizes), names,
                    tuple([AxisType[kind] for kind in kinds]))
        return NamedSharding(mesh, PartitionSpec(*map(tuple, entries)))
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ValueError("deserialize_and_load: the sharding of an argument or a result is "
                         "malformed.") from None


def _placement(header: Header, devices: list[Any], n_in: int, n_out: int) -> Placement:
    written = header.fields.get("shardings")
    if written is None:
        return on_device(devices[0])
    if type(written) is not list or len(written) != 1 + n_in + n_out or written[0] is None:
        raise ValueError("deserialize_and_load: the field 'shardings' is malformed.")
    whole, *shardings = [_sharding(s, devices) for s in written]
    return placed_on(tuple(devices), whole.mesh, tuple(shardings[:n_in]), tuple(shardings[n_in:]))


def _code(compiled: Compiled) -> bytes:
    """The executable as bytes: those that it was read from, if it was."""
    executable = compiled._executable
    if type(executable) is _LoadedExecutable:
        return executable.data
    return executable.device.client.serialize_executable(  # type: ignore[no-any-return]
        compiled.compiled_here())


class _LoadedExecutable(Executable):
    """One that was read from `data`."""

    __slots__ = ("data",)

    data: bytes


class _Lowered(NamedTuple):
    """What an executable needs of the program that it was compiled from."""

    kept: list[bool]
    const_args: list[Any]
    keepalives: tuple[Any, ...] = ()


def deserialize_and_load(serialized: bytes, in_tree: TreeDef, out_tree: TreeDef,
                         backend: Any = None, execution_devices: Sequence[Any] | None = None
                        ) -> Compiled:
    """The compiled program that `serialize` wrote, loaded on a device.

    Loading runs machine code: load only bytes of whom you trust.

    Args:
      serialized, in_tree, out_tree: what `serialize` gave.
      backend: the name of the platform, or its client; by default the default one.
      execution_devices: the devices to run on, as many as it was compiled for; by default the
        first ones of the backend.

    Raises:
      ValueError: the bytes are damaged or none that `serialize` wrote, by another version of
        jaxlib, or for another platform or number of devices; or they do not fit the structures.
      RuntimeError: there is no such backend.
    """
    client = backends.get_backend(backend)
    header, executable, rest = _opened(serialized, client)
    count = header.read("n_devices", int)
    devices = list(client.devices()[:count] if execution_devices is None else execution_devices)
    if not devices or devices[0].client is not client:
        raise ValueError("Execution devices belong to a client other than `backend`. Got backend "
                         f"client: {client.platform} and devices {devices}.")
    if len(devices) != count:
        raise ValueError(f"deserialize_and_load: the program was compiled for {count} devices, "
                         f"here are {len(devices)}. Name as many by execution_devices.")
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
    placement = _placement(header, devices, len(in_avals), len(out_avals))
    loaded = jaxlib_api.deserialize_executable(
        client, bytes(executable), jaxlib_api.DeviceList(tuple(devices)),
        compile_options(tuple(devices), 1, count))
    names = tuple(header.listed("arg_names", str))
    name = header.read("name", str)
    closed = _typed(in_avals, out_avals, name, names)
    spec = JitSpec(lambda *args, **kwargs: None)
    spec.name = name
    traced = TracedCall(closed, in_tree, out_tree, name, tuple(donated), (), NO_REQUEST)
    lowered: Any = _Lowered(kept, consts)
    made = _LoadedExecutable(loaded, closed, lowered, placement)
    made.data = bytes(executable)
    return Compiled(spec, traced, (None,) * len(in_avals), made)


def _opened(serialized: bytes, client: Any) -> tuple[Header, memoryview, memoryview]:
    """Header, executable and what follows it, all checked but the executable itself."""
    text, rest = part(unsealed(
        memoryview(bytes(serialized)), MAGIC, VERSION, "deserialize_and_load",
        f"the bytes do not start with {MAGIC!r}. Those of jax hold its own classes: compile it "
        "again, or use `jax.export`."), "header")
    executable, rest = part(rest, "executable")
    header = Header.of(bytes(text))
    if header.read("platform", str) != client.platform:
        raise ValueError(f"deserialize_and_load: the program is for {header.fields['platform']}, "
                         f"the backend is {client.platform}.")
    if header.listed("jaxlib", int) != list(jaxlib_api.JAXLIB_VERSION):
        raise ValueError("deserialize_and_load: the program was compiled by jaxlib "
                         f"{'.'.join(map(str, header.fields['jaxlib']))}, this is "
                         f"{'.'.join(map(str, jaxlib_api.JAXLIB_VERSION))}. Compile it again, or "
                         "use `jax.export`, whose programs later versions read.")
    return header, executable, rest


def _typed(in_avals: list[Any], out_avals: list[Any], name: str, arg_names: tuple[str, ...]
           ) -> ClosedJaxpr:
    """A jaxpr that stands for a program of which the types alone are known."""
    return ClosedJaxpr(Jaxpr([], list(map(Var, in_avals)), list(map(Var, out_avals)), [],
                             debug_info=DebugInfo("jit", name, arg_names)), [])


__dir__ = directory(__name__, __all__)
