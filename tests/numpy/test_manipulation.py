"""Shapes, axes, joining, cutting, padding, differences: against NumPy."""

from __future__ import annotations

import re

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from tests.numpy.agreement import agrees, bools, complexes, floats, ints

x, t, v, i = floats(3, 4), floats(2, 3, 4), floats(4), ints(3, 4)


@pytest.mark.parametrize("name, args", [
    ("reshape", (x, (4, 3))), ("reshape", (x, (2, -1))), ("reshape", (x, -1)),
    ("reshape", (x, (4, 3), "F")), ("ravel", (x,)), ("ravel", (x, "F")),
    ("transpose", (t,)), ("transpose", (t, (1, -1, 0))), ("swapaxes", (t, 0, -1)),
    ("moveaxis", (t, 0, -1)), ("moveaxis", (t, (0, 1), (-1, 0))), ("rollaxis", (t, 2)),
    ("rollaxis", (t, 0, 3)), ("squeeze", (t[:1],)), ("squeeze", (t[:1, :, :1], (0, -1))),
    ("expand_dims", (x, 0)), ("expand_dims", (x, (0, -1))), ("atleast_1d", (np.float32(1),)),
    ("atleast_2d", (v,)), ("atleast_3d", (x,)), ("atleast_3d", (v,)),
    ("broadcast_to", (v, (3, 4))), ("broadcast_to", (x[:, :1], (3, 5))),
    ("broadcast_arrays", (x, v)), ("flip", (x,)), ("flip", (x, 1)), ("fliplr", (x,)),
    ("flipud", (x,)), ("rot90", (x,)), ("rot90", (x, 2)), ("rot90", (x, 3)), ("rot90", (x, -1)),
    ("rot90", (t, 1, (1, 2))), ("roll", (x, 1)), ("roll", (x, -2, 1)),
    ("roll", (x, (1, 2), (0, 1))), ("roll", (x, 1, (0, 1))), ("roll", (v, 7)),
    ("permute_dims", (t, (2, 0, 1))), ("matrix_transpose", (t,)),
])
def test_shapes(name, args):
    agrees(name, *args)


@pytest.mark.parametrize("name, args, kwargs", [
    ("concatenate", ([x, x],), {}), ("concatenate", ([x, i], 1), {}),
    ("concatenate", ([x, i], None), {}), ("concatenate", (t,), {}), ("concatenate", (t, 1), {}),
    ("stack", ([x, x], -1), {}), ("stack", (t, 1), {}), ("vstack", ([v, v],), {}),
    ("hstack", ([v, v],), {}), ("hstack", ([x, x],), {}), ("dstack", ([x, x],), {}),
    ("column_stack", ([v[:3], x],), {}), ("append", (x, x), {}), ("append", (x, x, 0), {}),
    ("block", ([[x, x], [x, x]],), {}), ("split", (x, 2, 1), {}), ("split", (x, [1, 3], 1), {}),
    ("split", (x, [-1]), {}), ("array_split", (x, 3, 1), {}), ("hsplit", (x, 2), {}),
    ("vsplit", (x, 3), {}), ("dsplit", (t, 2), {}), ("tile", (x, 2), {}),
    ("tile", (x, (2, 1, 3)), {}), ("repeat", (x, 2), {}), ("repeat", (x, 2, 1), {}),
    ("resize", (x, (5, 5)), {}), ("resize", (x, (2, 3)), {}), ("unstack", (t,), {}),
])
def test_joining_and_cutting(name, args, kwargs):
    agrees(name, *args, **kwargs)


def test_repeat_by_counts():
    counts = np.array([1, 0, 2])
    np.testing.assert_array_equal(jnp.repeat(x, counts, axis=0), np.repeat(x, counts, axis=0))
    got = jax.jit(lambda r: jnp.repeat(v[:3], r, total_repeat_length=5))(jnp.array([2, 0, 3]))
    np.testing.assert_array_equal(got, np.repeat(v[:3], [2, 0, 3]))
    padded = jnp.repeat(v[:3], counts, total_repeat_length=5)
    np.testing.assert_array_equal(padded, v[[0, 2, 2, 2, 2]])
    with pytest.raises(jax.errors.ConcretizationTypeError, match="total number of repeats"):
        jax.jit(lambda r: jnp.repeat(v[:3], r))(jnp.array([2, 0, 3]))


