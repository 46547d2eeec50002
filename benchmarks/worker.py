"""One measurement in a process of its own: `worker.py CASE [JSON arguments]`, figures as JSON.

The library is the one that `BENCHMARK_LIBRARY` names. Nothing but `importlib`, `os`, `sys` and
`time` is imported before it, so that the case `import` sees the whole cost.
"""

import importlib
import os
import sys
import time

LIBRARY = os.environ.get("BENCHMARK_LIBRARY", "pyjx")


def seconds(action):
    start = time.perf_counter()
    result = action()
    return result, time.perf_counter() - start


def measure_import():
    def load():
        importlib.import_module(LIBRARY)
        importlib.import_module(f"{LIBRARY}.numpy")

    _, elapsed = seconds(load)
    heavy = {"scipy", "jaxlib.mlir"} | {"jax"} - {LIBRARY}
    return {"import": elapsed, "heavy_modules": sorted(heavy & sys.modules.keys())}


def microseconds_per_call(call, batches=21, batch_seconds=0.01):
    """The least over batches of the mean time of a call: what others run only adds to it. The last
    call of each batch is waited for."""
    from models import jax

    for _ in range(20):
        result = call()
    jax.block_until_ready(result)
    _, once = seconds(lambda: [call() for _ in range(10)])
    count = max(1, int(10 * batch_seconds / once))
    means = []
    for _ in range(batches):
        start = time.perf_counter()
        for _ in range(count):
            result = call()
        jax.block_until_ready(result)
        means.append((time.perf_counter() - start) / count)
    return 1e6 * min(means)


def microseconds_of_long_call(call, times=5):
    """The least over a few calls, each of which is waited for."""
    from models import jax

    jax.block_until_ready(call())
    return 1e6 * min([seconds(lambda: jax.block_until_ready(call()))[1] for _ in range(times)])


def median(values):
    values = sorted(values)
    middle = len(values) // 2
    return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2


def measure_eager():
    import itertools

    import numpy as np
    from models import jax, jnp

    a = jnp.asarray(np.arange(1024, dtype=np.float32).reshape(32, 32))
    b = jnp.asarray(np.arange(32, dtype=np.float32))
    mask = b > 3
    key = jax.random.key(0)
    host = np.arange(32, dtype=np.float32)
    index = itertools.cycle(range(32)).__next__
    calls = {
        "b + b": lambda: b + b,
        "b * 2.0": lambda: b * 2.0,
        "where": lambda: jnp.where(mask, b, b),
        "exp": lambda: jnp.exp(b),
        "sum": lambda: jnp.sum(b),
        "matmul": lambda: a @ a,
        "a[0]": lambda: a[0],
        "a[1:3]": lambda: a[1:3],
        "a[:, i]": lambda: a[:, index()],
        ".at[0].set": lambda: b.at[0].set(1.0),
        "zeros": lambda: jnp.zeros((32, 32)),
        "array (list)": lambda: jnp.array([1.0, 2.0, 3.0]),
        "array (numpy)": lambda: jnp.array(host),
        "float(b[0])": lambda: float(b[0]),
        "random.split": lambda: jax.random.split(key),
        "reshape": lambda: a.reshape(16, 64),
        "concatenate": lambda: jnp.concatenate([b, b]),
    }
    return {name: microseconds_per_call(call) for name, call in calls.items()}


