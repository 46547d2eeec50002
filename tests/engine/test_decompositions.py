"""Programs of what operations are made of, kept by what they are made from."""

import gc
import weakref

import numpy as np
import pytest

import pyjx as jax
import pyjx.extend as jex
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.interpreters import mlir

X = jnp.float32(3)
OPERANDS = {"array": lambda: X, "key": lambda: jax.random.key(0)}


def operation(fun):
    p = jex.core.Primitive("decomposed_of_test")
    p.def_abstract_eval(lambda x, **params: jax.core.ShapedArray(x.shape, jnp.dtype("float32")))
    mlir.register_lowering(p, mlir.lower_fun(fun, multiple_results=False))
    return p


peek_p = operation(lambda x, *, scale, extra=None:
                   jnp.zeros(x.shape) + (scale() if callable(scale) else 1 / jnp.float32(scale)))
kind_p = operation(lambda x, *, value: jnp.zeros(x.shape) + len(type(value).__name__))


@pytest.fixture(params=OPERANDS)
def operand(request):
    return OPERANDS[request.param]()


def jitted(p, x, **params):
    return jax.jit(lambda x: p.bind(x, **params))(x)


@pytest.mark.parametrize("zero", [float, np.float32, jnp.dtype("bfloat16").type],
                         ids=["float", "float32", "bfloat16"])
def test_zeros_of_both_signs(operand, zero):
    for text in ("0.0", "-0.0"):
        assert jitted(peek_p, operand, scale=zero(text)) == np.copysign(np.inf, float(text))


def test_zeros_of_both_signs_in_loops_and_branches(operand):
    for zero in (0.0, -0.0):
        def f(c, zero=zero):
            return c + peek_p.bind(operand, scale=zero)

        inf = np.copysign(np.inf, zero)
        assert lax.scan(lambda c, _: (f(c), None), X, None, 2)[0] == inf
        assert lax.cond(X > 1, f, lambda c: c, X) == inf
        assert lax.while_loop(lambda c: jnp.isfinite(c), f, X) == inf


def test_numbers_of_all_types(operand):
    for value in (1, 1.0, True, np.float32(1), np.float64(1)):
        assert jitted(kind_p, operand, value=value) == len(type(value).__name__)


def test_parameters_of_the_users_go_with_their_operation(operand):
    class Scale:
        def __call__(self):
            return 3.0

    scale = Scale()
    alive = weakref.ref(scale)
    assert jitted(peek_p, operand, scale=scale) == 3
    del scale
    gc.collect()
    assert alive() is None


def test_parameters_without_a_key(operand):
    for extra in ([1], {1: {2}}, bytearray(b"a")):
        assert jitted(peek_p, operand, scale=2.0, extra=extra) == 0.5


def test_an_operation_that_gets_another_rule():
    p = operation(lambda x: x * 2)

    def results():
        return (jitted(p, X), lax.scan(lambda c, _: (p.bind(c), None), X, None, 2)[0],
                lax.cond(X > 1, lambda x: p.bind(x), lambda x: x, X))

    assert results() == (6, 12, 6)
    mlir.register_lowering(p, mlir.lower_fun(lambda x: x * 9, multiple_results=False))
    assert results() == (27, 243, 27)

    def doubled(ctx, x):
        from jaxlib.mlir.dialects import stablehlo

        return [stablehlo.add(x, x)]

    mlir.register_lowering(p, doubled)
    assert results() == (6, 12, 6)
