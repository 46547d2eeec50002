"""Shapes in annotations, checked as functions are called and traced."""

import json

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree, jaxtyped


def checker(fun):
    import functools
    import inspect

    signature = inspect.signature(fun)

    @functools.wraps(fun)
    def wrapped(*args, **kwargs):
        bound = signature.bind(*args, **kwargs)
        for name, value in bound.arguments.items():
            kind = signature.parameters[name].annotation
            if not isinstance(value, kind):
                raise TypeError(name)
        return fun(*args, **kwargs)

    return wrapped


@jaxtyped(typechecker=checker)
def matmul(x: Float[Array, "a b"], y: Float[Array, "b c"]):  # noqa: F722
    return x @ y


results = {"product": float(jax.jit(matmul)(jnp.ones((2, 3)), jnp.ones((3, 4))).sum())}
for name, args in {"shape": (jnp.ones((2, 3)), jnp.ones((2, 4))),
                   "dtype": (jnp.ones((2, 3), int), jnp.ones((3, 4)))}.items():
    try:
        jax.jit(matmul)(*args)
        results[name] = "passed"
    except Exception:
        results[name] = "refused"
results["traced"] = bool(jax.eval_shape(
    lambda x: jnp.array(isinstance(x, Float[Array, "n"])), jnp.ones(3)).shape == ())
results["int"] = isinstance(jnp.arange(3), Int[Array, "3"])
results["key"] = isinstance(jax.random.key(0), PRNGKeyArray)
results["tree"] = isinstance({"a": jnp.ones(2)}, PyTree[Float[Array, "2"]])
print(json.dumps(results))