def measure_numpy60():
    """The functions of numpy that most public libraries use, each called on small arrays."""
    import numpy as np
    from models import jax, jnp

    a = jnp.asarray(np.linspace(0.1, 0.9, 1024, dtype=np.float32).reshape(32, 32))
    b = jnp.asarray(np.linspace(0.1, 0.9, 32, dtype=np.float32))
    i = jnp.asarray(np.arange(32, dtype=np.int32))
    mask, column, host = b > 0.5, b[:, None], np.arange(32, dtype=np.float32)
    jax.block_until_ready((a, b, i, mask, column))
    calls = {
        "array": lambda: jnp.array(host), "arange": lambda: jnp.arange(32),
        "ones": lambda: jnp.ones((32, 32)), "zeros": lambda: jnp.zeros((32, 32)),
        "concatenate": lambda: jnp.concatenate([b, b]), "where": lambda: jnp.where(mask, b, 0.0),
        "sum": lambda: jnp.sum(a, axis=1), "asarray": lambda: jnp.asarray(host),
        "stack": lambda: jnp.stack([b, b]), "sqrt": lambda: jnp.sqrt(b),
        "mean": lambda: jnp.mean(a, axis=0), "zeros_like": lambda: jnp.zeros_like(a),
        "exp": lambda: jnp.exp(b), "max": lambda: jnp.max(a), "ones_like": lambda: jnp.ones_like(a),
        ".at[].set": lambda: b.at[0].set(1.0), "expand_dims": lambda: jnp.expand_dims(b, 0),
        "maximum": lambda: jnp.maximum(b, 0.5), "abs": lambda: jnp.abs(b),
        "minimum": lambda: jnp.minimum(b, b), "cos": lambda: jnp.cos(b),
        "reshape": lambda: jnp.reshape(a, (16, 64)), "log": lambda: jnp.log(b),
        "clip": lambda: jnp.clip(b, 0.2, 0.8), "sin": lambda: jnp.sin(b),
        "broadcast_to": lambda: jnp.broadcast_to(b, (32, 32)),
        "full": lambda: jnp.full((32, 32), 2.0), "squeeze": lambda: jnp.squeeze(column),
        "repeat": lambda: jnp.repeat(b, 2), "argmax": lambda: jnp.argmax(a, axis=-1),
        "square": lambda: jnp.square(b), "all": lambda: jnp.all(mask),
        "dot": lambda: jnp.dot(a, b), "pad": lambda: jnp.pad(b, (1, 1)),
        "split": lambda: jnp.split(b, 2), "eye": lambda: jnp.eye(8), "min": lambda: jnp.min(a),
        "einsum": lambda: jnp.einsum("ij,j->i", a, b),
        "logical_and": lambda: jnp.logical_and(mask, mask),
        "transpose": lambda: jnp.transpose(a), "tile": lambda: jnp.tile(b, 2),
        "linalg.norm": lambda: jnp.linalg.norm(b), ".at[].add": lambda: b.at[i].add(1.0),
        "linspace": lambda: jnp.linspace(0.0, 1.0, 8), "argsort": lambda: jnp.argsort(b),
        "take": lambda: jnp.take(a, i, axis=0), "swapaxes": lambda: jnp.swapaxes(a, 0, 1),
        "matmul": lambda: jnp.matmul(a, a), "power": lambda: jnp.power(b, 2.5),
        "diag": lambda: jnp.diag(a), "cumsum": lambda: jnp.cumsum(b),
        "isnan": lambda: jnp.isnan(b), "any": lambda: jnp.any(mask), "tanh": lambda: jnp.tanh(b),
        "roll": lambda: jnp.roll(b, 1), "allclose": lambda: jnp.allclose(b, b),
        "isfinite": lambda: jnp.isfinite(b), "moveaxis": lambda: jnp.moveaxis(a, 0, 1),
        "sign": lambda: jnp.sign(b), "take_along_axis": lambda: jnp.take_along_axis(b, i, 0),
    }  # fmt: skip
    assert len(calls) == 60
    return {name: microseconds_per_call(call) for name, call in calls.items()}


