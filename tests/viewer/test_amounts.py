"""How much arithmetic operations are, in all forms of a program."""

from __future__ import annotations

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.experimental import pallas as pl
from pyjx.lax.linalg import triangular_solve, tridiagonal_solve
from pyjx.viewer.document import program
from pyjx.viewer.hlo import hlo_listing
from pyjx.viewer.jaxprs import jaxpr_listing
from pyjx.viewer.listing import Places
from pyjx.viewer.stablehlo import stablehlo_listing

SQUARE, WIDE = (jax.ShapeDtypeStruct(shape, np.float32) for shape in ((64, 64), (64, 128)))
COMPLEX = jax.ShapeDtypeStruct((64, 64), np.complex64)
INTEGERS, ROWS = (jax.ShapeDtypeStruct(*a) for a in (((64, 128), np.int32),
                                                     ((2, 1, 64), np.complex64)))
BATCH = jax.ShapeDtypeStruct((5, 64, 64), np.float32)
N = 64.0


def forms(f, args):
    traced = jax.jit(f).trace(*args)
    lowered = traced.lower()
    return [jaxpr_listing(traced.jaxpr, Places()), stablehlo_listing(lowered.as_text(), Places()),
            hlo_listing(lowered.as_text("hlo"), Places(), "HLO"),
            hlo_listing(lowered.compile().as_text(), Places(), "HLO")]


@pytest.mark.parametrize(("f", "args", "amount"), [
    (lambda x: lax.sort(x, dimension=0), (INTEGERS,), N * 128 * 6),
    (lambda x: lax.sort(x, dimension=1), (INTEGERS,), N * 128 * 7),
    (lambda x: lax.top_k(x, 5), (WIDE,), N * 128),
    (jnp.fft.fftn, (COMPLEX,), 5 * N**2 * 12), (jnp.fft.rfft2, (SQUARE,), 5 * N * 33 * 12),
    (lambda a: a @ a, (COMPLEX,), 2 * 4 * N**3), (lambda a: a * a, (COMPLEX,), 4 * N**2),
    (jnp.sum, (COMPLEX,), 4 * (N**2 - 1)),
    (lambda a, u: a.at[jnp.array([[1], [2]])].add(u), (COMPLEX, ROWS), 4 * 2 * N),
    (lambda a, b: triangular_solve(a, b, left_side=True), (BATCH, BATCH), 5 * N**3),
    (lambda a: tridiagonal_solve(a[0], a[1], a[2], a), (SQUARE,), 3 * N + 5 * N**2),
    (lambda a: tridiagonal_solve(a[:, 0], a[:, 1], a[:, 2], a[..., :1]), (BATCH,), 5 * 8 * N)])
def test_all_forms_count_by_the_same_rules(f, args, amount):
    assert [listing.flops[0] for listing in forms(f, args)] == [
        pytest.approx(amount, abs=32)] * 4  # where indices are bounded


@pytest.mark.parametrize("f", [
    lax.acos, lax.acosh, lax.asin, lax.asinh, lax.atan, lax.atanh, lax.bessel_i1e, lax.cosh,
    lax.digamma, lax.erf, lax.erf_inv, lax.erfc, lax.sinh, lambda x: lax.nextafter(x, x),
    lambda x: lax.reduce_precision(x, 5, 5), lambda x: lax.sin(lax.real(lax.complex(x, x)))])
def test_each_function_of_a_number_counts_as_one_in_stablehlo(f):
    traced = jax.jit(f).trace(SQUARE)
    listing = stablehlo_listing(traced.lower().as_text(), Places())
    assert jaxpr_listing(traced.jaxpr, Places()).flops[0] == listing.flops[0] == N**2


@pytest.mark.parametrize("n", [8, 1000])
def test_derivatives_of_few_numbers_count_as_they_are_computed(n):
    counts = [listing.flops[0] / n for listing in forms(jax.vmap(jax.grad(jnp.tanh)), (
        jax.ShapeDtypeStruct((n,), np.float32),))]
    assert max(counts) <= min(counts) + 3  # products with 1


