"""Flags do what they say."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import configuration as cfg
from pyjx import export
from pyjx.experimental import checkify
from pyjx.runtime import cache


def test_static_indices_out_of_bounds() -> None:
    x = jnp.arange(6.0).reshape(2, 3)
    with cfg.check_static_indices(True):
        for read in (lambda: x[5], lambda: x[-5], lambda: x[0, 7], lambda: x[jnp.array([0]), 3],
                     lambda: jax.jit(lambda x: x[1, 3])(x), lambda: x.at[2].get(),
                     lambda: x.at[2].get(mode="promise_in_bounds")):
            with pytest.raises(IndexError, match=r"out of bounds for axis . with size"):
                read()
        assert x[np.array([0, 5])].shape == (2, 3)  # an array is not static
        assert np.isnan(x.at[5].get(mode="fill")).all()
        assert x.at[5].get(mode="clip").tolist() == [3, 4, 5]
        assert x.at[5].set(1).tolist() == x.tolist()
    assert x[5].tolist() == [3, 4, 5]


def test_constants_are_folded_while_tracing() -> None:
    def f(x: jax.Array) -> jax.Array:
        return x + jnp.sin(jnp.ones(3)) * 2

    plain = jax.make_jaxpr(f)(1.0)
    with cfg.eager_constant_folding(True):
        folded = jax.make_jaxpr(f)(1.0)
        assert np.allclose(jax.jit(f)(1.0), f(1.0))
        assert np.allclose(jax.grad(lambda x: f(x).sum())(2.0), 3)
    assert "sin" in str(plain)
    assert "sin" not in str(folded)
    assert "sin" in str(jax.make_jaxpr(f)(1.0))


@pytest.fixture
def _dumps(tmp_path: Path) -> Iterator[Path]:
    with cfg.dump_ir_to(str(tmp_path)), cfg.dump_ir_modes("stablehlo, jaxpr,eqn_count_pprof"):
        yield tmp_path


def test_a_folder_that_cannot_be_written_is_of_a_flag(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with cfg.dump_ir_to(str(tmp_path / "file/folder")), pytest.raises(
            NotADirectoryError, match=r"JAX_DUMP_IR_TO .* must name a folder that can be written"):
        jax.jit(jnp.sin).lower(1.0)


def test_programs_are_written(_dumps: Path) -> None:
    def named(x: jax.Array) -> jax.Array:
        return jnp.sin(x) * 2

    jax.jit(named).lower(1.0)
    (mlir,) = _dumps.glob("jax_ir????_jit_named_compile.mlir")
    (jaxpr,) = _dumps.glob("jax_??????_named.jaxpr.txt")
    (profile,) = _dumps.glob("jax_??????_named.eqn_count_pprof")
    assert "stablehlo.sine" in mlir.read_text()
    assert "test_flags.py" in mlir.read_text()
    assert "sin a" in jaxpr.read_text()
    strings = [value for number, value in _fields(gzip.decompress(profile.read_bytes()))
               if number == 6]
    assert {b"", b"equations", b"count", b"sin", b"mul"} <= set(strings)
    with cfg.include_debug_info_in_dumps(False):
        jax.jit(lambda x: named(x)).lower(1.0)
    assert "test_flags.py" not in max(_dumps.glob("*.mlir")).read_text()
    with pytest.raises(ValueError, match=r"jax_dump_ir_modes: expected some of .*; got 'hlo'"):
        cfg.dump_ir_modes("jaxpr,hlo")
    with pytest.raises(ValueError, match=r"regex: '\(' is no regular expression"):
        cfg.hlo_source_file_canonicalization_regex("(")


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a protocol buffer message."""
    at = 0

    def varint() -> int:
        nonlocal at
        n = shift = 0
        while True:
            byte = data[at]
            at += 1
            n |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return n

    while at < len(data):
        key = varint()
        value: int | bytes = varint()
        if key & 7 == 2:
            assert isinstance(value, int)
            value, at = data[at:at + value], at + value
        yield key >> 3, value


def test_jaxprs_have_colors_where_they_are_wanted() -> None:
    jaxpr = jax.make_jaxpr(lambda x: x + 1)(1.0)
    colored = jaxpr.pretty_print(use_color=True)
    assert "\x1b[34;1mlambda\x1b[39;22m" in colored
    assert "\x1b[35m:f32[]\x1b[39m" in colored
    assert re.sub("\x1b\\[[0-9;]*m", "", colored) == str(jaxpr)
    with cfg.pprint_use_color(False):
        assert jaxpr.pretty_print() == str(jaxpr)


def test_names_of_files_in_locations() -> None:
    def text() -> str:
        return jax.jit(lambda x: jnp.sin(x)).lower(1.0).as_text(debug_info=True)

    assert __file__ in text()
    with cfg.hlo_source_file_canonicalization_regex(".*/runtime/"):
        assert __file__ not in text()
        assert '"test_flags.py"' in text()


