"""The container: trees, and bytes that are none."""

import hashlib
import json
import random
import struct
from collections import namedtuple
from dataclasses import replace

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import export

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture(scope="module")
def blob():
    n, m = export.symbolic_shape("n, m", constraints=["n >= 2", "mod(m, 3) == 0"])
    e = export.export(jax.jit(lambda x, y: {"out": (jnp.tanh(x) @ y["w"], [x.shape[0] + 1.0])}))(
        jax.ShapeDtypeStruct((n, m), np.float32), {"w": jax.ShapeDtypeStruct((m, 2), np.float32)})
    return bytes(e.serialize(vjp_order=1))


def refuses(data):
    """Whether it is refused by an exception that says so."""
    try:
        export.deserialize(data)
    except ValueError as error:
        return str(error) != ""
    return False


def resealed(body):
    """The bytes with a right checksum."""
    return body[:12] + hashlib.sha256(body[44:]).digest() + body[44:]


def mutated(rng, data):
    """Some bytes changed, inserted, removed or repeated."""
    data = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        i, kind = rng.randrange(len(data)), rng.randrange(5)
        if kind == 0:
            data[i] = rng.randrange(256)
        elif kind == 1:
            data[i] ^= 1 << rng.randrange(8)
        elif kind == 2:
            del data[i:i + rng.randint(1, 40)]
        elif kind == 3:
            data[i:i] = bytes(rng.randrange(256) for _ in range(rng.randint(1, 9)))
        else:
            data[i:i] = data[i:i + rng.randint(1, 40)]
        if not data:
            data = bytearray(b"\0")
    return bytes(data)


def test_mutated_bytes_are_refused(blob):
    rng = random.Random(0)
    for _ in range(10_000):
        data = mutated(rng, blob)
        assert data == blob or refuses(data)


def test_mutated_headers_with_a_right_checksum_are_read_safely(blob):
    """Each is refused, or still is a header: reading it makes nothing but a record."""
    size, = struct.unpack("<Q", blob[44:52])
    header, rest = blob[52:52 + size], blob[52 + size:]
    rng = random.Random(1)
    refused = 0
    for i in range(1500):
        if i % 3:
            changed = mutated(rng, header)
            body = struct.pack("<Q", len(changed)) + changed + rest
        else:
            body = mutated(rng, blob[44:])
        data = resealed(blob[:44] + body)
        try:
            assert isinstance(export.deserialize(data), export.Exported)
        except ValueError as error:
            assert str(error)
            refused += 1
    assert refused > 500


VALUES = [None, True, -1, 0, 10 ** 30, 1.5, "", "*", "x" * 1000, [], {}, ["*"], [[]], "n" * 9,
          {"a": 1}, ["tuple", ["*"]], ["node", "a", "b", []], ["dict", ["b", "a"], ["*", "*"]]]


def test_fields_of_other_types(blob):
    size, = struct.unpack("<Q", blob[44:52])
    fields, rest = json.loads(blob[52:52 + size]), blob[52 + size:]
    for name in fields:
        for value in VALUES:
            header = json.dumps({**fields, name: value}).encode()
            data = resealed(blob[:44] + struct.pack("<Q", len(header)) + header + rest)
            try:
                export.deserialize(data)
            except ValueError as error:
                assert str(error)
        header = json.dumps({k: v for k, v in fields.items() if k != name}).encode()
        assert refuses(resealed(blob[:44] + struct.pack("<Q", len(header)) + header + rest))


@pytest.mark.parametrize("depth", [100, 100_000])
def test_deep_headers(blob, depth):
    header = b'{"in_tree":' + b'["tuple",[' * depth + b"]]" * depth + b"}"
    assert refuses(resealed(blob[:44] + struct.pack("<Q", len(header)) + header + bytes(16)))


@pytest.mark.parametrize("data", [b"", b"PYJXEXPT", b"PYJXEXPT" + bytes(36), b"\x80\x04K\x01.",
                                  b"ML\xefR" + bytes(100), bytes(1000)])
def test_other_bytes(data):
    assert refuses(data)


def test_versions_and_types(blob):
    with pytest.raises(ValueError, match="version 2 of the format; this release reads version 1"):
        export.deserialize(blob[:8] + struct.pack("<I", 2) + blob[12:])
    with pytest.raises(ValueError, match="the checksum is wrong"):
        export.deserialize(blob[:-1] + bytes([blob[-1] ^ 1]))
    with pytest.raises(TypeError, match="expected bytes, got str"):
        export.deserialize("text")
    assert export.deserialize(memoryview(blob)).has_vjp()