def measure_fifty():
    """Fifty operations that no process has run yet, from the first to the last result."""
    import numpy as np
    from models import jax, jnp

    a = jnp.asarray(np.linspace(0.1, 0.9, 1024, dtype=np.float32).reshape(32, 32))
    b = jnp.asarray(np.linspace(0.1, 0.9, 32, dtype=np.float32))
    i = jnp.asarray(np.arange(32, dtype=np.int32))
    jax.block_until_ready((a, b, i))
    operations = [
        *(lambda f=f: f(a) for f in (
            *(jnp.exp, jnp.log, jnp.sin, jnp.tanh, jnp.sqrt, jnp.abs, jnp.negative, jnp.floor),
            *(jnp.square, jnp.isnan, jnp.sum, jnp.mean, jnp.max, jnp.argmax, jnp.cumsum, jnp.sort),
            *(jnp.argsort, jnp.transpose, jnp.ravel, jnp.any, jnp.std, jnp.log1p, jnp.cos),
            *(jax.nn.relu, jax.nn.softmax, jax.nn.gelu, jax.nn.sigmoid),
        )),
        *(lambda f=f: f(a, b) for f in (
            *(jnp.add, jnp.subtract, jnp.multiply, jnp.divide, jnp.maximum, jnp.power, jnp.less),
            *(jnp.equal, jnp.matmul, jnp.arctan2, jnp.logaddexp, jnp.broadcast_arrays),
        )),
        lambda: a[0], lambda: a[1:3], lambda: a[i], lambda: a.at[0].set(1.0), lambda: i % 3,
        lambda: i + 1, lambda: a.astype(jnp.bfloat16), lambda: jnp.where(a > 0.5, a, 0.0),
        lambda: jnp.concatenate([a, a]), lambda: jnp.stack([b, b]), lambda: a.reshape(16, 64),
    ]  # fmt: skip

    assert len(operations) == 50
    return {"all": seconds(lambda: [jax.block_until_ready(f()) for f in operations])[1]}


def measure_iteration():
    """Microseconds an element, over the rows and over the numbers of an array."""
    import numpy as np
    from models import jax, jnp

    def per_element(x):
        jax.block_until_ready(list(x))
        return 1e6 * min(seconds(lambda: jax.block_until_ready(list(x)))[1]
                         for _ in range(7)) / len(x)

    return {
        "vector of 1000": per_element(jnp.asarray(np.arange(1000, dtype=np.float32))),
        "matrix of 1000 rows": per_element(jnp.asarray(np.ones((1000, 32), np.float32))),
        "integers": per_element(jnp.asarray(np.arange(1000, dtype=np.int32))),
    }


def measure_transforms():
    import numpy as np
    from models import jax, jnp

    x = jnp.asarray(np.linspace(0, 1, 32, dtype=np.float32))

    def three_ops(x):
        return jnp.sum(jnp.sin(x) * x)

    def three_ops_each(x):
        return jnp.sin(x) * x + 1.0

    jitted = jax.jit(three_ops)
    return {
        "grad(f)(x)": microseconds_per_call(lambda: jax.grad(three_ops)(x)),
        "grad(jit(f))(x)": microseconds_per_call(lambda: jax.grad(jitted)(x)),
        "vmap(f)(x)": microseconds_per_call(lambda: jax.vmap(three_ops_each)(x)),
    }


def measure_jit():
    import numpy as np
    from models import jax, jnp

    host = np.linspace(0, 1, 32, dtype=np.float32)
    x = jnp.asarray(host)
    leaves = {f"layer{i}": {"w": x + i, "b": x - i} for i in range(50)}
    one = jax.jit(lambda x: x + 1.0)
    tree = jax.jit(lambda tree: jax.tree.map(lambda x: x + 1.0, tree))
    static = jax.jit(lambda x, n: x + n, static_argnums=1)
    two = jax.jit(lambda x, y: x + y)
    return {
        "one array": microseconds_per_call(lambda: one(x)),
        "100 leaves": microseconds_per_call(lambda: tree(leaves)),
        "static argument": microseconds_per_call(lambda: static(x, 3)),
        "numpy arguments": microseconds_per_call(lambda: two(host, host)),
    }


