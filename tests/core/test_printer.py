"""The printed form of jaxprs: that of JAX."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.core.printer import letters

v = np.arange(4, dtype=np.float32)
x = np.ones((3, 4), np.float32)


def text(f, *args):
    return str(jax.make_jaxpr(f)(*args))


def lines(f, *args):
    return [len(line) for line in text(f, *args).split("\n")]


def inner(q, r):
    return lax.sin(q) * r, q


@pytest.mark.parametrize(("f", "args", "expected"), [
    (lambda a: lax.sin(a), (v,), "{ lambda ; a:f32[4]. let b:f32[4] = sin a in (b,) }"),
    (lambda a: lax.sin(lax.cos(a)), (v,),
     "{ lambda ; a:f32[4]. let b:f32[4] = cos a; c:f32[4] = sin b in (c,) }"),
    (lambda a: (lax.sin(a), lax.cos(a))[0], (v,),
     "{ lambda ; a:f32[4]. let b:f32[4] = sin a; _:f32[4] = cos a in (b,) }"),
    (lambda: 1.0, (), "{ lambda ; . let  in (1.0:f32[],) }"),
    (lambda a: (a, 3, True), (v,),
     "{ lambda ; a:f32[4]. let  in (a, 3:i32[], True:bool[]) }"),
    (lambda a: a * 2.0 + 1, (v,),
     "{ lambda ; a:f32[4]. let\n"
     "    b:f32[4] = mul a 2.0:f32[]\n"
     "    c:f32[4] = add b 1.0:f32[]\n"
     "  in (c,) }"),
    (lambda a: (a * 2.5e10, a + np.float32(0.1), a * np.nan, a * -np.inf, a * -0.0), (v,),
     "{ lambda ; a:f32[4]. let\n"
     "    b:f32[4] = mul a 24999999488.0:f32[]\n"
     "    c:f32[4] = add a 0.10000000149011612:f32[]\n"
     "    d:f32[4] = mul a nan:f32[]\n"
     "    e:f32[4] = mul a -inf:f32[]\n"
     "    f:f32[4] = mul a -0.0:f32[]\n"
     "  in (b, c, d, e, f) }"),
    (lambda a: a + v, (v,),
     "{ lambda a:f32[4]; b:f32[4]. let c:f32[4] = add b a in (c,) }"),
    (lambda a, b: a @ b, (x, np.ones((4, 5), np.float32)),
     "{ lambda ; a:f32[3,4] b:f32[4,5]. let\n"
     "    c:f32[3,5] = dot_general[\n"
     "      dimension_numbers=(([1], [0]), ([], []))\n"
     "      preferred_element_type=float32\n"
     "    ] a b\n"
     "  in (c,) }"),
    (lambda a: a.astype("int32"), (x,),
     "{ lambda ; a:f32[3,4]. let\n"
     "    b:i32[3,4] = convert_element_type[new_dtype=int32 weak_type=False] a\n"
     "  in (b,) }"),
    (lambda a: jax.jit(inner)(a, a), (v,),
     "{ lambda ; a:f32[4]. let\n"
     "    b:f32[4] c:f32[4] = jit[\n"
     "      name=inner\n"
     "      jaxpr={ lambda ; a:f32[4] d:f32[4]. let\n"
     "          e:f32[4] = sin a\n"
     "          b:f32[4] = mul e d\n"
     "        in (b, a) }\n"
     "    ] a a\n"
     "  in (b, c) }"),
    (lambda a: (lambda f: f(f(a)))(jax.jit(lambda q: lax.sin(q) * 2)), (v,),
     "let lambda = { lambda ; a:f32[4]. let\n"
     "    b:f32[4] = sin a\n"
     "    c:f32[4] = mul b 2.0:f32[]\n"
     "  in (c,) } in\n"
     "{ lambda ; d:f32[4]. let\n"
     "    e:f32[4] = jit[name=<lambda> jaxpr=lambda] d\n"
     "    f:f32[4] = jit[name=<lambda> jaxpr=lambda] e\n"
     "  in (f,) }"),
    (lambda a: jax.jit(lambda q: lax.sin(q), donate_argnums=0, keep_unused=True)(a), (v,),
     "{ lambda ; a:f32[4]. let\n"
     "    b:f32[4] = jit[\n"
     "      name=<lambda>\n"
     "      donated_invars=(True,)\n"
     "      jaxpr={ lambda ; a:f32[4]. let b:f32[4] = sin a in (b,) }\n"
     "      keep_unused=True\n"
     "    ] a\n"
     "  in (b,) }"),
])
def test_texts(f, args, expected):
    assert text(f, *args) == expected


def test_names_of_variables():
    assert [letters(n) for n in (0, 25, 26, 27, 52, 26 * 26)] == ["a", "z", "ba", "bb", "ca", "baa"]


def test_long_lists_are_wrapped():
    """The widths are those of JAX's printer."""
    many = [jax.ShapeDtypeStruct((4,), np.float32)] * 24
    assert lines(lambda *q: q[0], *many) == [82, 84, 71, 4, 11]
    assert lines(lambda *q: q[0], *[jax.ShapeDtypeStruct((1000, 2000), np.float32)] * 24) == [
        95, 88, 88, 88, 76, 4, 11]
    for n, second in ((20, None), (21, 7), (25, 15), (26, 19)):
        widths = lines(lambda *q: lax.concatenate(q, 0), *many[:1] * n)
        assert (second in widths) == (second is not None)
    outs = text(lambda a: [a + float(k) for k in range(30)], v).split("\n")[-2:]
    assert [len(line) for line in outs] == [80, 25]


def test_options():
    closed = jax.make_jaxpr(lambda a: jax.named_scope("scope")(lambda q: lax.sin(q) + 1)(a))(v)
    assert closed.pretty_print(print_shapes=False) == (
        "{ lambda ; a. let b = sin a; c = add b 1.0 in (c,) }")
    first, second = closed.pretty_print(source_info=True).split("\n")[1:3]
    assert "# " in first
    assert first.index("#") == second.index("#")
    assert "test_printer.py" in first
    assert "[scope]" in closed.pretty_print(name_stack=True)
    assert "sin[accuracy=None]" in closed.pretty_print(custom_pp_eqn_rules=False)
    assert closed.pretty_print(use_color=False) == str(closed)


def test_text_depends_on_the_program_only():
    f = lambda a: jnp.where(a > 0, jnp.tanh(a), a).sum()  # noqa: E731
    assert text(jax.grad(f), v) == text(jax.grad(lambda a: f(a)), v)


def test_shared_programs_stand_in_front_the_outer_ones_first():
    @jax.jit
    def a(v):
        return v + 2

    @jax.jit
    def b(v):
        return a(v) * a(v)

    text = str(jax.make_jaxpr(lambda v: b(v) - b(v))(jnp.ones(1)))
    assert text == """\
let b = { lambda ; c:f32[1]. let
    d:f32[1] = jit[name=a jaxpr=a] c
    e:f32[1] = jit[name=a jaxpr=a] c
    f:f32[1] = mul d e
  in (f,) } in
let a = { lambda ; g:f32[1]. let h:f32[1] = add g 2.0:f32[] in (h,) } in
{ lambda ; i:f32[1]. let
    j:f32[1] = jit[name=b jaxpr=b] i
    k:f32[1] = jit[name=b jaxpr=b] i
    l:f32[1] = sub j k
  in (l,) }"""
