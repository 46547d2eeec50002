"""A second opinion of the oracle: the same program, whose reverse mode is made of forward mode."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.oracle.conditioning import arrays, grain, widened
from tests.oracle.language import Code, Program
from tests.oracle.processes import Outcome, Worker

# Gradients of functions of arrays; what a function writes outside is written once for each slope.
FORWARD = Code("""
class Forward:
    def __getattr__(self, name):
        return getattr(jax_, name)

    def slopes(self, f, args, k):
        x = jnp.asarray(args[k])
        return [jax_.jvp(f, args, tuple(e.reshape(x.shape) if i == k else jnp.zeros_like(a)
                                        for i, a in enumerate(args)))[1]
                for e in jnp.eye(x.size, dtype=x.dtype)]

    def vjp(self, f, *args):
        def pull(ct):
            return tuple(jnp.stack([
                sum(jnp.sum(a * b) for a, b in zip(*map(jax_.tree.leaves, (ct, slope))))
                for slope in self.slopes(f, args, k)]).reshape(jnp.shape(args[k])).astype(
                    jnp.asarray(args[k]).dtype) for k in range(len(args)))
        return f(*args), pull

    def value_and_grad(self, f, argnums=0):
        def both(*args):
            out, pull = self.vjp(f, *args)
            found = pull(jnp.ones_like(out))
            return out, found[argnums] if isinstance(argnums, int) else tuple(
                found[i] for i in argnums)
        return both

    def grad(self, f, argnums=0):
        return lambda *args: self.value_and_grad(f, argnums)(*args)[1]

    def jacrev(self, f, argnums=0):
        def one(args, k):
            return jax_.tree.map(lambda *rows: jnp.stack(rows, -1).reshape(
                *rows[0].shape, *jnp.shape(args[k])), *self.slopes(f, args, k))
        def jacobian(*args):
            if isinstance(argnums, int):
                return one(args, argnums)
            outs, tree = jax_.tree.flatten(jax_.eval_shape(f, *args))
            parts = [jax_.tree.leaves(one(args, k)) for k in argnums]
            return tree.unflatten(list(zip(*parts)))
        return jacobian

    jacfwd = jacrev

    def hessian(self, f, argnums=0):
        return self.jacrev(self.jacrev(f, argnums), argnums)

    def linearize(self, f, *args):
        return f(*args), lambda *tangents: jax_.jvp(f, args, tangents)[1]

jax_, jax = jax, Forward()
""")
REASON = "the oracle's forward mode gives the same, its reverse mode of references another result"


def seconded(worker: Worker, program: Program, ours: Outcome) -> str | None:
    """The reason why a value is no fault: in forward mode the oracle gives it, too."""
    if program.kind != "references":
        return None
    worker.send([widened(replace(program, body=(FORWARD, *program.body)))])
    (again,) = worker.collect()
    if again["is"] != "value":
        return None
    pairs = list(zip(arrays(ours["value"]), arrays(again["value"]), strict=False))
    near = max(1e-4, 64 * grain(program))
    same = bool(pairs) and all(x.shape == y.shape and close(x, y, near) for x, y in pairs)
    return REASON if same else None


def close(x: np.ndarray, y: np.ndarray, near: float) -> bool:
    a, b = x.astype(np.complex128), y.astype(np.complex128)
    return bool(np.abs(a - b).max(initial=0.0) <= near * np.abs(b).max(initial=0.0))