def measure_callbacks():
    """Calls of Python functions, from programs and without; all of each batch are waited for."""
    import numpy as np
    from models import LIBRARY, jax, jnp

    io_callback = importlib.import_module(f"{LIBRARY}.experimental").io_callback
    x = jnp.asarray(np.linspace(0, 1, 32, dtype=np.float32))
    like = jax.ShapeDtypeStruct(x.shape, x.dtype)

    def seen(x):
        pass

    def negated(x):
        return -np.asarray(x)

    def debugged(ordered):
        return jax.jit(lambda x: (jax.debug.callback(seen, x, ordered=ordered), x + 1.0)[1])

    def io(ordered):
        return jax.jit(lambda x: (io_callback(seen, None, x, ordered=ordered), x + 1.0)[1])

    pure = jax.jit(lambda x: jax.pure_callback(negated, like, x))
    calls = {
        "jit debug": debugged(False), "jit debug ordered": debugged(True), "jit io": io(False),
        "jit io ordered": io(True), "jit pure": pure,
        "eager pure": lambda x: jax.pure_callback(negated, like, x),
        "eager debug": lambda x: jax.debug.callback(seen, x),
    }

    def batch(call, count=100):
        for _ in range(count):
            result = call(x)
        jax.block_until_ready(result)
        jax.effects_barrier()

    figures = {}
    for name, call in calls.items():
        batch(call)
        figures[name] = 1e4 * min([seconds(lambda c=call: batch(c))[1] for _ in range(15)])
    return figures


def measure_devices(sharded):
    """Calls on arrays that are spread over eight devices, and moving arrays there."""
    import numpy as np
    from models import jax, jnp, over_devices

    _, cut, whole = over_devices()
    host = np.ones((1024, 64), np.float32)
    x, w = cut(host), whole(np.ones((64, 64), np.float32))
    f = jax.jit(lambda x, w: jnp.tanh(x @ w))
    mean = jax.jit(lambda x: x.mean())
    return {
        "jit": microseconds_per_call(lambda: f(x, w), batches=9),
        "jit with a collective": microseconds_per_call(lambda: mean(x), batches=9),
        "eager multiplication": microseconds_per_call(lambda: x * 2.0, batches=9),
        "device_put of a host array": microseconds_per_call(lambda: cut(host), batches=9),
        "device_put of a copy to each": microseconds_per_call(lambda: whole(host), batches=9),
        "resharding": microseconds_per_call(lambda: cut(x, 1), batches=9),
    }


def measure_linalg():
    """Decompositions and systems, one by one and under jit: small, large, and a batch of small."""
    import numpy as np
    from models import jax, jnp

    rng = np.random.default_rng(0)
    functions = {
        "cholesky": jnp.linalg.cholesky,
        "solve": jnp.linalg.solve,
        "eigh": jnp.linalg.eigh,
        "svd": jnp.linalg.svd,
        "qr": jnp.linalg.qr,
    }
    times = {}
    for size, shape in {"8": (8, 8), "512": (512, 512), "64 x 8": (64, 8, 8)}.items():
        x = rng.standard_normal(shape)
        a = jnp.asarray(x @ np.swapaxes(x, -1, -2) + shape[-1] * np.eye(shape[-1]), jnp.float32)
        b = jnp.asarray(rng.standard_normal(shape), jnp.float32)
        for name, function in functions.items():
            args = (a, b) if name == "solve" else (a,)
            for how, call in (("", function), ("jit ", jax.jit(renamed(function)))):
                times[f"{how}{name} {size}"] = (
                    microseconds_of_long_call(lambda call=call, args=args: call(*args))
                    if size == "512"
                    else microseconds_per_call(lambda call=call, args=args: call(*args), batches=9)
                )
    return times


def count_equations(jaxpr):
    """The equations of a jaxpr and of the jaxprs inside it."""
    total = 0
    for eqn in jaxpr.eqns:
        total += 1
        for value in eqn.params.values():
            for inner in value if isinstance(value, tuple | list) else (value,):
                if hasattr(inner, "eqns"):
                    total += count_equations(inner)
    return total