# -- pytrees ---------------------------------------------------------------------------------------

Point = namedtuple("Point", "x y")
Other = namedtuple("Other", "x")
export.register_namedtuple_serialization(Point, serialized_name="tests.Point")


class Tagged:
    def __init__(self, value, tag):
        self.value = value
        self.tag = tag


jax.tree_util.register_pytree_node(
    Tagged, lambda t: ((t.value,), t.tag), lambda tag, children: Tagged(children[0], tag))
export.register_pytree_node_serialization(
    Tagged, serialized_name="tests.Tagged", serialize_auxdata=str.encode,
    deserialize_auxdata=bytes.decode)


def test_trees():
    args = (Point(X, [None, ()]), {"b": X, "a": (X,)}, Tagged(X, "tag"), {1: X})
    e = export.export(jax.jit(lambda p, d, t, i: (t, p, d, i)))(*args)
    read = export.deserialize(e.serialize())
    assert read.in_tree == e.in_tree and read.out_tree == e.out_tree
    tagged, point, rest, numbered = read.call(*args)
    assert tagged.tag == "tag" and type(point) is Point and list(rest) == ["a", "b"]
    np.testing.assert_array_equal(numbered[1], X)
    with pytest.raises(ValueError, match="same pytree structure"):
        read.call(args[0], args[1], Tagged(X, "another"), args[3])


def test_trees_that_cannot_be_written():
    with pytest.raises(ValueError, match="namedtuple without a serialization"):
        export.export(jax.jit(lambda p: p.x))(Other(X)).serialize()

    @jax.tree_util.register_pytree_node_class
    class Plain:
        def tree_flatten(self):
            return (X,), None

        @classmethod
        def tree_unflatten(cls, aux, children):
            return cls()

    with pytest.raises(ValueError, match="containing a node of type"):
        export.export(jax.jit(lambda p: 1.0))(Plain()).serialize()
    with pytest.raises(ValueError, match="string, int or bool keys"):
        export.export(jax.jit(lambda d: d[1.5]))({1.5: X}).serialize()


def test_registrations():
    with pytest.raises(ValueError, match="Duplicate serialization registration for type"):
        export.register_namedtuple_serialization(Point, serialized_name="tests.Point2")
    with pytest.raises(ValueError, match=r"Duplicate .* for serialized_name"):
        export.register_namedtuple_serialization(Other, serialized_name="tests.Point")
    with pytest.raises(ValueError, match="register_pytree_node_serialization"):
        export.register_namedtuple_serialization(tuple, serialized_name="tests.tuple")
    assert export.register_namedtuple_serialization(
        namedtuple("Third", "x"), serialized_name="tests.Third").__name__ == "Third"


def test_nodes_that_are_not_registered_where_they_are_read(blob):
    size, = struct.unpack("<Q", blob[44:52])
    fields, rest = json.loads(blob[52:52 + size]), blob[52 + size:]
    for tree, message in ((["namedtuple", "nowhere", ["*"]], "namedtuple `nowhere`"),
                          (["node", "nowhere", "", ["*"]], "node `nowhere`"),
                          (["namedtuple", "tests.Point", ["*"]], "2 fields here")):
        header = json.dumps({**fields, "out_tree": tree}).encode()
        with pytest.raises(ValueError, match=message):
            export.deserialize(
                resealed(blob[:44] + struct.pack("<Q", len(header)) + header + rest))


def test_a_backward_pass_of_another_function():
    def exported(f, *shapes):
        return export.export(jax.jit(f))(*[jax.ShapeDtypeStruct(s, np.float32) for s in shapes])

    f, other = exported(jnp.sin, (3,)), exported(jnp.sin, (4,))
    more = exported(lambda x: (jnp.sin(x), x), (3,))
    for wrong in (other.vjp(), more.vjp()):
        with pytest.raises(ValueError, match="the backward pass is that of another function"):
            export.deserialize(replace(f, _get_vjp=lambda _, vjp=wrong: vjp).serialize(vjp_order=1))
    assert export.deserialize(f.serialize(vjp_order=1)).has_vjp()
