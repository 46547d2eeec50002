"""Names and places of operations: in the text, in what is compiled, and not in cache keys."""

import re

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import configuration, jaxlib_api, lax
from pyjx.experimental import pallas as pl
from pyjx.runtime.lower import lower_closed

v = np.arange(4, dtype=np.float32)


def program_of(f, *args):
    return lower_closed(jax.make_jaxpr(f)(*args), "model")


def layer(a):
    return jnp.sin(a) * 2


def double(x_ref, out_ref):
    out_ref[...] = x_ref[...] * 2.0


@pytest.mark.parametrize(("f", "shape"), [
    (lambda x: pl.pallas_call(double, x, grid=4, interpret=True)(x), (8,)),
    (lambda x: lax.linalg.cholesky_update(x, x[0]), (3, 3)),
    (jax.grad(lambda x: jnp.sum(lax.linalg.lu(x)[0])), (5, 5))])
def test_programs_that_stand_for_operations_have_no_place_of_who_asks(f, shape):
    traced = jax.jit(f).trace(jax.ShapeDtypeStruct(shape, "float32"))

    def asked():
        return traced.cost(), traced.lower().as_text(debug_info=True)

    costs, text = asked()
    assert "asked" not in text
    line = f"{__file__}:{asked.__code__.co_firstlineno + 1}"
    assert not {line, "?"} & {row.name for row in costs.by_line}


def test_names_and_frames():
    def model(a):
        with jax.named_scope("block"):
            return layer(a) + jnp.sort(a)

    program = program_of(model, v)
    text = program.located_text(frames=10)
    jaxlib_api.parse_module(text)
    assert 'loc("jit(model)/block/sin"' in text
    assert re.search(r'loc\("layer"\(".*test_locations\.py":\d+:\d+\)\)', text)
    assert "callsite" in text
    assert text == program_of(model, v).located_text(frames=10)
    shallow = program.located_text(frames=1)
    jaxlib_api.parse_module(shallow)
    assert "callsite" not in shallow
    assert "loc(" not in program.text


@pytest.mark.parametrize("f", [
    jax.nn.softmax, jax.checkpoint(jnp.sin), jax.jit(jnp.sin, inline=True),
    lambda x: lax.reduce(x, np.float32(0.0), lambda a, b: jnp.sin(a) + b, (0,)),
    lambda x: lax.scan(lambda c, _: (jnp.sin(c), None), x, None, length=3, unroll=2)[0],
    lambda x: lax.scan(lambda c, _: (jnp.sin(c), None), x, None, length=3, unroll=True)[0],
    lambda x: lax.platform_dependent(x, cpu=jnp.sin, default=jnp.cos),
    jax.shard_map(jnp.sin, mesh=jax.make_mesh((1,), ("i",)), in_specs=jax.P(), out_specs=jax.P())])
def test_all_that_an_operation_holds_is_named_after_its_scope(f):
    def model(x):
        with jax.named_scope("block"):
            return f(x)

    named = re.findall(r'loc\("(jit\(model\)/[^"]*)"', program_of(model, v).located_text(frames=1))
    assert named and all(name.startswith("jit(model)/block/") for name in named)


def loop(a):
    return jax.lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * 2), (0, a))[1]


@pytest.mark.parametrize("nested", [lambda f: f, jax.vmap])
def test_conditions_of_mapped_loops_have_names_of_their_own(nested):
    def counted(x):
        with jax.named_scope("test"):
            holds = lambda c: c < 3  # noqa: E731
        return jax.lax.while_loop(jax.named_scope("test")(holds), jax.named_scope("step")(
            lambda c: c + 1), x)

    mapped = nested(jax.vmap(counted))
    text = program_of(mapped, np.ones((2,) * (1 + (nested is jax.vmap)))).located_text(frames=1)
    found = set(re.findall(r"while/(\w+/(?:test|step))/", text))
    assert found == {"cond/test", "body_pred/test", "body/step"}