@pytest.mark.parametrize(("f", "a", "cubes"), [
    (jnp.linalg.cholesky, SQUARE, 1 / 3), (jnp.linalg.eig, SQUARE, 25),
    (jnp.linalg.eigh, COMPLEX, 36), (jnp.linalg.svd, COMPLEX, 104), (jnp.linalg.svd, WIDE, 30),
    (jnp.linalg.qr, SQUARE, 8 / 3), (jnp.linalg.qr, WIDE, 14 / 3),
    (jax.scipy.linalg.lu_factor, WIDE, 5 / 3), (jax.scipy.linalg.hessenberg, SQUARE, 10 / 3),
    (jax.scipy.linalg.schur, SQUARE, 25)])
def test_all_forms_count_what_libraries_do(f, a, cubes):
    for listing in forms(f, (a,)):  # and masks
        assert cubes * N**3 * 0.99 <= listing.flops[0] < cubes * N**3 + 16 * N**2


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
@pytest.mark.parametrize(("f", "amount"), [
    (jnp.linalg.cholesky, 1 / 3), (jnp.linalg.eigh, 9), (jnp.linalg.qr, 8 / 3),
    (jax.scipy.linalg.lu_factor, 2 / 3), (lambda a: triangular_solve(a, a), 1)])
def test_libraries_of_accelerators_count_as_what_they_do(f, amount, platform):
    text = jax.jit(f).trace(SQUARE).lower(lowering_platforms=(platform,)).as_text()
    flops = stablehlo_listing(text, Places()).flops[0]
    assert amount * N**3 * 0.99 <= flops < amount * N**3 + 16 * N**2


@pytest.mark.parametrize("perturbed", [False, True])
@pytest.mark.parametrize("platform", ["cuda", "rocm"])
def test_tridiagonal_systems_count_on_gpus(platform, perturbed):
    text = jax.jit(lambda a: tridiagonal_solve(
        a[:, 0], a[:, 1], a[:, 2], a, perturb_singular=perturbed)).trace(BATCH).lower(
            lowering_platforms=(platform,)).as_text()
    assert stablehlo_listing(text, Places()).flops[0] == 5 * (3 * N + 5 * N**2)


def test_what_is_not_known_counts_nothing():
    def flops(target):
        return hlo_listing(f"""HloModule m

ENTRY %main (a: f32[64,64]) -> f32[64,64] {{
  %a = f32[64,64]{{1,0}} parameter(0)
  ROOT %x = f32[64,64]{{1,0}} custom-call(%a, %a), custom_call_target="{target}"
}}
""", Places(), "HLO").flops[0]

    assert flops("my_eigh_of_values") == flops("lapack") == 0
    assert flops("Cholesky") < flops("LuRealDecompositionBlock") < flops("QrDecompositionBlock")
    assert flops("EighTpu") == 9 * (2 * N)**3  # each operand is a quarter
    assert flops("__cublas$triangularSolve") == N**3 and flops("__cublas$gemm") == 2 * N**3


def product(a, b, out):
    out[...] = a[...] @ b[...]


def test_kernels_for_accelerators_count_what_the_jaxpr_says():
    half = pl.BlockSpec((32, 64), lambda i: (i, 0))
    whole = pl.BlockSpec((64, 128), lambda i: (0, 0))

    def f(a, b):
        return pl.pallas_call(product, grid=2, in_specs=[half, whole], out_shape=WIDE,
                              out_specs=pl.BlockSpec((32, 128), lambda i: (i, 0)))(a, b) * 2

    traced = jax.jit(f).trace(SQUARE, WIDE)
    text = traced.lower(lowering_platforms=("tpu",)).as_text(debug_info=True)
    for form in program(jaxpr=traced.jaxpr, stablehlo=text)["forms"]:
        assert form["flops"][form["entry"]] == 2 * 64 * N**2 * 2 + 64 * 128


def twice(a_ref, out_ref):
    out_ref[...] = a_ref[...] * 2


def power(a_ref, out_ref):
    out_ref[...] = a_ref[...] @ a_ref[...]


