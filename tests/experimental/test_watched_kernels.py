"""Kernels that are watched: faults that are planted in them are found, at their lines."""

import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import pyjx as jax
from pyjx import lax
from pyjx import numpy as jnp
from pyjx.experimental import pallas as pl
from pyjx.experimental.pallas import tpu as pltpu

WATCHED = pltpu.InterpretParams(detect_races=True)
X = jnp.arange(1024.0).reshape(8, 128)
VMEM, DMA = pltpu.VMEM((8, 128), "float32"), pltpu.SemaphoreType.DMA
IN_HBM = {"in_specs": [pl.BlockSpec(memory_space=pl.ANY)]}


def call(kernel, scratch=(), **options):
    return pl.pallas_call(kernel, X, scratch_shapes=scratch, interpret=WATCHED, **options)(X)


def copied(x_ref, o_ref, buffer, sem):
    copy = pltpu.make_async_copy(x_ref, buffer, sem)
    copy.start()
    copy.wait()
    o_ref[...] = buffer[...] * 2


def pipelined(x_ref, o_ref, buffers, sems):
    """Rows two by two, of which the next ones come in while these are worked on."""
    i = pl.program_id(0)

    def rows(k):
        slot = k % 2
        return pltpu.make_async_copy(x_ref.at[pl.ds(2 * k, 2)], buffers.at[slot], sems.at[slot])

    pl.when(i == 0)(lambda: rows(0).start())
    pl.when(i < 3)(lambda: rows(i + 1).start())
    rows(i).wait()
    o_ref[...] = buffers[i % 2] * 2


def accumulated(x_ref, o_ref):
    @pl.when(pl.program_id(0) == 0)
    def _():
        o_ref[...] = jnp.zeros_like(o_ref)

    o_ref[...] += x_ref[...]


WHOLE = pl.BlockSpec((8, 128), lambda i: (0, 0))


@pytest.mark.parametrize(("kernel", "scratch", "options"), [
    (copied, [VMEM, DMA], IN_HBM),
    (pipelined, [pltpu.VMEM((2, 2, 128), "float32"), pltpu.SemaphoreType.DMA((2,))],
     {"grid": 4, "out_specs": pl.BlockSpec((2, 128), lambda i: (i, 0)), **IN_HBM}),
    (accumulated, (), {"grid": 2, "in_specs": [WHOLE], "out_specs": WHOLE})])
def test_what_is_ordered_is_left_alone(kernel, scratch, options):
    np.testing.assert_array_equal(call(kernel, scratch, **options), X * 2)


# -- planted faults: the lines that are named are those with a number behind them ------------------


def read_too_early(x_ref, o_ref, buffer, sem):
    copy = pltpu.make_async_copy(x_ref, buffer, sem)
    copy.start()  # 1
    o_ref[...] = buffer[...]  # 1
    copy.wait()


def source_overwritten(x_ref, o_ref, buffer, sem):
    buffer[...] = x_ref[...]
    copy = pltpu.make_async_copy(buffer, o_ref, sem)
    copy.start()  # 1
    buffer[...] = x_ref[...] * 3  # 1
    copy.wait()


def never_waited_for(x_ref, o_ref, buffer, sem):
    pltpu.make_async_copy(x_ref, buffer, sem).start()  # 1
    o_ref[...] = x_ref[...]
    buffer[0] = x_ref[0]  # 1


def other_semaphore(x_ref, o_ref, buffer, sems):
    first = pltpu.make_async_copy(x_ref, buffer, sems.at[0])
    second = pltpu.make_async_copy(x_ref, o_ref, sems.at[1])
    first.start()  # 1
    second.start()
    second.wait()
    o_ref[...] = buffer[...]  # 1
    first.wait()


def slot_too_soon(x_ref, o_ref, buffers, sem):
    @pl.loop(0, 3)
    def _(i):
        pltpu.make_async_copy(x_ref, buffers.at[i % 2], sem).start()  # 1
    o_ref[...] = x_ref[...]


def in_a_branch(x_ref, o_ref, buffer, sem):
    @pl.loop(0, 8)
    def _(i):
        copy = pltpu.make_async_copy(x_ref.at[i], buffer.at[i], sem)
        copy.start()  # 1
        @pl.when(i == 5)
        def _():
            o_ref[i] = buffer[i]  # 1
        copy.wait()


def uninitialized_scratch(x_ref, o_ref, buffer, sem):
    buffer[:4] = x_ref[:4]
    o_ref[...] = x_ref[...] + buffer[...]  # 1


def uninitialized_result(x_ref, o_ref, buffer, sem):
    o_ref[...] += x_ref[...]  # 1


def space_of_a_moment(x_ref, o_ref, buffer, sem):
    def body(space):
        o_ref[...] = space[...]  # 1

    pl.run_scoped(body, VMEM)  # 1


def nobody_signals(x_ref, o_ref, buffer, sem):
    o_ref[...] = x_ref[...]
    pltpu.make_async_copy(x_ref, buffer, sem).wait()  # 1


def lines_of(kernel):
    """The lines of a kernel that have a number behind them."""
    with open(kernel.__code__.co_filename, encoding="utf-8") as file:
        texts = file.read().splitlines()
    last = max(line for _, _, line in kernel.__code__.co_lines() if line)
    found = []
    for number in range(kernel.__code__.co_firstlineno, last + 8):
        if texts[number - 1].startswith("def ") and number > kernel.__code__.co_firstlineno:
            break
        if texts[number - 1].endswith("# 1"):
            found.append(number)
    return set(found)