def test_locations_hold_one_frame_or_all() -> None:
    def inner(x: jax.Array) -> jax.Array:
        return jnp.sin(x)

    def outer(x: jax.Array) -> jax.Array:
        return inner(x)

    assert '.outer"' in jax.jit(lambda x: outer(x)).lower(1.0).as_text(debug_info=True)
    with cfg.include_full_tracebacks_in_locations(False):
        text = jax.jit(lambda x: outer(x)).lower(1.0).as_text(debug_info=True)
    assert '.inner"' in text
    assert '.outer"' not in text


def test_errors_show_where_a_traced_value_was_made() -> None:
    def made(x: jax.Array) -> jax.Array:
        return x > 0

    def branch(x: jax.Array) -> int:
        return 1 if made(x) else 0

    calls = r"made\)\.\n  called at .*branch\)\nTo choose"
    with pytest.raises(jax.errors.TracerBoolConversionError, match=calls):
        jax.jit(branch)(1.0)
    with cfg.tracer_error_num_traceback_frames(1), pytest.raises(
            jax.errors.TracerBoolConversionError) as caught:
        jax.jit(branch)(2)
    assert "called at" not in str(caught.value)


def test_checks_without_checkify() -> None:
    def f(x: jax.Array) -> jax.Array:
        checkify.check(x > 0, "x must be positive, got {x}", x=x)
        return x + 1

    with cfg.experimental_unsafe_xla_runtime_errors(True):
        assert jax.jit(f)(1.0) == 2
        with pytest.raises(jax.errors.JaxRuntimeError, match=r"x must be positive, got -1\.0"):
            jax.block_until_ready(jax.jit(f)(-1.0))
            jax.effects_barrier()


def test_sums_of_16_bits() -> None:
    x = jnp.ones(3, jnp.bfloat16)
    with cfg.allow_f16_reductions(False):
        assert jnp.sum(x) == 3  # in float32
        with pytest.raises(ValueError, match=r"reduce_sum on operand bf16\[3\] is not allowed"):
            jax.lax.reduce_sum(x, (0,))
        with pytest.raises(ValueError, match=r"reduce_sum on operand bf16\[3\] is not allowed"):
            jax.jit(lambda x: jax.lax.reduce_sum(x * 2, (0,)))(x)
    assert jax.lax.reduce_sum(x, (0,)) == 3


def test_typed_keys_of_prngkey() -> None:
    with cfg.enable_custom_prng(True):
        key = jax.random.PRNGKey(3)
        assert key == jax.random.key(3)
        assert jax.random.PRNGKey(3, impl="rbg") == jax.random.key(3, impl="rbg")
    assert jax.random.PRNGKey(3).dtype == np.uint32


def test_version_of_exported_programs() -> None:
    f = jax.jit(jnp.sin)
    with cfg.export_calling_convention_version(9):
        exported = export.export(f)(1.0)
        assert exported.calling_convention_version == 9
        assert export.deserialize(exported.serialize()).call(0.0) == 0
    with cfg.export_calling_convention_version(1), pytest.raises(
            ValueError, match=r"calling_convention_version 1 is outside the range"):
        export.export(f)(1.0)


def test_references_may_be_passed_twice_without_checks() -> None:
    ref = jax.new_ref(jnp.zeros(()))

    @jax.jit
    def f(a: jax.Ref, b: jax.Ref) -> None:
        a[...] = 1.0

    with pytest.raises(ValueError, match="only one reference"):
        f(ref, ref)
    with cfg.mutable_array_checks(False):
        jax.make_jaxpr(lambda a, b: None)(ref, ref)


def test_errors_of_the_cache_are_raised(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with cfg.cache(True), cfg.compilation_cache_dir(str(tmp_path / "file")):
        with pytest.warns(UserWarning, match="cannot be kept in"):
            assert jax.jit(lambda x: x * 3 + 1)(1.0) == 4
        cache._usable.cache_clear()
        with cfg.raise_persistent_cache_errors(True), pytest.raises(OSError, match="exists"):
            jax.jit(lambda x: x * 3 + 2)(1.0)


def test_programs_on_disk_are_checked(tmp_path: Path) -> None:
    def call() -> None:
        jax.clear_caches()
        assert jax.jit(lambda x: jnp.sin(x) * 3)(0.0) == 0

    with cfg.cache(True), cfg.compilation_cache_dir(str(tmp_path)):
        call()
        with cfg.compilation_cache_check_contents(True):
            call()
            cache._verified.clear()
            other = jax.jit(lambda x: x + 1).lower(0.0).compile()
            blob = jax.devices()[0].client.serialize_executable(other._executable.loaded)
            for path in tmp_path.glob("*.xla"):
                cache.Entry(str(tmp_path), bytes.fromhex(path.stem))._write(blob)
            with pytest.raises(cache.CacheVerificationError, match="differs from"):
                call()


def test_passes_are_switched_off() -> None:
    from pyjx.runtime.compile import _disabled_passes

    assert _disabled_passes("", "gpu", None) == {}
    with cfg.compiler_enable_remat_pass(False):
        assert _disabled_passes("", "gpu", None) == {
            "xla_disable_hlo_passes": "rematerialization"}
        assert jax.jit(lambda x: x * 5)(1.0) == 5
