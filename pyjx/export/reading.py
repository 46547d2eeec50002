"""Bytes as an exported function: those of a container (see `container.py`), and of jax's."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pyjx.core import dtypes
from pyjx.core.avals import ShapedArray
from pyjx.core.meshes import AbstractMesh
from pyjx.core.specs import PartitionSpec
from pyjx.core.symbolic.scopes import SymbolicScope
from pyjx.core.symbolic.solving import solve, variables_in
from pyjx.engine.types import TreeDef
from pyjx.export import jax_format
from pyjx.export.container import MAGIC, MOST_ORDER, VERSION, part, unsealed
from pyjx.export.exported import DisabledSafetyCheck, Exported, check_calling_convention
from pyjx.export.trees import tree_from_data
from pyjx.random.base import key_dtype
from pyjx.runtime.sharding import NamedSharding

MOST_RANK = 256
MOST_SIZE = 1 << 62


def deserialize(blob: bytes | bytearray) -> Exported:
    """The exported function that `Exported.serialize` wrote, pyjx's or that of `jax.export`.

    jax's bytes have no checksum; a damaged module in them is noticed when it is called, if at all.

    Raises:
      ValueError: the bytes are none of the two, or damaged, or of a later version; a pytree has
        nodes that are not registered here; or jax's function has what programs here do not have:
        effects, memories of the host, shardings that jax before 0.9 wrote.
      TypeError: `blob` is no bytes.

    >>> import pyjx as jax
    >>> from pyjx import export
    >>> blob = export.export(jax.jit(lambda x: x + 1))(1.0).serialize()
    >>> float(export.deserialize(blob).call(2.0))
    3.0
    """
    if not isinstance(blob, (bytes, bytearray, memoryview)):
        raise TypeError(f"deserialize: expected bytes, got {type(blob).__name__}.")
    data = bytes(blob)
    table = None if data[:8] == MAGIC else jax_format.first_table(data)
    return _read(memoryview(data), 0) if table is None else _of_jax(table, 0)


def _of_jax(table: jax_format.Table, depth: int) -> Exported:
    header, module, derivative = jax_format.parts_of(table)
    return _joined(header, module, depth,
                   None if derivative is None else lambda: _of_jax(derivative, depth + 1))


def _read(data: memoryview, depth: int) -> Exported:
    body = unsealed(data, MAGIC, VERSION, "deserialize", "these bytes are no exported function: "
                    f"they do not start with {MAGIC!r}, and are no table of jax's.")
    header, body = part(body, "header")
    module, body = part(body, "module")
    derivative, body = part(body, "backward pass")
    if len(body):
        raise ValueError(f"deserialize: {len(body)} bytes too many.")
    return _joined(Header.of(bytes(header)).fields, bytes(module), depth,
                   (lambda: _read(derivative, depth + 1)) if len(derivative) else None)


def _joined(fields: dict[str, Any], module: bytes, depth: int,
            derivative: Callable[[], Exported] | None) -> Exported:
    """An exported function with its backward pass, which a call gives if there is one."""
    if depth > MOST_ORDER:
        raise ValueError(f"deserialize: more than {MOST_ORDER} derivatives.")
    exported = Header(fields).exported(module)
    if derivative is None:
        return exported
    vjp = derivative()
    expected = [*exported.in_avals, *[a.to_tangent_aval() for a in exported.out_avals]]
    if list(map(str, vjp.in_avals)) != list(map(str, expected)):  # each has symbols of its own
        raise ValueError("deserialize: the backward pass is that of another function.")
    return replace(exported, _get_vjp=lambda _: vjp)


class Header:
    """The fields of a header, each checked as it is read."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self.fields = fields

    @classmethod
    def of(cls, data: bytes) -> Header:
        """The header that these bytes are.

        Raises:
          ValueError: they are none.
        """
        try:
            fields = json.loads(data.decode())
        except (ValueError, RecursionError) as error:
            raise ValueError(f"deserialize: the header is no JSON: {error}") from None
        if not isinstance(fields, dict):
            raise ValueError("deserialize: the header is no object.")
        return cls(fields)

    def read(self, name: str, kind: type) -> Any:
        value = self.fields.get(name)
        if type(value) is not kind:
            raise ValueError(f"deserialize: the field {name!r} must be of type {kind.__name__}.")
        return value

    def listed(self, name: str, kind: type) -> list[Any]:
        values = self.read(name, list)
        if not all([type(v) is kind for v in values]):
            raise ValueError(f"deserialize: the field {name!r} must hold values of type "
                             f"{kind.__name__}.")
        return values  # type: ignore[no-any-return]

    def shardings(self, name: str, avals: Sequence[Any], devices: int) -> tuple[Any, ...]:
        found = self.read(name, list)
        if len(found) != len(avals):
            raise ValueError(f"deserialize: the field {name!r} must hold {len(avals)} values.")
        return tuple([_sharding(s, a, devices) for s, a in zip(found, avals, strict=True)])

    def tree(self, name: str) -> Any:
        if name not in self.fields:
            raise ValueError(f"deserialize: the field {name!r} is missing.")
        return tree_from_data(self.fields[name])

    def exported(self, module: bytes) -> Exported:
        scope = Scope(self.listed("constraints", str))
        in_avals = [aval_from_data(a, scope) for a in self.listed("in_avals", list)]
        out_avals = [aval_from_data(a, scope) for a in self.listed("out_avals", list)]
        solved = {s.name for s in solve(in_avals)}
        for a in out_avals:
            if set(variables_in([a])) - solved:
                raise ValueError(f"deserialize: the result {a.str_short()} has dimensions that "
                                 "the arguments do not tell.")
        in_tree, out_tree = self.tree("in_tree"), self.tree("out_tree")
        _check_trees(in_tree, len(in_avals), out_tree, len(out_avals))
        kept = self.listed("kept", int)
        if sorted(set(kept)) != kept or not all([0 <= i < len(in_avals) for i in kept]):
            raise ValueError("deserialize: the field 'kept' must hold the positions of arguments.")
        platforms = self.listed("platforms", str)
        if not platforms or len(set(platforms)) < len(platforms):
            raise ValueError("deserialize: the field 'platforms' must hold different names.")
        version = check_calling_convention(self.read("calling_convention_version", int),
                                           "deserialize: the calling convention version")
        devices = self.read("nr_devices", int)
        if devices < 1:
            raise ValueError(f"deserialize: a program for {devices} devices.")
        unplaced_in, unplaced_out = (None,) * len(in_avals), (None,) * len(out_avals)
        placed_in = self.shardings("in_shardings", in_avals, devices)
        placed_out = self.shardings("out_shardings", out_avals, devices)
        return Exported(
            self.read("fun_name", str), in_tree, tuple(in_avals), out_tree, tuple(out_avals),
            placed_in, placed_out, unplaced_in, unplaced_out, devices, tuple(platforms),
            (), (), tuple(map(DisabledSafetyCheck, self.listed("disabled_checks", str))), module,
            version, tuple(kept), self.read("uses_global_constants", bool), None)