def renamed(function):
    """The same program as a new function, which no cache of traces knows."""
    return lambda *args: function(*args)


def steady_step(step, args, at_least=10, for_seconds=2.0):
    """The median time of a step; a training step's state is fed back."""
    from models import jax

    times: list[float] = []
    while len(times) < at_least or (sum(times) < for_seconds and len(times) < 200):
        result, elapsed = seconds(lambda args=args: jax.block_until_ready(step(*args)))
        if isinstance(result, tuple):
            args = (*result[:2], *args[2:])
        times.append(elapsed)
    return median(times)


def checksum(result):
    """One number to compare between the libraries: the loss, or the mean magnitude."""
    import numpy as np
    from models import jax

    leaves = jax.tree.leaves(result[-1] if isinstance(result, tuple) else result)
    return float(np.mean([np.mean(np.abs(np.asarray(x))) for x in leaves]))


def measure_stages(model, **options):
    """Trace, lower and compile apart, each for the first time in the process."""
    from models import MODELS, jax

    step, args = MODELS[model](**options)
    jax.block_until_ready(args)
    traced, trace = seconds(lambda: jax.jit(renamed(step)).trace(*args))

    def lower():
        lowered = traced.lower()
        return lowered, lowered.as_text()

    (lowered, text), lower_time = seconds(lower)
    compiled, compile_time = seconds(lowered.compile)
    result = compiled(*args)
    jaxpr, make_jaxpr = seconds(lambda: jax.make_jaxpr(renamed(step))(*args))
    return {
        "trace": trace,
        "trace + lower": trace + lower_time,
        "compile": compile_time,
        "make_jaxpr, again": make_jaxpr,
        "step": steady_step(compiled, args),
        "equations": count_equations(jaxpr),
        "text_bytes": len(text),
        "checksum": checksum(result),
    }


def measure_make_jaxpr(model, **options):
    from models import MODELS, jax

    step, args = MODELS[model](**options)
    jax.block_until_ready(args)
    return {"make_jaxpr": seconds(lambda: jax.make_jaxpr(step)(*args))[1]}


def measure_run(model, **options):
    """The first call, as a user makes it, then steady steps, then the peak of memory."""
    import resource

    from models import MODELS, jax

    step, args = MODELS[model](**options)
    jax.block_until_ready(args)
    jitted = jax.jit(step)
    result, first = seconds(lambda: jax.block_until_ready(jitted(*args)))
    step_time = steady_step(jitted, args)
    return {
        "first call": first,
        "step": step_time,
        "peak memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "checksum": checksum(result),
    }


def measure_process(model, **options):
    """From the start of the process, which the parent noted, to the end of the first step."""
    from models import MODELS, jax

    step, args = MODELS[model](**options)
    jax.block_until_ready(jax.jit(step)(*args))
    return {"to first step": time.monotonic() - float(os.environ["BENCHMARK_STARTED"])}


def measure_linear(sizes=(1_000, 10_000, 100_000)):
    """Tracing time per equation, best of several, for programs of growing length."""
    from models import chain, jax

    times = {}
    for size in sizes:
        function, args = chain(size)
        best = min(
            seconds(lambda f=function, a=args: jax.make_jaxpr(renamed(f))(*a))[1]
            for _ in range(max(2, min(7, 100_000 // size)))
        )
        times[f"{size} equations"] = 1e6 * best / size
    return times


def main():
    case, options = sys.argv[1], sys.argv[2:]
    if case == "import":
        figures = measure_import()
        import json
    else:
        import json

        options = json.loads(options[0] if options else "{}")
        if options.get("sharded"):
            os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
            os.environ["NPROC"] = "16"  # with fewer threads queued collectives starve each other
        figures = globals()[f"measure_{case}"](**options)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
