"""Exported functions that cross: of jax here, and of pyjx where PYJX_ORACLE_PYTHON has jax."""

import os
import random
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

import pyjx as jax
from pyjx import export, jaxlib_api
from pyjx.export import container as exports
from pyjx.export import jax_format
from tests.files import ARCHIVES, cases, contents

MADE = {version: contents(version) for version in ARCHIVES}
JAXLIB = jaxlib_api.JAXLIB_VERSION[:2]
HERE = [name for name in cases.CASES if name != "sharded"]  # tests/devices/test_export.py has that
ROOT = Path(jax.__file__).parents[1]
X = np.arange(3, dtype=np.float32)


@pytest.fixture(scope="module", autouse=True)
def registered():
    cases.register()


def needs_jaxlib(version):
    """Skip where the operations that jax wrote are of a later jaxlib."""
    if tuple(map(int, version.split(".")[:2])) > JAXLIB:
        pytest.skip(f"jaxlib is older than jax {version}")


def artifact(version, name):
    return MADE[version][f"export.{name}"]


def same(found, wanted):
    assert len(found) == len(wanted)
    for x, y in zip(found, wanted, strict=True):
        assert x.dtype == y.dtype
        wide = np.complex128 if x.dtype.kind == "c" else np.float64
        np.testing.assert_allclose(x.astype(wide), y.astype(wide), rtol=3e-5, atol=1e-5)


@pytest.mark.parametrize("name", HERE)
@pytest.mark.parametrize("version", MADE)
def test_what_jax_exported_gives_what_the_function_gives(version, name):
    needs_jaxlib(version)
    found = export.deserialize(artifact(version, name))
    wanted = cases.exported(name)
    assert str(found.in_tree) == str(wanted.in_tree)
    assert str(found.out_tree) == str(wanted.out_tree)
    assert list(map(str, found.out_avals)) == [str(a.strip_weak_type()) for a in wanted.out_avals]
    assert found.platforms == wanted.platforms and found.nr_devices == wanted.nr_devices
    assert found.disabled_safety_checks == wanted.disabled_safety_checks
    same(cases.answers(found.call, name), cases.answers(wanted.call, name))


@pytest.mark.parametrize("name", HERE)
def test_jax_s_format_is_read_back(name):
    exported = cases.exported(name)
    again = export.deserialize(exported.serialize(
        vjp_order=cases.CASES[name][2].get("order", 0), format="jax"))
    assert again.in_tree == exported.in_tree and again.fun_name == exported.fun_name
    assert again.module_kept_var_idx == exported.module_kept_var_idx
    same(cases.answers(again.call, name), cases.answers(exported.call, name))


def test_derivatives_of_any_order_cross():
    call = export.deserialize(artifact("0.7.2", "second")).call
    second = jax.grad(lambda x: jax.grad(lambda x: call(x).sum())(x).sum())
    np.testing.assert_allclose(second(X), -np.sin(X), rtol=1e-6)


@pytest.mark.parametrize("version", MADE)
def test_constraints_of_dimensions_are_checks_in_the_module(version):
    needs_jaxlib(version)
    exported = export.deserialize(artifact(version, "symbolic"))
    with pytest.raises(ValueError, match=r"'symbolic' cannot be called with .*float32\[3\]: .* "
                                         r"constraint a >= b \+ 1"):
        exported.call(X, X)


def test_weak_types_and_constraints_are_not_told():
    n, = export.symbolic_shape("n", constraints=["n >= 4"])
    exported = export.export(jax.jit(lambda x, y: x * y))(
        jax.ShapeDtypeStruct((n,), np.float32), 2.0)
    again = export.deserialize(exported.serialize(format="jax"))
    assert [a.weak_type for a in again.in_avals] == [False, False]
    with pytest.raises(ValueError, match=r"constraint n >= 4|n - 4"):
        again.call(X, np.float32(1))


@pytest.mark.parametrize(("fun", "message"), [
    (lambda: {1: X}, "keys that are texts alone. Found keys \\[1\\]"),
    (lambda: jax.random.key(0, impl="philox2x32"), "has no dtype key<")])
def test_what_jax_s_format_has_no_place_for_is_refused(fun, message):
    exported = export.export(jax.jit(fun))()
    with pytest.raises(ValueError, match=message):
        exported.serialize(format="jax")


def test_formats_have_names():
    exported = export.export(jax.jit(lambda x: -x))(X)
    with pytest.raises(ValueError, match="format must be 'pyjx' or 'jax', got 'flatbuffers'"):
        exported.serialize(format="flatbuffers")


# -- damaged bytes ---------------------------------------------------------------------------------


def refused(data):
    try:
        export.deserialize(data)
    except ValueError as error:
        return bool(str(error))
    return False


@pytest.mark.parametrize("count", [600, pytest.param(20_000, marks=pytest.mark.slow)])
def test_damaged_bytes_are_refused_or_read(count):
    rng = random.Random(0)
    names = ("tree", "symbolic", "both", "sharded", "dtypes")
    blobs = [artifact(version, name) for version in ("0.7.2", "0.9.2", "0.12.0.1")
             for name in names]
    words = (b"\xff" * 4, bytes(4), b"\xff\xff\xff\x7f", b"\1\0\0\0")
    refusals = 0
    for _ in range(count):
        data = bytearray(rng.choice(blobs))
        for _ in range(rng.randint(1, 4)):
            i, kind = rng.randrange(min(len(data), 4000)), rng.randrange(4)
            if kind == 0:
                data[i] = rng.randrange(256)
            elif kind == 1:
                data[i] ^= 1 << rng.randrange(8)
            elif kind == 2:
                data[i:i + 4] = rng.choice(words)
            else:
                del data[i:i + rng.randint(1, 40)]
        refusals += refused(bytes(data))
    assert refusals > count // 3


