"""Exported functions as bytes; `reading.py` reads them, and those of `jax.export`, too, which
`jax_format.py` knows.

The container, in order; numbers are little-endian and unsigned:

    8 bytes    b"PYJXEXPT"
    4 bytes    version of the format: 1
    32 bytes   SHA-256 of all that follows
    8 bytes    length of the header
               the header: JSON in UTF-8, an object with the fields below
    8 bytes    length of the module
               the module: a StableHLO portable artifact
    8 bytes    length of the backward pass, 0 if there is none
               the backward pass: a container

    fun_name                    text
    in_tree, out_tree           pytrees: "*" for a leaf, null for None, ["tuple", [child, ...]],
                                ["list", [...]], ["dict", [key, ...], [...]],
                                ["namedtuple", registered name, [...]] and
                                ["node", registered name, auxiliary data in base64, [...]]
    constraints                 texts: what the dimensions' scope knows
    in_avals, out_avals         [dtype, [dimension, ...], weak type]; a dimension is an integer or
                                the text of an expression
    nr_devices                  integer
    in_shardings, out_shardings null where nothing is said, or [[[axis, size], ...], [entry, ...]],
                                where an entry is a list of the axes that cut the dimension
    platforms                   texts
    disabled_checks             texts
    calling_convention_version  integer
    kept                        integers: which arguments the module takes
    uses_global_constants       bool

Reading checks each length and each field, makes no object but these, and runs nothing: there is no
pickle. MLIR's reader of modules is not so careful: it crashes on some bytes that are no module, so
it sees none before the checksum was right, and only when the function is called. The checksum is
no signature. A module is a program: call only what comes from whom you trust.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pyjx.core import dtypes
from pyjx.core.avals import ShapedArray
from pyjx.core.specs import axes_of
from pyjx.core.symbolic.solving import scope_of
from pyjx.export import jax_format
from pyjx.export.trees import tree_to_data
from pyjx.jaxlib_api import Sharding

if TYPE_CHECKING:
    from pyjx.export.exported import Exported

MAGIC = b"PYJXEXPT"
VERSION = 1
MOST_ORDER = 16  # of derivatives


def serialize(exported: Exported, vjp_order: int = 0, format: str = "pyjx") -> bytearray:
    """The bytes of an exported function, with so many of its derivatives.

    Raises:
      ValueError: the number is negative or too large, a type has no serialization, or there is no
        such format.
    """
    if not 0 <= vjp_order <= MOST_ORDER:
        raise ValueError(f"serialize: vjp_order must be between 0 and {MOST_ORDER}, got "
                         f"{vjp_order}.")
    if format not in ("pyjx", "jax"):
        raise ValueError(f"serialize: format must be 'pyjx' or 'jax', got {format!r}.")
    parts = [(_header(exported), exported.mlir_module_serialized)]
    for _ in range(vjp_order):
        exported = exported.vjp()
        parts.append((_header(exported), exported.mlir_module_serialized))
    return bytearray(jax_format.bytes_of(parts) if format == "jax" else _container(parts))


def _container(parts: Sequence[tuple[dict[str, Any], bytes]]) -> bytes:
    """The container of a function, whose header and module come first, and of its derivatives."""
    data = b""
    for fields, module in reversed(parts):
        header = json.dumps(fields, separators=(",", ":")).encode()
        data = sealed(MAGIC, VERSION, (header, module, data))
    return data


def sealed(magic: bytes, version: int, parts: Sequence[bytes]) -> bytes:
    """A container of these parts."""
    body = b"".join([struct.pack("<Q", len(part)) + part for part in parts])
    return magic + struct.pack("<I", version) + hashlib.sha256(body).digest() + body


def unsealed(data: memoryview, magic: bytes, version: int, function: str, strange: str
             ) -> memoryview:
    """What a container holds, once its head was checked; `strange` is said of other bytes."""
    if len(data) < 44 or data[:8] != magic:
        raise ValueError(f"{function}: {strange}")
    written, = struct.unpack("<I", data[8:12])
    if written != version:
        raise ValueError(f"{function}: the bytes are of version {written} of the format; this "
                         f"release reads version {version}. Use the release that wrote them.")
    body = data[44:]
    if hashlib.sha256(body).digest() != data[12:44]:
        raise ValueError(f"{function}: the checksum is wrong; the bytes are damaged.")
    return body


def part(data: memoryview, what: str) -> tuple[memoryview, memoryview]:
    """What the length in front says, and the rest."""
    if len(data) < 8:
        raise ValueError(f"deserialize: the bytes end before the {what}.")
    size, = struct.unpack("<Q", data[:8])
    if size > len(data) - 8:
        raise ValueError(f"deserialize: the {what} is to have {size} bytes, {len(data) - 8} are "
                         "left.")
    return data[8:8 + size], data[8 + size:]


def _header(exported: Exported) -> dict[str, Any]:
    scope = scope_of(exported.in_avals)
    return {
        "fun_name": exported.fun_name,
        "in_tree": tree_to_data(exported.in_tree),
        "out_tree": tree_to_data(exported.out_tree),
        "constraints": [c.text for c in scope.constraints] if scope is not None else [],
        "in_avals": list(map(aval_to_data, exported.in_avals)),
        "out_avals": list(map(aval_to_data, exported.out_avals)),
        "nr_devices": exported.nr_devices,
        "in_shardings": list(map(_sharding_to_data, exported._in_named_shardings)),
        "out_shardings": list(map(_sharding_to_data, exported._out_named_shardings)),
        "platforms": list(exported.platforms),
        "disabled_checks": [str(c) for c in exported.disabled_safety_checks],
        "calling_convention_version": exported.calling_convention_version,
        "kept": list(exported.module_kept_var_idx),
        "uses_global_constants": exported.uses_global_constants,
    }


def _sharding_to_data(sharding: Sharding | None) -> Any:
    if sharding is None:
        return None
    for name in sharding.mesh.axis_names:
        if type(name) is not str:
            raise ValueError(f"serialize: the mesh axis {name!r} is no text, as names in other "
                             "processes are.")
    return [list(map(list, sharding.mesh.shape_tuple)),
            [axes_of((entry,)) for entry in sharding.spec]]


def aval_to_data(aval: ShapedArray) -> list[Any]:
    dims = [d if type(d) is int else str(d) for d in aval.shape]
    return [dtypes.name(aval.dtype), dims, aval.weak_type]