def test_roll_by_a_traced_shift():
    for shift in (3, -5):
        got = jax.jit(lambda s: jnp.roll(x, s, axis=1))(shift)
        np.testing.assert_array_equal(got, np.roll(x, shift, axis=1))


@pytest.mark.parametrize(("shift", "axis"), [
    (tuple(range(-300, 400)), 1), (np.arange(9), None), (np.int8([100, 99]), (0, 0)),
    (np.uint8([250, 251]), (0, 0)), ((1.0, 2, True), 1), ((1, 2, -3), (0, 1, 0)),
])
def test_roll_by_many_shifts(shift, axis):
    """Those along one axis are one move by their sum."""
    want = np.roll(x, list(map(int, shift)), axis)
    np.testing.assert_array_equal(jnp.roll(x, shift, axis), want)
    np.testing.assert_array_equal(jax.jit(lambda x: jnp.roll(x, shift, axis))(x), want)
    many = jnp.asarray(np.stack([shift, shift]))
    np.testing.assert_array_equal(jax.vmap(lambda s: jnp.roll(x, s, axis))(many)[1], want)
    program = str(jax.make_jaxpr(lambda s: jnp.roll(x, s, axis))(np.asarray(shift)))
    assert program.count("dynamic_slice[") == len({axis} if np.ndim(axis) == 0 else set(axis))


@pytest.mark.parametrize("mode, options", [
    ("constant", {}), ("constant", {"constant_values": (1, 2)}),
    ("constant", {"constant_values": ((1,), (2,))}), ("edge", {}), ("wrap", {}),
    ("reflect", {}), ("symmetric", {}), ("reflect", {"reflect_type": "odd"}),
    ("symmetric", {"reflect_type": "odd"}), ("linear_ramp", {"end_values": 3.0}), ("mean", {}),
    ("mean", {"stat_length": 2}), ("median", {}), ("maximum", {"stat_length": (1, 2)}),
    ("minimum", {}),
])
@pytest.mark.parametrize("widths", [1, (1, 2), ((1, 2), (0, 5))])
def test_pad(mode, options, widths):
    agrees("pad", x, widths, mode, **options)


def test_pad_with_a_function():
    got = jnp.pad(x, 1, lambda row, widths, axis, options: row.at[0].set(axis + 5))

    def fill(row, widths, axis, options):
        row[0] = axis + 5

    np.testing.assert_array_equal(got, np.pad(x, 1, fill))


@pytest.mark.parametrize("name, args, kwargs", [
    ("diff", (x,), {}), ("diff", (x,), {"axis": 0}), ("diff", (x, 2), {}),
    ("diff", (bools(3, 4),), {}), ("diff", (x,), {"prepend": 0.0, "append": x}),
    ("ediff1d", (x,), {}), ("gradient", (x,), {}), ("gradient", (x, 2.0), {"axis": 1}),
    ("gradient", (v, np.array([0.0, 1.0, 3.0, 4.0], np.float32)), {}), ("trapezoid", (x,), {}),
    ("trapezoid", (x, v), {}), ("unwrap", (x * 4,), {}), ("unwrap", (i,), {"period": 4}),
    ("interp", (x, np.arange(5.0), np.arange(5.0) ** 2), {}),
    ("interp", (x, np.arange(5.0), np.arange(5.0) ** 2), {"left": -1.0, "right": 9.0}),
    ("interp", (x, np.arange(5.0), np.arange(5.0) ** 2), {"period": 5.0}),
    ("convolve", (v, v[:3]), {}), ("convolve", (v[:3], v, "same"), {}),
    ("convolve", (v, v[:3], "valid"), {}), ("correlate", (v, v[:3], "full"), {}),
    ("correlate", (v, v[:3]), {}), ("correlate", (v, v[:3], "same"), {}),
])
def test_differences(name, args, kwargs):
    agrees(name, *args, tol=1e-4, **kwargs)


