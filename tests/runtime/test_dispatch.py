"""Running programs: eager operations, placement, the C++ fast path."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import configuration
from pyjx.core.avals import ShapedArray
from pyjx.core.primitive import Primitive
from pyjx.core.trace import eager_trace, trace_to_jaxpr
from pyjx.runtime import lower, programs
from pyjx.runtime.placement import on_device

pytestmark = pytest.mark.smoke


def test_eager_operation_runs_at_once():
    out = jax.lax.sin_p.bind(np.ones(3, np.float32), accuracy=None)
    assert isinstance(out, jax.Array)
    np.testing.assert_allclose(out, np.sin(np.ones(3)), rtol=1e-6)


def test_eager_operation_with_several_results():
    outs = jax.lax.split(jnp.arange(5), [2, 3])
    assert [o.tolist() for o in outs] == [[0, 1], [2, 3, 4]]


def test_primitive_with_an_implementation():
    twice_p = Primitive("test_twice", impl=lambda x: x * 2)
    assert twice_p.bind(3) == 6


def test_primitive_without_lowering_rule():
    bare_p = Primitive("test_bare", shape_rule=lambda a: a)
    with pytest.raises(NotImplementedError, match="translation rule for primitive 'test_bare'"):
        bare_p.bind(np.ones(2, np.float32))
    with pytest.raises(NotImplementedError, match="'test_bare' not found"):
        jax.jit(lambda a: bare_p.bind(a))(1.0)


def test_primitive_without_shape_rule():
    with pytest.raises(NotImplementedError,
                       match="Abstract evaluation for 'test_empty' not implemented"):
        jax.make_jaxpr(lambda a: Primitive("test_empty").bind(a))(1.0)
    with pytest.raises(NotImplementedError,
                       match="Evaluation rule for 'test_empty' not implemented"):
        Primitive("test_empty").bind(1.0)


@pytest.mark.parametrize("multiple", [False, True])
def test_one_result_or_a_list_of_them(multiple: bool) -> None:
    wrong_p = Primitive("test_wrong", multiple_results=multiple,
                        shape_rule=lambda a: a if multiple else [a])
    with pytest.raises(ValueError, match="should return a tuple or a list iff test_wrong"):
        jax.make_jaxpr(lambda a: wrong_p.bind(a))(1.0)


def test_unhashable_parameter():
    odd_p = Primitive("test_odd", shape_rule=lambda a, scales: a,
                      decomposition=lambda a, scales: a * scales[0])
    assert float(odd_p.bind(np.float32(2), scales=[3.0])) == 6
    assert float(jax.jit(lambda a: odd_p.bind(a, scales=[4.0]))(2.0)) == 8


def test_number_of_eager_programs_is_bounded(monkeypatch):
    compiled = eager_trace._compiled
    monkeypatch.setattr(compiled, "capacity", len(compiled) + 3)
    x = jnp.ones(())
    for n in range(2, 12):
        assert float(jax.lax.integer_pow(x, n)) == 1
        jax.lax.integer_pow_p.bind(x, y=n)
    assert len(compiled) <= compiled.capacity


def test_executables_are_kept_with_their_jaxpr():
    closed = trace_to_jaxpr(lambda a: [a * 2], [ShapedArray((3,), np.float32)])
    where = on_device(jax.devices()[0])
    first = programs.compile_closed(closed, "f", placement=where)[1]
    assert programs.compile_closed(closed, "f", placement=where)[1] is first
    with configuration.outline("off"):
        assert programs.compile_closed(closed, "f", placement=where)[1] is not first
    (out,) = first.call([np.ones(3, np.float32)])
    assert out.tolist() == [2, 2, 2]


def test_unused_constants_and_arguments_are_left_out():
    big = np.ones(100, np.float32)
    closed = trace_to_jaxpr(lambda a, b: [(a * big, b * 2)[1]],
                            [ShapedArray((100,), np.float32), ShapedArray((), np.float32)])
    program = lower.lower_closed(closed, "f")
    assert program.kept == [False, True]
    assert program.const_args == []


def test_results_are_committed_if_an_argument_is():
    device = jax.devices()[0]
    x = jnp.ones(3)
    committed = jax.device_put(x, device)
    f = jax.jit(lambda a: a + 1)
    for _ in range(2):  # by Python, then by C++
        assert not f(x).committed
        assert f(committed).committed
        assert not (x + 1).committed
        assert (committed + 1).committed


def test_several_devices(run_python):
    """Arguments committed to a device run there; the default device's context; errors."""
    print(run_python("""
import warnings
import numpy as np
import pyjx as jax, pyjx.numpy as jnp
jax.config.update("jax_num_cpu_devices", 3)
a, b, c = jax.devices()
f = jax.jit(lambda x, y: x * 2 + y)
on_b = jax.device_put(np.ones(3, "f4"), b)
for _ in range(3):
    assert f(on_b, 1.0).devices() == {b}
    assert f(np.ones(3, "f4"), 1.0).devices() == {a}
    assert (on_b + 1).devices() == {b}
    with jax.default_device(c):
        assert f(np.ones(3, "f4"), 1.0).devices() == {c}
        assert jnp.ones(3).devices() == {c}
        assert (jnp.ones(3) * 2).devices() == {c}
        assert f(on_b, 1.0).devices() == {b}
    assert jnp.ones(3).devices() == {a}
with warnings.catch_warnings(action="ignore"):  # of a deprecation
    assert jax.jit(lambda x: x + 1, device=c)(1.0).devices() == {c}
constant = jax.device_put(np.ones(100, "f4"), b)
g = jax.jit(lambda x: constant.sum() + x)
for _ in range(2):
    assert g(1.0).devices() == {a}  # constants are moved to where the program runs
    assert g(jax.device_put(1.0, c)).devices() == {c}
uncommitted_on_c = None
with jax.default_device(c):
    uncommitted_on_c = jnp.ones(3)
for _ in range(2):
    assert f(uncommitted_on_c, on_b).devices() == {b}
on_a = jax.device_put(np.ones(3, "f4"), a)
for _ in range(2):
    try:
        f(on_a, on_b)
    except ValueError as error:
        assert "incompatible devices" in str(error), error
    else:
        raise AssertionError
compiled = f.lower(on_b, 1.0).compile()
print("done")
"""))


