"""Functions with a planted fault each: the line with `# HERE` makes the first bad value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax

ONES = jnp.ones(3)


class Fault(NamedTuple):
    fun: Callable[..., Any]
    args: tuple[Any, ...]
    operation: str
    what: Any
    steps: tuple[str, ...]


FAULTS: dict[str, Fault] = {}


def fault(operation: str, *args: Any, what: Any = "nan", steps: tuple[str, ...] = ()) -> Any:
    def add(fun: Callable[..., Any]) -> Callable[..., Any]:
        FAULTS[fun.__name__] = Fault(fun, args, operation, what, steps)
        return fun

    return add


def below(n: int) -> Any:
    """The last n iterations of an outer and an inner loop, in words."""
    return f"iteration {n} of scan"


@fault("log", -ONES)
def log_of_negative(x):
    y = jnp.sin(x)
    y = jnp.log(y)  # HERE
    return jnp.cos(y) + 1


@fault("sqrt", -ONES)
def sqrt_inside_jit(x):
    @jax.jit
    def inner(x):
        return jnp.sqrt(x) * 2  # HERE

    return inner(x + 0) + 1


@fault("div", jnp.zeros(3))
def zero_by_zero(x):
    return (x / x).sum()  # HERE


@fault("sub", jnp.full(3, 1e38))
def infinite_less_infinite(x):
    y = x * 10
    return y - y * 2  # HERE


@fault("mul", jnp.full(3, 1e38), jnp.zeros(3))
def zero_times_infinite(x, zero):
    return (x * 10) * zero  # HERE


@fault("dot_general", jnp.array([[1e38, 1e38], [1.0, 0.0]]))
def product_of_infinite(x):
    y = x * 100
    return y @ jnp.array([[0.0], [1.0]])  # HERE


@fault("exp", jnp.array([1.0, 12.0], "float16"), what="inf")
def overflow_in_softmax(x):
    e = jnp.exp(x)  # HERE
    return e / e.sum(), e


@fault("div", jnp.array([1.0, 12.0], "float16"))
def softmax_of_overflow(x):
    e = jnp.exp(x)
    return e / e.sum()  # HERE


@fault("reduce_sum", jnp.full(4, 4e4, "float16"), what="inf")
def sum_in_float16(x):
    return lax.reduce_sum_p.bind(x, axes=(0,), out_sharding=None)  # HERE


@fault("convert_element_type", jnp.full(4, 1e6), what="inf")
def too_large_for_float16(x):
    return x.astype("float16") * 2  # HERE


@fault("mul", jnp.full(3, 1e-3, "float16"), what="subnormal")
def loses_digits(x):
    return jnp.sin(x * x)  # HERE


@fault("neg", ONES, what=lambda x: x < -0.5)
def below_a_bound(x):
    y = -x  # HERE
    return y * 1


@fault("log", ONES, steps=(below(2), below(371)))
def in_an_inner_scan(x):
    def outer(c, i):
        def inner(c, j):
            y = jnp.where((i == 2) & (j == 371), -1.0, 1.0) + 0 * x
            return c + jnp.log(y), None  # HERE
        return lax.scan(inner, c, jnp.arange(400))[0], None
    return lax.scan(outer, x, jnp.arange(4))[0]


@fault("sqrt", jnp.arange(8), steps=(below(371),))
def in_lane_5(lanes):
    def lane(i):
        def inner(c, j):
            return c + jnp.sqrt(jnp.where((i == 5) & (j == 371), -1.0, 1.0)), None  # HERE
        return lax.scan(inner, 0.0, jnp.arange(400))[0]
    return jax.vmap(lane)(lanes)


@fault("log", jnp.arange(1.0, 6.0).at[1].set(-1),
       steps=(f"{below(1)}, which runs backwards",))
def in_a_reversed_scan(x):
    return lax.scan(lambda c, a: (c, jnp.log(a)), 0.0, x, reverse=True)[1]  # HERE


@fault("log", jnp.arange(5.0, 0, -1), steps=(below(3),))
def carried_on(x):
    def body(c, a):
        p, q = c
        return (q, jnp.log(a - 2.5) + 0 * p), a  # HERE
    return lax.scan(body, (0.0, 0.0), x)[0][0]


@fault("div", jnp.arange(5.0), steps=(below(0),))
def in_a_stacked_result(x):
    return lax.scan(lambda c, a: (c + a, a / c), 0.0, x)[1]  # HERE


@fault("sqrt", 5.0, steps=("iteration 3 of while",))
def in_a_while(x):
    def body(c):
        return c[0] + 1, jnp.sqrt(c[1] - 1)  # HERE
    return lax.while_loop(lambda c: c[0] < 10, body, (0, x))


@fault("log", jnp.float32(4), steps=("iteration 5 of while",))
def in_a_fori_loop_of_any_length(x):
    return lax.fori_loop(0, x.astype(int) + 3, lambda i, c: c + jnp.log(4.5 - i), x)  # HERE


@fault("log", -ONES, steps=("branch 0 of cond",))
def in_a_branch(x):
    return lax.cond(x.sum() > 0, lambda x: x, lambda x: jnp.log(x), x)  # HERE


@fault("sqrt", -ONES, steps=("branch 2 of cond",))
def in_a_switch(x):
    return lax.switch(2, [jnp.sin, jnp.cos, lambda x: jnp.sqrt(x) + 1, jnp.tan], x)  # HERE


@fault("log", ONES, steps=(below(2), "branch 1 of cond"))
def in_a_branch_in_a_scan(x):
    def body(c, i):
        return lax.cond(i == 2, lambda c: c + jnp.log(-c), lambda c: c, c), None  # HERE
    return lax.scan(body, x, jnp.arange(4))[0]


@fault("log", -ONES, steps=("branch 0 of cond", below(0)))
def in_a_scan_in_a_branch(x):
    def loop(x):
        return lax.scan(lambda c, _: (jnp.log(c), None), x, None, 3)[0]  # HERE
    return lax.cond(x.sum() > 0, lambda x: x, loop, x)


@fault("mul", jnp.arange(4.0))
def where_under_grad(x):
    return jax.grad(lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0).sum())(x)  # HERE


@fault("mul", jnp.zeros(3))
def norm_under_grad(x):
    def norm(x):
        squares = x * x  # HERE
        return jnp.sqrt(squares.sum()) / 2
    return jax.grad(norm)(x)


@fault("log", -1.0)
def computed_again(x):
    def f(x):
        return jnp.sin(jnp.log(x))  # HERE
    return jax.grad(jax.checkpoint(f))(x)


@fault("div", 2.0)
def in_a_backward_rule(x):
    @jax.custom_vjp
    def double(x):
        return x * 2

    def back(x, g):
        return (g * (x - x) / (x - x),)  # HERE

    double.defvjp(lambda x: (double(x), x), back)
    return jax.grad(jax.jit(lambda x: double(x) ** 2))(x)


@fault("log", 2.0)
def in_a_forward_rule(x):
    @jax.custom_vjp
    def double(x):
        return x * 2

    def forward(x):
        return double(x), jnp.log(-x)  # HERE

    double.defvjp(forward, lambda r, g: (g * r,))
    return jax.grad(jax.jit(lambda x: double(x) ** 2))(x)


@fault("rsqrt", 2.0)
def in_a_tangent_rule(x):
    @jax.custom_jvp
    def double(x):
        return x * 2

    @double.defjvp
    def rule(primals, tangents):
        return double(*primals), tangents[0] * lax.rsqrt(-primals[0])  # HERE

    return jax.jvp(jax.jit(lambda x: double(x) ** 2), (x,), (1.0,))[1]


@fault("mul", jnp.array([0.0, 2.0]), steps=(f"{below(0)}, which runs backwards",))
def in_a_backward_scan(x):
    def loss(x):
        def body(c, i):
            return c + jnp.where(i > 0, jnp.sqrt(x * i), 0.0).sum(), None  # HERE
        return lax.scan(body, 0.0, jnp.arange(5.0))[0]
    return jax.grad(loss)(x)


@fault("div", jnp.zeros((4, 2)))
def in_a_batch_of_gradients(x):
    return jax.vmap(jax.grad(lambda x: jnp.log(x).sum() * 0))(x) * 0 + x / x.sum()  # HERE


@fault("log", jnp.array([[1.0, 2.0], [3.0, -1.0]]))
def in_a_batch(x):
    return jax.vmap(lambda r: jnp.log(r).sum())(x)  # HERE


@fault("pow", -ONES)
def power_of_negative(x):
    return x ** 0.5 + jnp.power(x, 0.3)  # HERE


@fault("acos", ONES * 1.5)
def angle_of_more_than_one(x):
    return jnp.arccos(x).sum()  # HERE


@fault("log1p", -2 * ONES)
def log1p_below(x):
    return jnp.tanh(jnp.log1p(x))  # HERE


@fault("rem", ONES)
def remainder_by_zero(x):
    return lax.rem(x, x - x)  # HERE


@fault("cholesky", -jnp.eye(3))
def of_no_positive_matrix(x):
    return jnp.linalg.cholesky(x).sum()  # HERE


@fault("log", ONES)
def behind_a_mask(x):
    masked = jnp.where(x > 5, jnp.log(-x), 0.0)
    return masked + jnp.log(-2 * x)  # HERE


@fault("log", ONES)
def with_constants(x):
    table = jnp.asarray(np.array([-1.0, 2.0, 3.0], "f4"))
    return x * jnp.log(table + 0 * x)  # HERE


@fault("log", -ONES)
def behind_a_callback(x):
    y = jax.pure_callback(lambda x: np.asarray(x) * 2, jax.ShapeDtypeStruct(x.shape, x.dtype), x)
    return jnp.log(y)  # HERE


@fault("log", -ONES)
def with_printing(x):
    jax.debug.print("{}", x)
    return jnp.log(x)  # HERE


@fault("log", ONES)
def with_a_reference(x):
    ref = jax.new_ref(x)
    ref[...] = ref[...] - 2
    return jnp.log(ref[...])  # HERE


@fault("log", jnp.float32(-1))
def asks_for_values(x):
    if x < 0:
        return jnp.log(x)  # HERE
    return x


@fault("log", -ONES)
def in_a_long_program(x):
    for i in range(100):
        x = jnp.sin(x) + jnp.cos(x * i)
        if i == 60:
            x = jnp.log(-1 - x * x)  # HERE
    return x