@pytest.mark.parametrize("call, error, message", [
    (lambda: jnp.reshape(x, (5, 2)), TypeError,
     r"cannot reshape array of shape \(3, 4\) \(size 12\) into shape \(5, 2\) \(size 10\)"),
    (lambda: jnp.reshape(x, (-1, -1)), TypeError, "can only specify one unknown axis size"),
    (lambda: jnp.reshape(x, (5, -1)), TypeError, "does not evenly divide 12"),
    (lambda: jnp.transpose(t, (0, 1)), TypeError, "transpose permutation isn't a permutation"),
    (lambda: jnp.matrix_transpose(v), ValueError, "x must be at least two-dimensional"),
    (lambda: jnp.moveaxis(t, (0, 1), 0), ValueError, "Inconsistent number of elements: 2 vs 1"),
    (lambda: jnp.squeeze(t, 0), ValueError, "cannot select an axis to squeeze out which has size"),
    (lambda: jnp.expand_dims(x, (0, 0)), ValueError, "repeated axis"),
    (lambda: jnp.concatenate([]), ValueError, "Need at least one array to concatenate."),
    (lambda: jnp.concatenate([1.0, 2.0]), ValueError, "Zero-dimensional arrays cannot be"),
    (lambda: jnp.concatenate([x, v]), TypeError, "different numbers of dimensions"),
    (lambda: jnp.stack([x, x[:2]]), ValueError, "All input arrays must have the same shape"),
    (lambda: jnp.stack([]), ValueError, "Need at least one array to stack."),
    (lambda: jnp.split(x, 3, 1), ValueError, "does not result in an equal division: rest is 1"),
    (lambda: jnp.broadcast_to(x, (4,)), ValueError, "Cannot broadcast to shape with fewer dim"),
    (lambda: jnp.broadcast_to(x, (2, 4)), ValueError, "Incompatible types for broadcasting"),
    (lambda: jnp.broadcast_arrays(x, v[:3]), ValueError, "Incompatible shapes for broadcasting"),
    (lambda: jnp.pad(x, -1), ValueError, "index can't contain negative values"),
    (lambda: jnp.pad(x, 1.5), TypeError, "`pad_width` must be of integral type."),
    (lambda: jnp.pad(x, 1, mode="no"), NotImplementedError, "Unimplemented padding mode 'no'"),
    (lambda: jnp.diff(x, n=-1), ValueError, "order must be non-negative but got -1"),
    (lambda: jnp.convolve(x, x), ValueError, "only support 1-dimensional inputs"),
    (lambda: jnp.repeat(x, -1), TypeError, "repeats must be nonnegative"),
    (lambda: jnp.repeat(x, 2.0), TypeError, "cannot be interpreted as an integer"),
    (lambda: jnp.tril(x, 1.0), TypeError, "cannot be interpreted as an integer"),
    (lambda: jnp.tril_indices(3, 1.5), TypeError, "cannot be interpreted as an integer"),
    (lambda: jnp.triu_indices(3, 1.0), TypeError, "cannot be interpreted as an integer"),
    (lambda: jnp.round(x, 1.5), TypeError, "cannot be interpreted as an integer"),
    (lambda: jnp.tensordot(x, x, "a"), TypeError, "tensordot axes argument must be an int, a pair"),
])
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_weak_types_stay():
    assert jnp.reshape(1.0, (1,)).weak_type
    assert jnp.stack([1.0, 2.0]).weak_type
    assert jnp.concatenate([jnp.ones(1, jnp.bfloat16), jnp.reshape(1.0, (1,))]).dtype == \
        jnp.bfloat16


def test_values_with_jax_array():
    class Wrapped:
        def __init__(self, value):
            self.value = value

        def __jax_array__(self):
            return self.value

    w = Wrapped(jnp.asarray(x))
    assert jnp.reshape(w, (4, 3)).shape == (4, 3)
    assert jnp.concatenate([w, x]).shape == (6, 4)
    assert float(jnp.sum(w)) == pytest.approx(float(x.sum()), rel=1e-5)


