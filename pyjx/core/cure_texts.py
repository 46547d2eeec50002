"""What several messages end with that show no value of the user's."""

from __future__ import annotations

ARRAYS = "The arrays are one sequence, as in {0}((a, b))."
VALUES = "The values are one sequence, as in {0}([1, 2]) or {0}([[1, 2], [3, 4]])."
MADE_MESH = "jax.make_mesh((4, 2), ('x', 'y')) takes the sizes of the axes."
DELETED = ("It was donated to a jitted function (donate_argnums, donate_argnames), or its delete() "
           "was called. Use what the function returned, or pass a copy.")
OF_SPARSE = ("{} is a sparse matrix of SciPy's. Make it one of arrays: "
             "jax.experimental.sparse.BCOO.from_scipy_sparse({}).")
OWN_CALL = "The arguments of fun come in a call of their own"


def own_call(name: str) -> str:
    """What is said of arguments that the transformation of this name is given with a function."""
    return f"{OWN_CALL}: {name}(fun)(x)."


def no_array(kind: type, n: int, name: str) -> str:
    """What is said of a list or tuple of `n` numbers where an array was meant."""
    return f"A {kind.__name__} is no array, but a tree of {n} leaves: give jnp.array({name})."
