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
import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pyjx.export.trees import MOST_DEPTH, fields_of_named_tuple

# -- tables of FlatBuffers -------------------------------------------------------------------------

# A buffer starts with the place of its first table. A table starts with the distance back to its
# vtable: two lengths, then for each field where it stands in the table, or 0. Numbers stand in the
# table itself; texts, vectors and other tables further on, by their distance. All is little-endian.
#
# The Python package of FlatBuffers has no verifier: damaged bytes lead it out of the buffer, in
# circles, or to lengths that no memory holds. Here each place and length is checked. Distances go
# forwards only, so there are no circles; as many parts may share what follows, what is read in all
# is bounded by the size of the buffer.

_SHARING = 16  # how often a byte may be read, on the average


class _Buffer:
    """The bytes, and how many of them may still be read."""

    __slots__ = ("data", "left")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.left = _SHARING * (len(data) + 64)

    def read(self, form: str, at: int) -> tuple[Any, ...]:
        """Numbers of a form of `struct`."""
        size = struct.calcsize(form)
        self.left -= size
        if at < 0 or at + size > len(self.data) or self.left < 0:
            raise ValueError("deserialize: the bytes are damaged: a place or a length in them "
                             "leads out of them.")
        return struct.unpack_from(form, self.data, at)

    def follow(self, at: int) -> int:
        """The place that the distance which stands here leads to."""
        distance, = self.read("<I", at)
        return at + max(int(distance), 1)


def _decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"deserialize: a text of the bytes is none: {error}") from None


class Table:
    """A table of a buffer. What a field lacks is empty, or the default.

    Raises:
      ValueError: a place or a length leads out of the buffer, or a text is none.

    >>> table = Table.first(written({0: Number("H", 7), 2: "text", 3: [{0: "inner"}]}))
    >>> table.number(0, "H"), table.text(1), table.text(2), table.tables(3)[0].text(0)
    (7, '', 'text', 'inner')
    """

    __slots__ = ("_at", "_buffer", "_fields")

    def __init__(self, buffer: _Buffer, at: int) -> None:
        back, = buffer.read("<i", at)
        size, _ = buffer.read("<HH", at - back)
        self._buffer, self._at = buffer, at
        self._fields = buffer.read(f"<{max(size - 4, 0) // 2}H", at - back + 4)

    @classmethod
    def first(cls, data: bytes) -> Table:
        """The table that a buffer starts with."""
        buffer = _Buffer(data)
        return cls(buffer, buffer.follow(0))

    def has(self, field: int) -> bool:
        """Whether the field is there."""
        return field < len(self._fields) and self._fields[field] != 0

    def number(self, field: int, form: str, default: int = 0) -> int:
        """A number, by its form in `struct`."""
        if not self.has(field):
            return default
        return int(self._buffer.read(f"<{form}", self._at + self._fields[field])[0])

    def numbers(self, field: int, form: str) -> list[int]:
        """A vector of numbers."""
        count, at = self._vector(field)
        return list(self._buffer.read(f"<{count}{form}", at))

    def bytes(self, field: int) -> bytes:
        """A vector of bytes."""
        count, at = self._vector(field)
        found: bytes = self._buffer.read(f"{count}s", at)[0]
        return found

    def text(self, field: int) -> str:
        """A text."""
        return _decoded(self.bytes(field))

    def texts(self, field: int) -> list[str]:
        """A vector of texts."""
        buffer = self._buffer
        found = []
        for at in self._places(field):
            count, = buffer.read("<I", at)
            found.append(_decoded(buffer.read(f"{count}s", at + 4)[0]))
        return found

    def table(self, field: int) -> Table:
        """Another table.

        Raises:
          ValueError: there is none.
        """
        if not self.has(field):
            raise ValueError("deserialize: a table lacks a part of it.")
        return Table(self._buffer, self._buffer.follow(self._at + self._fields[field]))

    def tables(self, field: int) -> list[Table]:
        """A vector of tables."""
        return [Table(self._buffer, at) for at in self._places(field)]

    def _vector(self, field: int) -> tuple[int, int]:
        """The length of a vector, and where it starts."""
        if not self.has(field):
            return 0, 0
        at = self._buffer.follow(self._at + self._fields[field])
        count, = self._buffer.read("<I", at)
        return int(count), at + 4

    def _places(self, field: int) -> list[int]:
        """Where the elements of a vector of distances lead to."""
        count, at = self._vector(field)
        self._buffer.read(f"<{count}I", at)
        return [self._buffer.follow(at + 4 * i) for i in range(count)]


class Number(NamedTuple):
    """A number of a table, by its form in `struct`."""

    form: str
    value: int


class Numbers(NamedTuple):
    """A vector of numbers."""

    form: str
    values: list[int]


Fields = Mapping[int, Any]


def written(fields: Fields) -> bytes:
    """A buffer of a table: each field is a `Number`, `Numbers`, a text, bytes, a list of texts, a
    mapping that is another table, or a list of such."""
    out = bytearray(4)
    struct.pack_into("<I", out, 0, _put(out, fields))
    return bytes(out)


def _put(out: bytearray, value: Any) -> int:
    """Append a value, and give its place."""
    out += bytes(-len(out) % 4)
    if isinstance(value, Mapping):
        return _put_table(out, value)
    at = len(out)
    if isinstance(value, Numbers):
        out += struct.pack(f"<I{len(value.values)}{value.form}", len(value.values), *value.values)
    elif isinstance(value, list):
        out += struct.pack("<I", len(value)) + bytes(4 * len(value))
        for i, item in enumerate(value):
            place = at + 4 + 4 * i
            struct.pack_into("<I", out, place, _put(out, item) - place)
    else:
        data = value.encode() if isinstance(value, str) else value
        out += struct.pack("<I", len(data)) + data + b"\0"  # texts end so, for C
    return at


def _put_table(out: bytearray, fields: Fields) -> int:
    """Append a vtable and its table, each field of which takes four bytes."""
    count = max(fields, default=-1) + 1
    places = [4 + 4 * sorted(fields).index(i) if i in fields else 0 for i in range(count)]
    vtable = len(out)
    out += struct.pack(f"<{2 + count}H", 4 + 2 * count, 4 + 4 * len(fields), *places)
    out += bytes(-len(out) % 4)
    at = len(out)
    out += struct.pack("<i", at - vtable) + bytes(4 * len(fields))
    for i, value in fields.items():
        place = at + places[i]
        if isinstance(value, Number):
            struct.pack_into(f"<{value.form}", out, place, value.value)
        else:
            struct.pack_into("<I", out, place, _put(out, value) - place)
    return at


# -- the bytes of jax.export -----------------------------------------------------------------------

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