def test_pad_widths_of_different_shapes():
    with pytest.raises(TypeError, match="entries must be the same shape"):
        jnp.pad(jnp.ones(2), [[1], [1, 2]])


@pytest.mark.parametrize("shape", [{}, {1: 2}, {3}, "ab", "", b"", None, [1.5], iter([1])])
def test_what_is_no_shape(shape):
    for make in (jnp.broadcast_shapes, jnp.zeros):
        with pytest.raises(TypeError, match="Shapes must be 1D sequences"):
            make(shape)


def test_places_of_samples_are_no_scalar():
    with pytest.raises(ValueError, match="at least one-dimensional"):
        jnp.trapezoid(jnp.zeros(3), jnp.float32(1))


def test_diagonals_are_slices():
    for shape in ((3, 4), (4, 3), (0, 3), (3, 0), (2, 3, 4)):
        x = floats(*shape)
        for offset in range(-5, 6):
            for axes in ((0, 1), (-1, 0)):
                want = np.diagonal(x, offset, *axes)
                np.testing.assert_array_equal(jnp.diagonal(x, offset, *axes), want)
    text = str(jax.make_jaxpr(jnp.diagonal)(jnp.ones((3, 4))))
    assert "slice[" in text and "gather" not in text


def test_weak_types_end_where_elements_are_picked_or_scaled() -> None:
    weak = jnp.broadcast_to(0.5, (2, 2))
    assert not jnp.diag(weak).weak_type and not jnp.diagonal(weak).weak_type
    assert jnp.diag(weak[0]).weak_type
    assert not jnp.round(weak, 1).weak_type and jnp.round(weak).weak_type


def test_roll_by_shifts_of_other_kinds():
    x = jnp.arange(6).reshape(2, 3)
    for shift in ([[1, 2]], jnp.array([[1, 2]])):
        with pytest.raises(ValueError, match="must be scalars or 1D arrays"):
            jnp.roll(x, shift, (0, 1))
    for roll in (jnp.roll, jax.jit(jnp.roll)):  # as int(shift)
        assert roll(x, -1.5).tolist() == np.roll(x, -1).tolist()
    assert jnp.roll(x, jnp.zeros(0, int), 0).tolist() == x.tolist()


def test_numbers_of_parts_may_be_floats():
    for cut in (jnp.split, jnp.array_split, jnp.hsplit):
        for parts in (3.0, np.float32(3.5), jnp.array(3.5)):
            assert [len(part) for part in cut(np.arange(6), parts)] == [2, 2, 2]
        with pytest.raises(OverflowError, match=r"\(indices_or_sections is inf\)"):
            cut(np.arange(6), float("inf"))
        with pytest.raises(TypeError, match="indices_or_sections must be a number, got '3'"):
            cut(np.arange(6), "3")


@pytest.mark.parametrize("f", [
    lambda x: jnp.swapaxes(x, 0, 0), lambda x: jnp.moveaxis(x, (), ()), jnp.atleast_1d, jnp.stack,
    lambda x: jnp.atleast_2d(x, x)[1], lambda x: jnp.concatenate([x]), lambda x: jnp.block([x]),
    lambda x: jnp.rot90(x, 4), lambda x: jnp.expand_dims(x, ()), lambda x: jnp.diff(x, n=0),
    lambda x: jnp.linalg.matrix_power(x, 1), lambda x: jnp.roll(x, (), ()),
    lambda x: jnp.einsum("ij", x)])
def test_numpy_arrays_that_need_no_change_are_arrays_while_traced(f):
    def changed():
        x = f(np.arange(4.0).reshape(2, 2))
        assert isinstance(x, jax.Array) and x.dtype == "float32"
        return x.at[0, 0].set(5)

    assert jax.jit(changed)().tolist() == changed().tolist() == [[5, 1], [2, 3]]


def test_reshaped_numpy_arrays_are_known_while_traced():
    """Libraries check values that are known, and reshape them before."""
    @jax.jit
    def f(x):
        inside = jnp.reshape(np.array([[True, False]]), (-1,))
        assert isinstance(inside, np.ndarray) and not inside.all()
        return jnp.reshape(x, (2, 1)) * inside

    np.testing.assert_array_equal(f(np.ones(2)), [[1, 0], [1, 0]])
    assert isinstance(jnp.reshape(np.ones(2), (2, 1)), jax.Array)


