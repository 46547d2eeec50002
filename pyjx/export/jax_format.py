"""The bytes of `jax.export`: tables of FlatBuffers, and the fields of a header (`container.py`).

The numbers of tables and fields are those of JAX's schema; what differs from version to version:

- the version that is stored, 2 in jax 0.7, 3 in 0.8 to 0.11, 12 in 0.12, tells of the same fields;
- how many devices there are is a field of 16 bits, or since 0.8 one of 32 beside or in its place;
- shardings are bytes of XLA's before 0.9, and since then tables with the names of axes;
- since 0.10 types and shardings are told once more, each once, with lists of which is whose.

What is written has the fields that all of them read; before 0.9 shardings go unread. JAX's format
does not say which types are weak. Constraints of dimensions are no field, but checks in the module.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

from pyjx.export.flatbuffers import Fields, Number, Numbers, Table, written
from pyjx.export.trees import MOST_DEPTH, fields_of_named_tuple

_STORED_VERSION = 3
_VERSIONS = range(2, 13)
_KINDS = ("*", None, "tuple", "list", "dict", "node")
_CHECKS = ("platform", "custom_call", "shape_assertions")
_AUTO = 1  # the type of a mesh axis
# By JAX's numbers.
_DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
    "float32", "float64", "complex64", "complex128", "bfloat16", "int4", "uint4",
    "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
    "float0", "float8_e4m3", "float8_e3m4", "float8_e8m0fnu", "float4_e2m1fn", "key<fry>",
    "key<rbg>", "key<urbg>")


# -- reading ---------------------------------------------------------------------------------------


def first_table(data: bytes) -> Table | None:
    """The table of an exported function; None if the bytes do not begin as one.

    Raises:
      ValueError: it is of a version that is not known.
    """
    try:
        table = Table.first(data)
        looks_so = table.has(0) and table.has(2) and table.has(4) and table.has(14)
    except ValueError:
        return None
    if looks_so and table.number(0, "H") not in _VERSIONS:
        raise ValueError(
            f"deserialize: jax wrote version {table.number(0, 'H')} of its format; versions "
            f"{_VERSIONS[0]} to {_VERSIONS[-1]} are read. Use the jax that wrote them.")
    return table if looks_so else None


def parts_of(table: Table) -> tuple[dict[str, Any], bytes, Table | None]:
    """What the table of an exported function tells: the fields of a header, the module, and the
    table of the backward pass if there is one.

    Raises:
      ValueError: a table is damaged, or tells what there is no field for.
    """
    if effects := [e.text(0) for field in (10, 11) for e in table.tables(field)]:
        raise ValueError(f"deserialize: the function has the effects {', '.join(effects)}, which "
                         "programs here do not have. Export it without them.")
    header = {
        "fun_name": table.text(1),
        "in_tree": _tree_of(table.table(2), 0),
        "in_avals": list(map(_aval_of, table.tables(3))),
        "out_tree": _tree_of(table.table(4), 0),
        "out_avals": list(map(_aval_of, table.tables(5))),
        "nr_devices": table.number(18, "I") or table.number(6, "H"),
        "in_shardings": list(map(_sharding_of, table.tables(7))),
        "out_shardings": list(map(_sharding_of, table.tables(8))),
        "platforms": table.texts(9),
        "disabled_checks": list(map(_check_of, table.tables(12))),
        "calling_convention_version": table.number(14, "H"),
        "kept": table.numbers(15, "H"),
        "uses_global_constants": bool(table.number(16, "B")),
        "constraints": [],
    }
    return header, table.bytes(13), table.table(17) if table.has(17) else None


def _one_of(names: Sequence[Any], number: int, what: str) -> Any:
    if not 0 <= number < len(names):
        raise ValueError(f"deserialize: jax wrote {what} {number}, which is not known here.")
    return names[number]


def _tree_of(table: Table, depth: int) -> Any:
    if depth > MOST_DEPTH:
        raise ValueError("deserialize: a pytree is nested too deeply.")
    kind = _one_of(_KINDS, table.number(0, "b"), "a pytree node of the kind")
    if kind in ("*", None):
        return kind
    children = [_tree_of(t, depth + 1) for t in table.tables(1)]
    if kind == "dict":
        return [kind, table.texts(2), children]
    if kind != "node":
        return [kind, children]
    name = table.text(3)
    if fields_of_named_tuple(name) is not None:
        return ["namedtuple", name, children]
    return [kind, name, base64.b64encode(table.bytes(4)).decode(), children]


def _aval_of(table: Table) -> list[Any]:
    if table.number(0, "b") != 0:
        raise ValueError("deserialize: an argument or a result is a token, which programs here do "
                         "not take.")
    if table.number(3, "b") > 1:
        raise ValueError("deserialize: an argument or a result is in the host's memory. Export the "
                         "function with all in the device's.")
    dtype = _one_of(_DTYPES, table.number(2, "b"), "the dtype")
    return [dtype, [int(d) if d.isdecimal() else d for d in table.texts(1)], False]


def _sharding_of(table: Table) -> Any:
    if not table.has(2):
        if table.number(0, "b") != 0:
            raise ValueError("deserialize: the function is sharded, and was exported by jax before "
                             "0.9, which did not write the names of mesh axes. Export it again by "
                             "a later one.")
        return None
    named = table.table(2)
    mesh, spec = named.table(0), named.table(1)
    if named.text(2) not in ("", "device"):
        raise ValueError("deserialize: an argument or a result is in the memory "
                         f"{named.text(2)!r}. Export the function with all in the device's.")
    if spec.texts(1) or spec.texts(2):
        raise ValueError("deserialize: an argument or a result is reduced or unreduced along axes "
                         "of the mesh. Export the function with sums that are taken.")
    sizes, names = mesh.numbers(0, "I"), mesh.texts(1)
    if len(sizes) != len(names):
        raise ValueError("deserialize: a mesh has more names or sizes than axes.")
    return [[list(pair) for pair in zip(names, sizes, strict=True)],
            [entry.texts(0) for entry in spec.tables(0)]]


def _check_of(table: Table) -> str:
    kind = str(_one_of(_CHECKS, table.number(0, "b"), "the disabled check"))
    return f"{kind}:{table.text(1)}" if kind == "custom_call" else kind


# -- writing ---------------------------------------------------------------------------------------


def bytes_of(parts: Sequence[tuple[Mapping[str, Any], bytes]]) -> bytes:
    """The bytes of an exported function, of the headers and modules of it and its derivatives.

    Raises:
      ValueError: a header tells what JAX's format has no place for.
    """
    fields: dict[int, Any] = {}
    for header, module in reversed(parts):
        fields = {**_table_of(header, module), **({17: fields} if fields else {})}
    return written(fields)


def _table_of(header: Mapping[str, Any], module: bytes) -> dict[int, Any]:
    kept = header["kept"]
    if kept and kept[-1] >= 1 << 16:
        raise ValueError(f"serialize: the function has {kept[-1]} arguments, jax's format has room "
                         "for 65,536. Give them as fewer arrays.")
    devices = header["nr_devices"]
    return {
        0: Number("H", _STORED_VERSION), 1: header["fun_name"],
        2: _tree_table(header["in_tree"]), 3: list(map(_aval_table, header["in_avals"])),
        4: _tree_table(header["out_tree"]), 5: list(map(_aval_table, header["out_avals"])),
        6: Number("H", min(devices, (1 << 15) - 1)), 18: Number("I", devices),
        7: list(map(_sharding_table, header["in_shardings"])),
        8: list(map(_sharding_table, header["out_shardings"])),
        9: header["platforms"], 10: [], 11: [],
        12: list(map(_check_table, header["disabled_checks"])), 13: module,
        14: Number("H", header["calling_convention_version"]), 15: Numbers("H", kept),
        16: Number("B", header["uses_global_constants"]),
    }


def _tree_table(data: Any) -> Fields:
    if data in ("*", None):
        return {0: Number("b", _KINDS.index(data))}
    kind, *own, items = data
    children = list(map(_tree_table, items))
    if kind == "dict":
        if not all([type(k) is str for k in own[0]]):
            raise ValueError("serialize: jax's format has dictionaries with keys that are texts "
                             f"alone. Found keys {own[0]}.")
        return {0: Number("b", 4), 1: children, 2: own[0]}
    if kind == "namedtuple":
        aux = json.dumps(fields_of_named_tuple(own[0])).encode()
        return {0: Number("b", 5), 1: children, 3: own[0], 4: aux}
    if kind == "node":
        return {0: Number("b", 5), 1: children, 3: own[0], 4: base64.b64decode(own[1])}
    return {0: Number("b", _KINDS.index(kind)), 1: children}


def _aval_table(aval: Sequence[Any]) -> Fields:
    dtype, dims, _ = aval
    if dtype not in _DTYPES:
        raise ValueError(f"serialize: jax's format has no dtype {dtype}; it has "
                         f"{', '.join(_DTYPES)}.")
    return {0: Number("b", 0), 1: list(map(str, dims)), 2: Number("b", _DTYPES.index(dtype)),
            3: Number("b", 1)}


def _sharding_table(sharding: Any) -> Fields:
    if sharding is None:
        return {0: Number("b", 0)}
    axes, entries = sharding
    mesh = {0: Numbers("I", [size for _, size in axes]), 1: [name for name, _ in axes],
            2: Numbers("b", [_AUTO] * len(axes))}
    spec = {0: [{0: entry} if entry else {} for entry in entries], 1: [], 2: []}
    return {0: Number("b", 0), 2: {0: mesh, 1: spec}}


def _check_table(check: str) -> Fields:
    kind, _, target = check.partition(":")
    number = {0: Number("b", _CHECKS.index(kind))}
    return {**number, 1: target} if kind == "custom_call" else number
