"""Functions and objects beside devices, which are those of this process."""

import inspect

import numpy as np
import pytest

import pyjx as jax
from pyjx import numpy as jnp
from pyjx.experimental import colocated_python as beside

X = np.arange(3.0, dtype=np.float32)


def test_functions_take_and_give_trees_of_arrays():
    @beside.colocated_python
    def add(x, *, more):
        "Adds."
        return {"sum": x["a"] + more, "none": None}

    found = add({"a": jnp.asarray(X)}, more=jnp.asarray(X))
    assert found["none"] is None and (found["sum"] == 2 * X).all()
    assert (add.__name__, add.__doc__) == ("add", "Adds.")
    assert str(inspect.signature(add)) == "(x, *, more)"


def test_functions_are_specialized_once_for_each_thing():
    device = jax.devices()[-1]
    add_one = beside.colocated_python(lambda v: v + 1)
    x = jnp.asarray(X)
    specs = ((jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding),), {})
    for given in ({"in_specs": specs}, {"out_specs_fn": lambda v: v}, {"devices": [device]}, {}):
        assert (add_one.specialize(**given)(x) == X + 1).all()
    placed = add_one.specialize(devices=[device])
    assert (placed.specialize(out_specs_fn=lambda v: v)(x) == X + 1).all()
    with pytest.raises(ValueError, match=r"^devices already specified\n"):
        placed.specialize(devices=[device])


def test_functions_without_arguments_need_devices():
    device = jax.devices()[-1]
    zeros = beside.colocated_python(lambda: jnp.zeros(2))
    with pytest.raises(ValueError, match=r"^No devices found"):
        zeros()
    assert zeros.specialize(devices=[device])().devices() == {device}


@pytest.mark.parametrize(("make", "kind", "said"), [
    (lambda: beside.colocated_python(lambda v: v)(3), ValueError, "got <class 'int'>"),
    (lambda: beside.colocated_python(lambda v: v)(X), ValueError, "got <class 'numpy.ndarray'>"),
    (lambda: beside.colocated_python(lambda v: 3)(jnp.asarray(X)), ValueError, "input and output"),
    (lambda: beside.colocated_python(3), TypeError, "expects a function, got 3"),
    (lambda: beside.colocated_python_class(len), TypeError, "expects a class, got <built-in"),
])
def test_what_is_no_array_is_refused(make, kind, said):
    with pytest.raises(kind, match=said):
        make()


def test_objects_are_made_when_they_are_used():
    made = []

    class Counter:
        "Counts."
        kind = "counter"

        def __init__(self, start, *, step=1):
            made.append(start)
            self.n, self.step = start, step

        def add(self, x):
            self.n += self.step
            return x + self.n

        def count(self):
            return jnp.array(self.n)

        @staticmethod
        def same(x):
            return x

        def _hidden(self):
            return 0

    far = beside.colocated_python_class(Counter)
    assert (far.__name__, far.__doc__, far.__module__) == ("Counter", "Counts.", __name__)
    assert str(inspect.signature(far)) == "(start, *, step=1)"

    class Derived(far):
        pass

    for kind in (far, Derived):
        made.clear()
        x, counter = jnp.asarray(X), kind(5, step=2)
        assert not made and not isinstance(counter, Counter)
        assert (counter.add(x) == X + 7).all() and (counter.add(x) == X + 9).all()
        assert made == [5] and (counter.same(x) == X).all()
        for name in ("n", "kind", "_hidden"):
            assert not hasattr(counter, name)
        with pytest.raises(ValueError, match="No devices found"):
            counter.count()
        assert counter.count.specialize(devices=jax.devices()[:1])() == 9


def test_what_hosts_keep():
    from pyjx.experimental.colocated_python import func_backend, obj_backend

    results, objects = func_backend.SINGLETON_RESULT_STORE, obj_backend.SINGLETON_OBJECT_STORE
    results.push(-1, [1])
    with pytest.raises(ValueError, match="uid -1 already exists"):
        results.push(-1, [2])
    assert results.pop(-1) == [1]
    with pytest.raises(ValueError, match="uid -1 does not exist"):
        results.pop(-1)
    assert objects.get_or_create(-1, list) is objects.get_or_create(-1, list)
