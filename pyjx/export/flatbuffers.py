"""Tables as FlatBuffers lays them out in memory, read and written.

A buffer starts with the place of its first table. A table starts with the distance back to its
vtable: two lengths, then for each field where it stands in the table, or 0. Numbers stand in the
table itself; texts, vectors and other tables further on, by their distance. All is little-endian.

The Python package of FlatBuffers has no verifier: damaged bytes lead it out of the buffer, in
circles, or to lengths that no memory holds. Here each place and length is checked. Distances go
forwards only, so there are no circles; as many parts may share what follows, what is read in all
is bounded by the size of the buffer.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

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