@pytest.mark.parametrize(("kernel", "said"), [
    (read_too_early, "reads buffer .* nothing orders that and what writes it"),
    (source_overwritten, "writes buffer .* nothing orders that and what reads it"),
    (never_waited_for, "writes buffer .* nothing orders that and what writes it"),
    (other_semaphore, "reads buffer .* nothing orders that and what writes it"),
    (slot_too_soon, "writes buffers .* nothing orders that and what writes it"),
    (in_a_branch, "reads buffer .* nothing orders that and what writes it"),
    (uninitialized_scratch, "reads buffer, where nothing has been written"),
    (uninitialized_result, "reads o_ref, where nothing has been written"),
    (space_of_a_moment, "reads the space made at .*, where nothing has been written"),
    (nobody_signals, "waits for a semaphore that nobody signals so often")])
def test_faults_are_found_at_their_lines(kernel, said):
    sems = pltpu.SemaphoreType.DMA((2,)) if kernel is other_semaphore else DMA
    space = pltpu.VMEM((2, 8, 128), "float32") if kernel is slot_too_soon else VMEM
    with pytest.raises(jax.errors.JaxRuntimeError, match=said) as caught:
        jax.block_until_ready(call(kernel, [space, sems], **IN_HBM if kernel in (
            read_too_early, other_semaphore, slot_too_soon) else {}))
    named = re.findall(r"test_watched_kernels\.py:(\d+):\d+ \(" + kernel.__name__,
                       str(caught.value))
    assert set(map(int, named)) == lines_of(kernel)


def in_flight_at_the_end(x_ref, o_ref, buffer, sem):
    pltpu.make_async_copy(x_ref, o_ref, sem).start()


def test_copies_are_waited_for():
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"begun, or signalled, at .* is never"):
        jax.block_until_ready(call(in_flight_at_the_end, [VMEM, DMA]))


@pytest.mark.parametrize(("index", "said"), [
    (lambda i: pl.ds(i, 4), "beyond the ends of x_ref, 6 to 9 of 8 along axis 0, at .*test_w"),
    (lambda i: i + 3, "beyond the ends of x_ref, 9 to 9 of 8 along axis 0"),
    (lambda i: i - 7, "beyond the ends of x_ref, -1 to -1 of 8")])
def test_indices_beyond_the_ends(index, said):
    def kernel(i_ref, x_ref, o_ref):
        o_ref[...] = jnp.sum(x_ref[index(i_ref[0])]).reshape(1, 1)

    run = pl.pallas_call(kernel, jax.ShapeDtypeStruct((1, 1), "float32"),
                         interpret=pltpu.InterpretParams(detect_races=True))
    x = jnp.ones((8, 2, 2))
    with pytest.raises(jax.errors.JaxRuntimeError, match=said):
        jax.block_until_ready(run(jnp.array([6]), x))


@pytest.mark.parametrize(("arg", "out"), [(7, 0), (0, 7), (-1, 0)])
def test_blocks_beyond_the_ends(arg, out):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...]

    run = pl.pallas_call(kernel, jax.ShapeDtypeStruct((4,), "float32"), grid=2,
                         in_specs=[pl.BlockSpec((2,), lambda i: i + arg)],
                         out_specs=pl.BlockSpec((2,), lambda i: i + out),
                         interpret=pltpu.InterpretParams(detect_races=True))
    name, block = ("x_ref", arg) if arg else ("o_ref", out)
    said = rf"gets the block \({block},\) of {name}, of \(2,\) that there are"
    with pytest.raises(jax.errors.JaxRuntimeError, match=said):
        jax.block_until_ready(run(jnp.arange(4.0)))


def test_findings_may_be_printed(capfd):
    params = pltpu.InterpretParams(detect_races=True, on_race="print")
    with pltpu.force_tpu_interpret_mode(params):
        jax.block_until_ready(pl.pallas_call(read_too_early, X, scratch_shapes=[VMEM, DMA],
                                             **IN_HBM)(X))
    assert "reads buffer" in capfd.readouterr().err


def test_spaces_of_one_shape_are_told_apart():
    def kernel(x_ref, o_ref):
        def body(one, other, sem):
            copy = pltpu.make_async_copy(x_ref, one, sem)
            copy.start()
            other[...] = jnp.zeros_like(other)
            copy.wait()
            o_ref[...] = one[...] + other[...]

        pl.run_scoped(body, VMEM, VMEM, DMA)

    np.testing.assert_array_equal(call(kernel, **IN_HBM), X)


def test_each_run_is_looked_at_alone():
    run = jax.jit(lambda x: lax.fori_loop(0, 3, lambda _, x: pl.pallas_call(
        copied, X, scratch_shapes=[VMEM, DMA], interpret=WATCHED, **IN_HBM)(x), x))
    for _ in range(2):
        np.testing.assert_array_equal(run(X), X * 8)


def test_threads_may_call_one_kernel():
    run = jax.jit(lambda x: pl.pallas_call(copied, X, scratch_shapes=[VMEM, DMA],
                                           interpret=WATCHED, **IN_HBM)(x))
    with ThreadPoolExecutor(4) as pool:
        for out in pool.map(lambda k: run(X + k).block_until_ready() - 2 * k, range(12)):
            np.testing.assert_array_equal(out, X * 2)


def test_what_is_refused():
    with pytest.raises(NotImplementedError, match="a kernel is watched alone"):
        jax.vmap(lambda x: pl.pallas_call(copied, X, scratch_shapes=[VMEM, DMA],
                                          interpret=WATCHED)(x))(X[None])