@pytest.mark.parametrize("shape, order", [
    ((4,), "C"), ((4, -1), "F"), ((-1, -1), "C"), ((-2, -3), "C"), ((2, 3), "A"), ((2, 3), "X"),
])
def test_reshapes_of_numpy_arrays_are_refused_alike_while_traced(shape, order):
    def reshaped():
        return jnp.reshape(np.arange(6), shape, order)

    with pytest.raises((TypeError, ValueError, NotImplementedError)) as eager:
        reshaped()
    with pytest.raises(eager.type, match=re.escape(str(eager.value))):
        jax.jit(reshaped)()


def test_matrices_of_numpy_are_reshaped_to_arrays():
    def reshaped():
        x = jnp.reshape(np.array([[1, 2]]).view(np.matrix), (2,))
        assert isinstance(x, jax.Array) and x.shape == (2,)
        return x

    assert reshaped().tolist() == jax.jit(reshaped)().tolist() == [1, 2]


def test_what_is_no_number_is_not_reshaped():
    def reshaped():
        with pytest.raises(TypeError, match="not a valid JAX array type"):
            jnp.reshape(np.array(["a"]), (1, 1))

    jax.jit(reshaped)()


class Blocks:
    """Arrays of different shapes in one object, which says of its rank what it likes."""

    def __init__(self, *parts):
        self.parts = parts
        self.shape, self.ndim = [p.shape for p in parts], [p.ndim for p in parts]
        self.dtype = parts[0].dtype

    def __len__(self):
        return len(self.parts)

    def __getitem__(self, i):
        return self.parts[i]


def test_arrays_of_other_libraries_are_sequences_of_what_is_joined():
    parts = jnp.ones(3), jnp.arange(3.0)
    for join in (jnp.concatenate, jnp.stack, jnp.hstack, jnp.vstack, jnp.column_stack):
        np.testing.assert_array_equal(join(Blocks(*parts)), join(parts))
    with pytest.raises(TypeError):
        jnp.concatenate(np.float32(1))


@pytest.mark.parametrize("n", range(1, 7))
@pytest.mark.parametrize("m", range(1, 7))
def test_correlate_of_any_lengths(n, m):
    a, b = complexes(n), complexes(m)
    for mode in ("same", "full", "valid"):
        agrees("correlate", a, b, mode)
        agrees("convolve", a, b, mode)


@pytest.mark.parametrize(("cut", "shape"), [
    (lambda x, i: jnp.split(x, i)[0], (3, 2)), (lambda x, i: jnp.split(x, (1, i.astype(int)))[0],
                                                (1, 2)),
    (lambda x, i: jnp.array_split(x, i)[0], (3, 2)), (lambda x, i: jnp.vsplit(x, i)[0], (3, 2)),
    (lambda x, i: jnp.swapaxes(x, i.astype(int) - 1, 0), (2, 6)),
    (lambda x, i: jnp.tile(x, i.astype(int)), (6, 4)),
    (lambda x, i: jnp.extract(jnp.full(6, i), x), (6,)),
    (lambda x, i: jnp.repeat(x, i.astype(int), axis=0), (12, 2))])
def test_a_static_argument_may_be_traced_where_its_value_is_known(cut, shape):
    x = jnp.zeros((6, 2))
    assert jax.jvp(lambda i: cut(x, i), (2.0,), (1.0,))[0].shape == shape
    with pytest.raises(TypeError):  # of one kind or another
        jax.vmap(lambda i: cut(x, i))(jnp.ones(2))


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 3, 4), (2, 1, 2, 3)])
@pytest.mark.parametrize("widths", [1, (1, 2), 0])
def test_pad_with_a_function_in_any_dimensions(shape, widths):
    a = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)

    def ours(row, widths, axis, options):
        n = row.shape[0]
        return row.at[:widths[0]].set(7).at[n - widths[1]:].set(axis + row.sum())

    def theirs(row, widths, axis, options):
        total = row.sum()
        row[:widths[0]] = 7
        row[len(row) - widths[1]:] = axis + total

    np.testing.assert_array_equal(jnp.pad(a, widths, ours), np.pad(a, widths, theirs))