TOO_LARGE = """
import numpy as np, pyjx as jax, pyjx.numpy as jnp
from pyjx import lax
struct = jax.ShapeDtypeStruct
calls = [
    lambda: jnp.broadcast_to(jnp.ones(3), (1 << 62, 3)),
    lambda: jax.jit(lambda x: x * 2).lower(struct((1 << 40, 1 << 40), "float32")).compile(),
    lambda: jax.jit(lambda x: x.sum()).lower(struct(((1 << 61) - 1,), "int8")).compile(),
    lambda: jax.jit(lambda x: x * 2).lower(struct((1 << 40, 1 << 40, 0), "int8")).compile(),
    lambda: jax.random.normal(jax.random.key(0), (1 << 40, 1 << 40)),
    lambda: jnp.zeros((1 << 62,)),
    lambda: jax.jit(lambda x: jnp.tile(x, 1 << 62))(jnp.ones(3)),
]
for call in calls:
    try:
        call()
    except RuntimeError as error:
        assert "overflow in static extent product: dimensions=[" in str(error), error
    else:
        raise AssertionError
for call in (lambda: jnp.zeros((1 << 45,)), lambda: jnp.full((1 << 45,), 2.0),
             lambda: jnp.arange(1 << 45), lambda: lax.broadcasted_iota("int32", (1 << 34, 8), 1),
             lambda: jax.jit(lambda: jnp.arange(1 << 40).sum())(),
             lambda: jax.jit(lambda: jnp.zeros((1 << 45,)))()):
    try:
        call()
    except RuntimeError as error:
        assert str(error).startswith("RESOURCE_EXHAUSTED"), error
    else:
        raise AssertionError
"""


def test_arrays_beyond_any_memory_are_errors(run_python):
    run_python(TOO_LARGE)