def call(kernel, x):
    return pl.pallas_call(kernel, out_shape=SQUARE)(x)


def both(x):
    for kernel in (power, twice):
        x = call(kernel, x)
    return x


@pytest.mark.parametrize("f", [
    lambda x: call(twice, call(power, x)), lambda x: call(power, call(twice, x)), both,
    lambda x: jax.jit(both)(jax.jit(both)(x))])
@pytest.mark.parametrize("form", ["stablehlo", "hlo"])
def test_kernels_called_through_one_helper_count_each_for_itself(f, form):
    traced = jax.jit(f).trace(SQUARE)
    text = traced.lower(lowering_platforms=("tpu",)).as_text(form, debug_info=True)
    found = program(jaxpr=traced.jaxpr, **{form: text})
    kernels = [[form["flops"][row] for row, name in enumerate(form["operation"])
                if found["strings"][name].endswith(("_call", "-call"))] for form in found["forms"]]
    assert kernels[0] == kernels[1] and len(set(kernels[0])) == 2
    jaxpr, other = [form["flops"][form["entry"]] for form in found["forms"]]
    assert jaxpr == other


def test_what_a_body_gives_does_not_move():
    listing = stablehlo_listing("""module @m {
  func.func public @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x"}]>] (%arg1: tensor<4xf32>) {
      %1 = stablehlo.sine %arg1 : tensor<4xf32>
      sdy.return %1 : tensor<4xf32>
    } : (tensor<8xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
""", Places())
    assert listing.traffic[listing.operation.index("sdy.return")] == 0


def test_keys_and_tokens_are_counted_over():
    def walk(key, x):
        jax.debug.print("{}", x, ordered=True)
        return lax.scan(lambda x, k: (x + jax.random.normal(k), None), x,
                        jax.random.split(key, 4))[0]

    traced = jax.jit(walk).trace(jax.random.key(0), 1.0)
    assert traced.cost().total.flops > 0
    assert jaxpr_listing(traced.jaxpr, Places()).exact


SOFTMAX = """HloModule m, is_scheduled=true

%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[]{:T(128)} parameter(0)
  %b = f32[]{:T(128)} parameter(1)
  ROOT %c = f32[]{:T(128)} add(%a, %b)
}

%inside (e: f32[4,512,4096]) -> f32[4,512,4096] {
  %e = f32[4,512,4096]{2,1,0:T(8,128)} parameter(0)
  %zero = f32[]{:T(128)} constant(0)
  %sums = f32[4,512,4096]{2,1,0:T(8,128)} reduce-window(%e, %zero), WINDOW, to_apply=%sum
  ROOT %d = f32[4,512,4096]{2,1,0:T(8,128)} divide(%e, %sums)
}

ENTRY %main (x: f32[4,512,4096]) -> f32[4,512,4096] {
  %x = f32[4,512,4096]{2,1,0:T(8,128)} parameter(0)
  ROOT %f = f32[4,512,4096]{2,1,0:T(8,128)} fusion(%x), kind=kLoop, calls=%inside
}
"""


@pytest.mark.parametrize(("window", "combined"), [
    ("window={size=1x1x8191 pad=0_0x0_0x4095_4095}", 2048 * 4095),
    ("window={size=1x1023x8191 pad=0_0x511_511x4095_4095}", 4 * (512 * 4096 - 1)),
    ("window={size=1x1x8191 pad=0_0x0_0x8190_0}", 2048 * 4096 * 8190),  # of what comes before
    ("window={size=1x1x4096 pad=0_0x0_0x4095_0}", 2048 * 4096 * 4095),
    ("window={size=1x3x3 pad=0_0x1_1x1_1}", 2048 * 4096 * 8),
    ("window={size=1x1x2 pad=0_0x0_0x4095_4095 rhs_dilate=1x1x8190}", 2048 * 4096)])
def test_windows_that_hold_the_same_are_reduced_once(window, combined):
    listing = hlo_listing(SOFTMAX.replace("WINDOW", window), Places(), "Optimised HLO")
    assert listing.flops[listing.entry] == 2048 * 4096 + combined
