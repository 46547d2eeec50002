"""inspect_array_sharding, and pictures of shardings."""

import sys

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.debug import shardings


class Parts:
    """As a sharding over a grid of devices; several may hold the same part."""

    def __init__(self, *cuts, copies=1):
        self.cuts, self.copies = cuts, copies

    def devices_indices_map(self, shape):
        sizes = [n // c for n, c in zip(shape, self.cuts, strict=True)]
        parts = [tuple(slice(i * s, (i + 1) * s) for i, s in zip(index, sizes, strict=True))
                 for index in np.ndindex(*self.cuts)]
        held = [p for p in parts for _ in range(self.copies)]
        return dict(zip(map(Device, range(len(held))), held, strict=True))


class Device:
    platform = "cpu"

    def __init__(self, number):
        self.id = number


def drawn(shape, sharding, scale=1.0, min_width=9, max_width=80):
    labels = shardings.part_labels(shape, sharding)
    lines = shardings.picture(shape, labels, scale, min_width, max_width)
    return ["".join([text for text, _ in line]) for line in lines]


def test_four_parts():
    assert drawn((4, 8), Parts(2, 2)) == [
        "┌───────────────────────┬───────────────────────┐",
        "│                       │                       │",
        "│         CPU 0         │         CPU 1         │",
        "│                       │                       │",
        "│                       │                       │",
        "├───────────────────────┼───────────────────────┤",
        "│                       │                       │",
        "│         CPU 2         │         CPU 3         │",
        "│                       │                       │",
        "│                       │                       │",
        "└───────────────────────┴───────────────────────┘",
    ]


def test_parts_that_several_devices_hold():
    lines = drawn((4, 8), Parts(2, 1, copies=2))
    assert lines[2] == "│                    CPU 0,1                     │"
    assert lines[7] == "│                    CPU 2,3                     │"


def test_labels_fill_narrow_parts_and_lines_are_whole_before_they_are_columns():
    assert drawn((8,), Parts(1, copies=8))[1] == "│CPU 0,1,2,3,4,5,6,7│"
    assert drawn((8,), Parts(2, copies=2))[1] == "│CPU 0,1│CPU 2,3│"
    assert drawn((24, 16), Parts(8, 1))[1] == "│    CPU 0    │"


def test_one_axis_and_narrow_parts():
    assert drawn((8,), Parts(4)) == ["┌───────┬───────┬───────┬───────┐",
                                     "│ CPU 0 │ CPU 1 │ CPU 2 │ CPU 3 │",
                                     "└───────┴───────┴───────┴───────┘"]
    assert drawn((100, 4), Parts(2, 2))[0] == "┌───────┬───────┐"
    assert len(drawn((4, 100), Parts(2, 1), 2.0, 3, 40)) == 21
    assert len(drawn((4, 100), Parts(2, 1), 2.0, 3, 40)[0]) == 40


@pytest.fixture
def seen():
    found = []
    yield found
    found.clear()


def look(x, seen):
    jax.debug.inspect_array_sharding(x, callback=seen.append)
    return x * 2


def test_shardings_inside_programs(seen):
    x = jnp.ones(3)
    look(x, seen)
    assert seen == [x.sharding]
    f = jax.jit(lambda x: look(x, seen))
    f(x)
    f(x)
    assert seen == [x.sharding] * 2  # once for each compilation
    f(x[:2])
    assert len(seen) == 3


@pytest.mark.parametrize("transform", [
    jax.vmap, lambda f: jax.grad(lambda x: f(x).sum()), jax.jit,
    lambda f: lambda x: lax.scan(lambda c, a: (c, f(a)), 0.0, x)[1],
    lambda f: jax.checkpoint(f), lambda f: lambda x: jax.jvp(f, (x,), (x,)),
    lambda f: jax.jit(jax.vmap(jax.grad(f))),
])
def test_under_transformations(transform, seen):
    transform(lambda x: look(x, seen))(jnp.ones(3))
    assert len(seen) >= 1 and all(s.num_devices == 1 for s in seen)


def test_a_function_that_is_none():
    with pytest.raises(TypeError, match="callback must be a function of a sharding, got 3"):
        jax.debug.inspect_array_sharding(jnp.ones(3), callback=3)


def test_without_rich(monkeypatch):
    for name in ("rich", "rich.console", "rich.text"):
        monkeypatch.setitem(sys.modules, name, None)
    for call in (lambda: jax.debug.visualize_array_sharding(jnp.ones(3)),
                 lambda: jax.debug.visualize_sharding((3,), jnp.ones(3).sharding)):
        with pytest.raises(ValueError) as caught:
            call()
        assert str(caught.value) == ("`visualize_sharding` requires `rich` to be installed: pip "
                                     "install rich.")


@pytest.mark.parametrize("shape", [(), (2, 2, 2)])
def test_other_ranks(shape):
    with pytest.raises(ValueError) as caught:
        jax.debug.visualize_array_sharding(jnp.ones(shape))
    assert str(caught.value) == ("`visualize_sharding` only works for shapes with 1 and 2 "
                                 f"dimensions, got the shape {shape}.")


def test_printed(capsys):
    pytest.importorskip("rich")
    jax.debug.visualize_array_sharding(jnp.ones(4), use_color=False)
    jax.jit(lambda x: jax.debug.visualize_array_sharding(x))(jnp.ones(4))
    picture = "┌───────┐\n│ CPU 0 │\n└───────┘\n"
    assert capsys.readouterr().out == 2 * picture


def test_colors():
    assert shardings._style((1.0, 1.0, 1.0)) == "black on #ffffff"
    assert shardings._style((0.0, 0.0, 0.2, 1.0)) == "white on #000033"
