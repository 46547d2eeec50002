"""Meshes and shardings of the command line."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from emit_hlo.arguments import Options, UsageError, instead_of
from pyjx.cli.emit.functions import Call
from pyjx.core.meshes import Mesh
from pyjx.core.specs import PartitionSpec
from pyjx.inspect.platforms import Platform, platform
from pyjx.runtime.sharding import NamedSharding


def mesh_of(options: Options) -> tuple[Mesh, Platform] | None:
    """The mesh that was asked for, of devices to compile for."""
    if not options.mesh:
        return None
    sizes = tuple(options.mesh.values())
    count = int(np.prod(sizes))
    where = platform(options.platform, count)
    devices = np.empty(count, object)
    devices[:] = where.devices
    return Mesh(devices.reshape(sizes), tuple(options.mesh)), where


def jit_options(options: Options, call: Call, mesh: Mesh | None) -> dict[str, Any]:
    """What `jit` is told of the function."""
    made: dict[str, Any] = {}
    if options.donate:
        if max(options.donate) >= len(call.args):
            raise UsageError(f"--donate {max(options.donate)}: there is no such argument; the "
                             f"function is given {len(call.args)} by position, which count from 0.")
        made["donate_argnums"] = tuple(options.donate)
    if options.in_shardings is not None:
        found = _shardings("--in-shardings", options.in_shardings, mesh)
        if len(found) != 1 and len(found) != len(call.args):
            raise UsageError(f"--in-shardings: {len(found)} specs for {len(call.args)} arguments; "
                             "write one, or one for each between semicolons.")
        made["in_shardings"] = found[0] if len(found) == 1 else tuple(found)
    if options.out_shardings is not None:
        found = _shardings("--out-shardings", options.out_shardings, mesh)
        made["out_shardings"] = found[0] if len(found) == 1 else tuple(found)
    return made


def _shardings(option: str, text: str, mesh: Mesh | None) -> list[Any]:
    """`x,None; (x,y); *`: for each value its spec, an axis or more for each dimension."""
    assert mesh is not None
    specs: list[Any] = []
    for part in text.split(";"):
        part = part.strip()
        if part == "*":
            specs.append(None)
            continue
        words = re.findall(r"\([^()]*\)|[^,()]+", part)
        if re.sub(r"[,\s]", "", "".join(words)) != re.sub(r"[,\s]", "", part):
            raise UsageError(f"{option} {text}: cannot read {part!r}; write x,None or (x,y).")
        specs.append(NamedSharding(mesh, PartitionSpec(*[
            _entry(option, text, w.strip(), mesh) for w in words])))
    return specs


def _entry(option: str, text: str, word: str, mesh: Mesh) -> Any:
    if word in ("None", "_", ""):
        return None
    names = [n.strip() for n in word.strip("()").split(",") if n.strip()]
    for name in names:
        if name not in mesh.axis_names:
            raise UsageError(f"{option} {text}: the mesh has no axis {name!r}"
                             f"{instead_of(name, mesh.axis_names, 'axes are')}")
    return tuple(names) if word.startswith("(") else names[0]
