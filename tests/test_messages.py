"""Errors of much used functions: the operation, the argument, what was expected, and one cure."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import random

X = np.arange(6, dtype=np.float32).reshape(2, 3)
KEY = random.key(0)

CASES = {
    "one_hot": (lambda: jax.nn.one_hot(X.astype(int), 3.5), TypeError,
                "one_hot: num_classes must be an integer, got 3.5: 'float' object cannot be"),
    "one_hot-negative": (lambda: jax.nn.one_hot(X.astype(int), -1), TypeError,
                         "one_hot: num_classes, the size of the new axis, must be nonnegative"),
    "split": (lambda: random.split(KEY, 2.5), TypeError, "split: num must be an integer, got 2.5"),
    "split-None": (lambda: random.split(None), TypeError,
                   "split: unexpected PRNG key type <class 'NoneType'>. A key is made of a seed"),
    "fold_in": (lambda: random.fold_in(KEY, "a"), TypeError,
                "fold_in: data must be an integer, got 'a'"),
    "key": (lambda: random.key("a"), TypeError, "PRNG key seed must be an integer; got 'a'"),
    "normal": (lambda: random.normal(0, (2,)), TypeError,
               "If that is a seed, make a key of it: jax.random.key(0)"),
    "permutation": (lambda: random.permutation(KEY, 2.5), TypeError,
                    "permutation: x must be an integer or at least 1-dimensional, got a scalar of"),
    "at-set": (lambda: jnp.asarray(X).at[0].set(jnp.ones(2)), ValueError,
               "must broadcast to x[index], of shape (3,) here"),
    "at-mode": (lambda: jnp.asarray(X).at[0].set(1, mode="foo"), ValueError,
                "Unknown gather mode \"foo\". The modes are 'clip', 'fill', 'drop'"),
    "float-index": (lambda: jnp.asarray(X)[1.5], TypeError,
                    "got indexer with type float64. Round it and make it integers"),
    "concatenate": (lambda: jnp.concatenate(X, X), TypeError,
                    "axis must be an integer, but an array or a tuple was given"),
    "sum": (lambda: jnp.sum(X, axis=1.5), TypeError, "axis must be an integer, got 1.5"),
    "zeros": (lambda: jnp.zeros(2, 3), TypeError,
              "give the shape as one tuple, as in zeros((2, 3))"),
    "add": (lambda: jnp.asarray(X) + jnp.ones(4), ValueError,
            "add: Incompatible shapes for broadcasting: shapes=[(2, 3), (4,)]"),
    "where": (lambda: jnp.where(X > 0, X, jnp.ones(4)), ValueError,
              "where: Incompatible shapes for broadcasting (condition, x and y)"),
    "linspace": (lambda: jnp.linspace(0, 1, 2.5), TypeError,
                 "linspace: num must be an integer, got 2.5"),
    "eye": (lambda: jnp.eye("a"), TypeError, "eye: N must be an integer, got 'a'"),
    "array-split": (lambda: jnp.split(X, 4), ValueError,
                    "split was to cut axis 0, of size 2, in 4 parts"),
    "grad-pair": (lambda: jax.grad(lambda x: (x, x))(1.0), TypeError, "use has_aux=True"),
    "grad-None": (lambda: jax.grad(lambda x: None)(1.0), TypeError,
                  "Output was None. The function must return its value"),
    "grad-list": (lambda: jax.grad(lambda x: [x])(1.0), TypeError, "use jax.jacobian"),
    "grad-argnums": (lambda: jax.grad(lambda x: x, argnums="x"), TypeError,
                     "grad: argnums must be a sequence of integers"),
    "grad-keyword": (lambda: jax.grad(lambda x: x)(x=1.0), TypeError,
                     "Arguments given by keyword are not differentiated"),
    "checkpoint": (lambda: jax.checkpoint(lambda x: x, policy="dots"), TypeError,
                   "checkpoint: policy must be None or a function"),
    "checkpoint-maker": (
        lambda: jax.checkpoint(lambda x: x, policy=jax.checkpoint_policies.save_only_these_names),
        TypeError, "save_only_these_names makes a policy and must be called"),
    "vmap": (lambda: jax.vmap(lambda x, y: x)(X, 1.0), ValueError,
             "It is argument y; where it is the same for all examples, its entry of in_axes is"),
    "vmap-out": (lambda: jax.vmap(lambda x: x, out_axes=3)(X), ValueError,
                 "vmap out_axes: axis 3 is out of bounds for array of dimension 2"),
}


@pytest.mark.parametrize("name", CASES)
def test_messages(name):
    call, error, message = CASES[name]
    with pytest.raises(error) as caught:
        call()
    assert message in str(caught.value)


def test_values_of_an_update_are_named():
    for value in ("a", None):
        with pytest.raises((TypeError, ValueError)) as caught:
            jnp.asarray(X).at[0].set(value)
        assert "given to x.at[index].set" in caught.value.__notes__[0]