@pytest.mark.parametrize("f", [
    jnp.cumsum, jnp.sort, jnp.argmax, jnp.sum, loop,
    lambda a: jax.lax.igamma(a + 1, a),
    lambda a: jax.lax.reduce(a, 0.0, lambda p, q: p * 2 + q, (0,)),
    lambda a: jax.vmap(jnp.sort)(jnp.stack([a, a])),
    jax.grad(lambda a: jnp.sort(a)[1] + jnp.cumsum(a).sum()),
])
def test_locations_of_operations_with_regions(f):
    """The location of an operation with a region stands behind the region."""
    program = program_of(f, v)
    located = jaxlib_api.parse_module(program.located_text(frames=5))
    assert str(located) == str(jaxlib_api.parse_module(program.text))


def test_arguments_and_results_have_the_users_names():
    def model(unused, x, *rest, **options):
        print_ordered(x["a"])
        return {"out": (x["a"] + rest[1] + constant, options["bias"])}

    def print_ordered(a):
        jax.debug.print("{}", a, ordered=True)

    constant = jnp.arange(40.0)
    lowered = jax.jit(model, donate_argnums=1).lower(
        1.0, {"a": constant, "b": 2.0}, 3.0, 4.0, bias=constant)
    text = lowered.as_text(debug_info=True)
    main = next(line for line in text.split("\n") if "@main" in line)
    assert re.findall(r'loc\("([^"]*)"\)', main) == ["x['a']", "rest[1]", "options['bias']"]
    assert re.findall(r'jax.result_info = "([^"]*)"', main) == [
        "result['out'][0]", "result['out'][1]"]
    assert "jax.result_info" in str(lowered.compiler_ir())
    main = next(line for line in lowered.as_text().split("\n") if "@main" in line)
    assert re.findall(r'jax.result_info = "([^"]*)"', main) == [
        "result['out'][0]", "result['out'][1]"]
    assert "loc(" not in main
    jax.block_until_ready(lowered.compile()(
        1.0, {"a": jnp.arange(40.0), "b": 2.0}, 3.0, 4.0, bias=constant))


def test_operations_of_a_decomposition_have_the_place_of_the_operation():
    def model(a):
        return jax.lax.integer_pow(a, 3)

    text = program_of(model, v).located_text(frames=1)
    assert 'loc("jit(model)/integer_pow/mul"' in text
    names = re.findall(r'loc\("([^"]+)"\("', text)
    assert names
    assert all(name.endswith("model") for name in names)


def test_compiled_programs_name_the_users_line():
    def model(a):
        with jax.named_scope("outer"):
            return jax.jit(layer)(a) @ a

    hlo = jax.jit(model).lower(v).compile().as_text()
    assert 'op_name="jit(model)/outer/dot_general"' in hlo
    assert re.search(r'op_name="jit\(model\)/outer/jit\(layer\)/[^"]*sin"', hlo)
    assert "test_locations.py" in hlo
    assert 'source_file="-"' not in hlo


def test_names_in_functions_and_loops_are_put_together_once():
    def model(a):
        with jax.named_scope("outer"):
            return scoped(loop(a))

    @jax.jit
    def scoped(a):
        with jax.named_scope("inner"):
            return jnp.sin(a)

    for outer, f in (("outer", model), ("jvp(outer)", lambda a: jax.jvp(model, (a,), (a,)))):
        text = program_of(f, v).located_text(1)
        assert f'loc("jit(model)/{outer}/while/body/mul"' in text
        assert 'loc("inner/sin"' in text
        assert "outer/outer" not in text
    hlo = jax.jit(jax.grad(lambda a: scoped(a * 2).sum())).lower(v).compile().as_text()
    assert "inner/inner" not in hlo
    hlo = jax.jit(model).lower(v).compile().as_text()
    assert 'op_name="jit(model)/outer/jit(scoped)/inner/sin"' in hlo