@pytest.mark.parametrize("call, argument", [
    (lambda k: jnp.rot90(jnp.ones((2, 2)), k), "k"), (lambda k: jnp.diff(jnp.ones(3), n=k), "n"),
    (lambda k: jnp.linalg.cond(jnp.ones((2, 2)), k), "p"),
    (lambda k: jnp.cumsum(jnp.ones((2, 2)), axis=k), "axis")])
def test_traced_parts_of_the_program_are_named(call, argument):
    with pytest.raises(TypeError) as caught:
        jax.jit(call)(1)
    assert re.search(rf"\nArgument '{argument}' of \w+ is a part of the program, and must be known "
                     "while it is traced. If the value is the same", str(caught.value))


@pytest.mark.parametrize("same", [
    lambda x: x.reshape(3, 4), lambda x: x.reshape((3, 4)), lambda x: x.reshape([3, 4]),
    lambda x: jnp.reshape(x, (3, 4)), lambda x: jnp.broadcast_to(x, (3, 4)),
    lambda x: jnp.broadcast_to(x, [3, 4]), lambda x: jnp.transpose(x, (0, 1)),
    lambda x: x.transpose(0, 1), lambda x: jnp.permute_dims(x, [0, 1]),
    lambda x: jnp.concatenate([x]), lambda x: jnp.concatenate((x,), -1), lambda x: jnp.concat([x]),
], ids=range(12))
def test_what_changes_nothing_gives_the_array_back(same):
    array = jnp.asarray(x)
    assert same(array) is array
    assert same(array.T.reshape(3, 4)).tolist() == x.T.reshape(3, 4).tolist()
    assert str(jax.make_jaxpr(same)(array)) == "{ lambda ; a:f32[3,4]. let  in (a,) }"


def test_vectors_and_scalars_that_change_nothing_are_given_back():
    vector, scalar = jnp.asarray(v), jnp.float32(2)
    for given in (vector.reshape(-1), vector.reshape(4), jnp.reshape(vector, (-1,)), vector.T,
                  jnp.reshape(vector, 4), jnp.transpose(vector), jnp.broadcast_to(vector, 4)):
        assert given is vector
    assert jnp.broadcast_to(scalar, ()) is scalar
    assert vector.reshape(-1, 1).shape == (4, 1) and scalar.reshape(-1).shape == (1,)
    assert vector.reshape(-1, order="F").tolist() == v.tolist()
    for bad in (lambda: vector.reshape(), lambda: jnp.reshape(vector, 5),
                lambda: jnp.transpose(vector, (1,)), lambda: jnp.broadcast_to(vector, ()),
                lambda: jnp.concatenate([vector], 1), lambda: jnp.concatenate([scalar]),
                lambda: jnp.transpose(vector, (0, 0)), lambda: jnp.reshape(vector)):
        with pytest.raises((TypeError, ValueError)):
            bad()


@pytest.mark.parametrize("call", [
    lambda x: jnp.reshape(x, (1009.0,)), lambda x: jnp.broadcast_to(x, (1009.0,)),
    lambda x: jnp.transpose(jnp.ones((2, 1009)), (0.0, 1.0))])
def test_what_is_there_already_is_said_in_integers(call):
    with pytest.raises(TypeError):
        call(jnp.ones(1009))


def test_taken_from_nothing_is_weak_as_the_array_is():
    taken = jnp.take_along_axis(jnp.full((3,), 2), jnp.zeros((0,), int), 0)
    assert taken.weak_type and taken.shape == (0,)


def test_arrays_that_are_not_one_sequence():
    with pytest.raises(ValueError, match=r"Zero-dim.* one sequence, as in concatenate\(\(a, b"):
        jnp.concatenate(jnp.ones(3), jnp.ones(3))
    with pytest.raises(TypeError, match=r"The arrays are one sequence, as in concatenate\(\(a, b"):
        jnp.concatenate(jnp.ones((3, 3)), jnp.ones((3, 3)))
