"""`jax_debug_nans` and `jax_debug_infs` outside jit: the report that `inspect.find` gives."""

from __future__ import annotations

import linecache
import subprocess
import sys

import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import inspect, lax
from tests.wrong.faults import FAULTS

# Where operations run one by one others are the first: what is masked later, or multiplied by 0,
# runs before the fault, and a loop whose length is known is a scan.
OTHERS = ("behind_a_mask", "in_a_batch_of_gradients", "in_a_fori_loop_of_any_length")
FLAGS = {"nan": jax.debug_nans, "inf": jax.debug_infs}
X = jnp.array([1.0, 0.0])


def report(fun, *args, what="nan"):
    with FLAGS[what](True), pytest.raises(FloatingPointError) as raised:
        fun(*args)
    return raised.value.found


def text(frame):
    return linecache.getline(frame.file_name, frame.start_line).strip()


def log_step(c, _=None):
    return c + jnp.log(c - 0.5), None  # HERE


def log_step_elsewhere(c, _=None):
    return c + jnp.log(c - 0.5), None


def masked_root(x):
    y = jnp.sqrt(x)  # HERE
    return jnp.where(x > 0, y, 0.0).sum()


def root(x):
    return jnp.sqrt(x)  # HERE


def masked_roots(x):
    ys = lax.scan(lambda c, _: (c, jnp.sqrt(c)), x, None, length=3)[1]  # HERE
    return jnp.where(ys > 0, ys, 0.0).sum()


def scanned(c):
    return lax.scan(log_step, c, None, length=4)[0]


def written(c):
    ref = jax.new_ref(c)

    def step(i, total):
        ref[...] += jnp.log(ref[...] - 0.5)  # HERE
        return total + ref[...]

    return lax.fori_loop(0, 4, step, c)


C = jnp.float32(1.1)
EAGER = {
    "scan": (scanned, C),
    "while_loop": (lambda c: lax.while_loop(lambda c: c < 9, lambda c: log_step(c)[0], c), C),
    "fori_loop": (lambda c: lax.fori_loop(0, 4, lambda i, c: log_step(c)[0], c), C),
    "map": (lambda x: lax.map(lambda c: log_step(c)[0], x), X),
    "cond": (lambda c: lax.cond(c > 0, lambda c: log_step(c - 1)[0], lambda c: c, c), C),
    "switch": (lambda c: lax.switch(1, [lambda c: c, lambda c: log_step(c - 1)[0]], c), C),
    "reference": (written, C),
    "vmap of scan": (jax.vmap(scanned), X),
    "grad of scan": (jax.grad(scanned), C),
    "jvp of scan": (lambda c: jax.jvp(scanned, (c,), (c,)), C),
    "backward scan": (jax.grad(masked_roots), X),
    "grad": (jax.grad(masked_root), X),
    "grad of jit": (jax.grad(jax.jit(masked_root)), X),
    "vjp": (lambda x: jax.vjp(masked_root, x)[1](1.0), X),
    "jvp": (lambda x: jax.jvp(root, (x,), (0 * x,)), X),
    "linearize": (lambda x: jax.linearize(root, x)[1](0 * x), X),
    "checkpoint": (jax.grad(jax.checkpoint(masked_root)), X),
    "vmap of grad": (jax.vmap(jax.grad(masked_root)), X[:, None]),
    "grad of vmap": (jax.grad(lambda x: jax.vmap(masked_root)(x[:, None]).sum()), X),
}


@pytest.mark.parametrize("name", EAGER)
def test_flags_give_the_report_of_find(name):
    lax.scan(log_step_elsewhere, 2.0, None, length=4)  # the same program of another line
    fun, x = EAGER[name]
    found, meant = report(fun, x), inspect.find(fun, x)
    assert text(found.line).endswith("# HERE"), str(found)
    assert found.steps == meant.steps and str(found) == str(meant._replace(notes=()))


@pytest.mark.parametrize("name", [n for n, f in FAULTS.items() if (
    n not in OTHERS and f.what in FLAGS)])
def test_flags_find_planted_faults_outside_jit(name):
    fun, args, operation, what, steps = FAULTS[name]
    found = report(fun, *args, what=what)
    assert (found.operation, text(found.line).endswith("# HERE")) == (operation, True), str(found)
    assert tuple([step.text for step in found.steps]) == steps


def test_a_program_of_equal_contents_has_its_own_lines():
    for step, loop in (log_step_elsewhere, 0), (log_step, 1), (log_step_elsewhere, 2):
        found = report(lambda c, step=step: lax.scan(step, c, None, length=4), C)
        assert text(found.line).endswith("# HERE") == (loop == 1)


@pytest.mark.parametrize(("fun", "transform"), [
    (jnp.linalg.inv, lambda f: f), (jnp.linalg.inv, jax.vmap), (jnp.linalg.inv, jax.grad),
    (jnp.std, jax.grad), (jnp.corrcoef, jax.grad), (jnp.corrcoef, jax.vmap)])
def test_functions_of_the_library_have_the_line_of_the_call(fun, transform):
    def first(x):
        return fun(x).sum()

    def second(x):
        return fun(x).sum()  # HERE

    x = jnp.array([[[1.0, 2.0], [4.0, 3.0]]])
    x = x if transform is jax.vmap else x[0]
    with jax.debug_nans(True):
        transform(first)(x)
    assert text(report(transform(second), 0 * x).line).endswith("# HERE")


def test_what_was_recorded_before_the_flag_has_no_line():
    pullback, push = jax.vjp(masked_root, X)[1], jax.linearize(masked_root, X)[1]
    backward = report(pullback, 1.0)
    assert (backward.line, backward.transformation) == (None, "the transpose")
    assert "mul makes the first nan, at an unknown line" in str(backward)
    assert report(push, 0 * X).line is None


def test_why_names_the_line_in_the_body(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("import jax, jax.numpy as jnp\n"
                    "def body(c, _):\n"
                    "    return c + jnp.log(c - 0.5), None\n"
                    "jax.lax.scan(body, jnp.float32(1.1), None, length=4)\n")
    out = subprocess.run([sys.executable, "-m", "pyjx", "why", "train.py"], cwd=tmp_path,
                         capture_output=True, text=True, timeout=120, check=False)
    assert "log makes the first nan, at train.py:3 (body)" in out.stderr
    assert "in iteration 2 of scan at train.py:4 (<module>)" in out.stderr