@pytest.mark.parametrize("size", [0, 3, 4, 8, 60, 700])
def test_cut_bytes_are_refused(size):
    assert refused(artifact("0.12.0.1", "tree")[:size])


def test_parts_that_are_shared_are_read_so_often_as_the_size_allows():
    """Without a bound this tree of sixty levels has 2**60 leaves."""
    leaf = b"\4\0\4\0" + b"\4\0\0\0"
    out = bytearray(b"\0\0\0\0")
    levels = 60
    for level in range(levels):  # each is a table of a kind and of two children, both the next one
        start = len(out)
        out += b"\x08\0\x0c\0\4\0\x08\0" + b"\x08\0\0\0" + b"\2\0\0\0" + b"\4\0\0\0"
        out += b"\2\0\0\0"
        after = start + 32 + (8 if level + 1 < levels else 4)
        out += (after - len(out)).to_bytes(4, "little")
        out += (after - len(out)).to_bytes(4, "little")
    out += leaf
    out[:4] = (12).to_bytes(4, "little")
    table = jax_format.Table.first(bytes(out))
    assert len(table.tables(1)) == 2
    with pytest.raises(ValueError, match="leads out of them"):
        count = [table]
        while count:
            count += count.pop().tables(1)


def changed(place, value):
    """The bytes of a function whose field at a place, numbers of fields and positions, is another
    one."""
    exported = cases.exported("second")
    fields = jax_format._table_of(exports._header(exported), exported.mlir_module_serialized)
    at = fields
    for step in place[:-1]:
        at = at[step]
    at[place[-1]] = value
    return jax_format.written(fields)


NUMBER = jax_format.Number
MESH = {0: jax_format.Numbers("I", [1]), 1: ["x"]}


@pytest.mark.parametrize(("place", "value", "message"), [
    ((0,), NUMBER("H", 13), "jax wrote version 13 of its format; versions 2 to 12 are read"),
    ((0,), NUMBER("H", 1), "jax wrote version 1 of its format"),
    ((10,), [{0: "OrderedIOEffect"}], "the function has the effects OrderedIOEffect, which"),
    ((11,), [{0: "IOEffect"}], "Export it without them"),
    ((3, 0, 0), NUMBER("b", 1), "is a token"),
    ((3, 0, 3), NUMBER("b", 2), "is in the host's memory. Export the function with all in the"),
    ((3, 0, 2), NUMBER("b", 99), "jax wrote the dtype 99, which is not known here"),
    ((3, 0, 1), ["3", "4 +"], "syntax error in symbolic shape '4 +'"),
    ((2, 0), NUMBER("b", 6), "jax wrote a pytree node of the kind 6"),
    ((12,), [{0: NUMBER("b", 3)}], "jax wrote the disabled check 3"),
    ((7, 0), {2: {0: MESH, 1: {}, 2: "pinned_host"}}, "is in the memory 'pinned_host'"),
    ((7, 0), {2: {0: MESH, 1: {1: ["x"]}}}, "is reduced or unreduced along axes of the mesh"),
    ((7, 0), {2: {0: {1: ["x"]}, 1: {}}}, "a mesh has more names or sizes than axes"),
    ((7, 0), {2: {1: {}}}, "a table lacks a part of it"),
    ((14,), NUMBER("H", 8), "the calling convention version 8 is outside the range"),
    ((17,), {0: NUMBER("H", 3)}, "a table lacks a part of it")])
def test_what_programs_here_do_not_have_is_refused(place, value, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        export.deserialize(changed(place, value))


def test_what_can_be_left_out_may_be():
    for place, value in (((6,), NUMBER("H", 0)), ((12,), []), ((14,), NUMBER("H", 9))):
        exported = export.deserialize(changed(place, value))
        np.testing.assert_allclose(exported.call(X), np.sin(X), rtol=1e-6)


@pytest.mark.skipif(JAXLIB >= (0, 11), reason="reads all that there is")
def test_modules_of_later_versions_are_refused():
    with pytest.raises(ValueError, match="of a later version, or damaged"):
        export.deserialize(artifact("0.12.0.1", "symbolic")).call(X, X)


# -- beside jax ------------------------------------------------------------------------------------

READ = """
import sys
import numpy as np
from tests.files import ARCHIVES, cases, contents
cases.register()
cases.jnp.linalg.cholesky(cases.jnp.eye(2))  # before 0.10 jax loads LAPACK for programs of its own
folder, *names = sys.argv[1:]
for name in names:
    with open(f"{folder}/{name}", "rb") as file:
        exported = cases.export.deserialize(bytearray(file.read()))
    np.savez(f"{folder}/{name}.npz", *[x.astype(complex)
                                       for x in cases.answers(exported.call, name)])
"""


@pytest.mark.oracle
def test_jax_runs_what_was_exported_for_it(tmp_path):
    python = os.environ.get("PYJX_ORACLE_PYTHON")
    if not python:
        pytest.skip("PYJX_ORACLE_PYTHON names no Python with jax and flatbuffers")
    for name in HERE:
        (tmp_path / name).write_bytes(cases.exported(name).serialize(
            vjp_order=cases.CASES[name][2].get("order", 0), format="jax"))
    subprocess.run([python, "-c", READ, str(tmp_path), *HERE], cwd=ROOT, check=True, env={
        **os.environ, "FILES_BY": "jax"})
    for name in HERE:
        wanted = [x.astype(complex) for x in cases.answers(cases.exported(name).call, name)]
        same(list(np.load(tmp_path / f"{name}.npz").values()), wanted)