def test_functions_with_rules_of_their_own_keep_their_lines():
    @jax.custom_jvp
    def squared(a):
        with jax.named_scope("inner"):
            return a * a

    squared.defjvps(lambda t, out, a: 2 * a * t)

    def model(a):
        with jax.named_scope("outer"):
            return squared(a)

    text = program_of(model, v).located_text(1)
    alias = re.search(r'loc\("jit\(model\)/outer/inner/mul"\((#loc\d+)\)\)', text).group(1)
    assert re.search(rf'{alias} = loc\(".*squared"\(', text)


def test_rules_of_functions_that_are_called_keep_their_lines():
    """The backward pass is traced when none of their frames are there."""
    @jax.custom_vjp
    def halved(a):
        return a / 2

    halved.defvjp(lambda a: (a / 2, None), lambda _, g: (jnp.tanh(g),))
    part = jax.jit(halved)
    text = program_of(jax.grad(lambda a: jnp.sum(part(a) + part(part(a)))), v).located_text(1)
    place = re.search(r'loc\("tanh"\((#loc\d+)\)\)', text)[1]
    assert re.search(rf'{place} = loc\(".*lambda>"\(', text)


def test_frames_of_a_call_are_not_repeated():
    jitted = jax.jit(layer)
    program_of(jitted, v)  # where it was traced first does not matter

    def model(a):
        return jitted(a)

    text = program_of(model, v).located_text(frames=10)
    assert re.search(r'#loc\d+ = loc\("sin"\((#loc\d+)\)\)', text)
    place = re.search(r'loc\("sin"\((#loc\d+)\)\)', text).group(1)
    assert f'{place} = loc("layer"(' in text


def model_in(folder, lines):
    path = folder / "model.py"
    path.write_text("\n" * lines + "def model(a):\n    return (a * 3 - 1) / 7\n")
    names = {"__name__": "model"}
    exec(compile(path.read_text(), str(path), "exec"), names)
    return names["model"]


@pytest.fixture
def cache_folder(tmp_path):
    old = configuration.cache_dir.value
    configuration.cache_dir.update(str(tmp_path / "cache"))
    yield tmp_path / "cache"
    configuration.cache_dir.update(old)


def test_a_moved_file_finds_its_program_in_the_cache(cache_folder, tmp_path):
    texts = []
    for i, name in enumerate(("first", "second")):
        folder = tmp_path / name
        folder.mkdir()
        lowered = jax.jit(model_in(folder, i)).lower(v)
        lowered.compile()
        texts.append(lowered.as_text(debug_info=True))
    assert len(list(cache_folder.glob("*.xla"))) == 1
    assert f'first/model.py":{2}:' in texts[0]
    assert f'second/model.py":{3}:' in texts[1]
    with configuration.compilation_cache_include_metadata_in_key(True):
        jax.jit(model_in(folder, 5)).lower(v).compile()
    assert len(list(cache_folder.glob("*.xla"))) == 2


def op_names(f, *args):
    hlo = jax.jit(f).lower(*args).compile().as_text()
    return set(re.findall('op_name="([^"]*)"', hlo))


def test_transformations_enclose_the_names_of_what_they_transform():
    def loss(a):
        with jax.named_scope("block"):
            return (jnp.sin(a) * a).sum()

    def model(a):
        with jax.named_scope("outer"):
            value, pull_back = jax.vjp(loss, a)
        with jax.named_scope("backward"):
            return pull_back(value)[0]

    names = op_names(model, v)
    assert "jit(model)/outer/jvp(block)/sin" in names
    assert any(name.startswith("jit(model)/backward/transpose(jvp(block))/") for name in names)
    assert not any("transpose(outer" in name or "block/block" in name for name in names)
    mapped = jax.vmap(jax.grad(loss))
    assert any("vmap(transpose(jvp(block)))/" in name for name in op_names(mapped, v[None]))
    text = jax.jit(jax.grad(jax.jit(loss))).lower(v).as_text(debug_info=True)
    assert 'loc("jit(loss)/transpose(jvp(jit(loss)))"' in text
    assert text.count("transpose(jvp(") == 1  # what is inside the call has names of its own