def _sharding(data: Any, aval: ShapedArray, devices: int) -> Any:
    """The sharding of an argument or a result over the mesh of a program for so many devices."""
    if data is None:
        return None
    try:
        axes, entries = data
        mesh = AbstractMesh(tuple([size for _, size in axes]), tuple([name for name, _ in axes]))
        known = mesh.size == devices and all([
            type(name) is str and _AXIS.fullmatch(name) and type(size) is int
            for name, size in axes])
        found = NamedSharding(mesh, PartitionSpec(*map(tuple, entries)))
        if not known or len(entries) > aval.ndim:
            raise ValueError
    except (AttributeError, KeyError, RuntimeError, TypeError, ValueError):  # C++'s casts, too
        raise ValueError("deserialize: the sharding of an argument or a result is malformed."
                         ) from None
    return found


_AXIS = re.compile(r"[^\x00-\x1f\"\\]*")  # what a name in MLIR's text may be made of


def _check_trees(in_tree: TreeDef, n_in: int, out_tree: TreeDef, n_out: int) -> None:
    shape = in_tree.node_data()
    parts = in_tree.children() if shape is not None and shape[0] is tuple else []
    kinds = [p.node_data() and p.node_data()[0] for p in parts]
    if kinds != [tuple, dict]:
        raise ValueError("deserialize: the field 'in_tree' must be that of (args, kwargs).")
    if in_tree.num_leaves != n_in or out_tree.num_leaves != n_out:
        raise ValueError("deserialize: trees and types differ in the number of their leaves.")


class Scope:
    """A scope that is made with the first symbolic dimension."""

    def __init__(self, constraints: Sequence[str]) -> None:
        self.constraints = constraints
        self._scope: SymbolicScope | None = None

    def parse(self, text: str) -> Any:
        if self._scope is None:
            self._scope = SymbolicScope(self.constraints)
        return self._scope.parse(text)


def aval_from_data(data: list[Any], scope: Scope) -> ShapedArray:
    if len(data) != 3 or type(data[1]) is not list or type(data[2]) is not bool:
        raise ValueError("deserialize: the type of an argument or a result is malformed.")
    name, dims, weak = data
    if len(dims) > MOST_RANK:
        raise ValueError(f"deserialize: a shape of {len(dims)} dimensions.")
    return ShapedArray([_dimension(d, scope) for d in dims], _dtype(name), weak)


def _dimension(d: Any, scope: Scope) -> Any:
    if type(d) is int and 0 <= d < MOST_SIZE:
        return d
    if type(d) is not str:
        raise ValueError("deserialize: a dimension must be an integer >= 0 or a text.")
    return scope.parse(d)


def _dtype(name: Any) -> Any:
    found = _DTYPES.get(name) if type(name) is str else None
    if found is not None:
        return found
    if type(name) is str and name.startswith("key<") and name[4:-1] in _KEYS:
        return _KEYS[name[4:-1]]()
    raise ValueError(f"deserialize: there is no dtype {name!r}.")


_DTYPES = {dtypes.name(d): d for d in [*map(np.dtype, dtypes.all_dtypes), dtypes.float0]}
_KEYS: dict[str, Callable[[], Any]] = {
    "fry": lambda: key_dtype("threefry2x32"), "rbg": lambda: key_dtype("rbg"),
    "urbg": lambda: key_dtype("unsafe_rbg"),
}
