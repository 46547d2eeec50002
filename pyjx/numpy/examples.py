"""Examples for the docstrings of the functions of `ufuncs` that makers make."""

from __future__ import annotations

# Arguments and result.
EXAMPLES: dict[str, tuple[str, str]] = {
    "abs": ("3 + 4j", "5.0"), "absolute": ("-2", "2"), "arccos": ("1.0", "0.0"),
    "arccosh": ("1.0", "0.0"), "arcsin": ("0.0", "0.0"), "arcsinh": ("0.0", "0.0"),
    "arctan": ("0.0", "0.0"), "arctanh": ("0.0", "0.0"), "bitwise_and": ("6, 3", "2"),
    "bitwise_count": ("7", "3"), "bitwise_or": ("6, 3", "7"), "bitwise_xor": ("6, 3", "5"),
    "cbrt": ("27.0", "3.0"), "ceil": ("-1.5", "-1.0"), "conj": ("1 + 2j", "(1-2j)"),
    "conjugate": ("1 + 2j", "(1-2j)"), "cos": ("0.0", "1.0"), "cosh": ("0.0", "1.0"),
    "deg2rad": ("180.0", "3.1415927410125732"), "equal": ("2, 2", "True"), "exp": ("0.0", "1.0"),
    "exp2": ("3.0", "8.0"), "expm1": ("0.0", "0.0"), "fabs": ("-2", "2.0"),
    "floor": ("-1.5", "-2.0"), "greater": ("3, 2", "True"), "greater_equal": ("2, 2", "True"),
    "imag": ("1 + 2j", "2.0"), "invert": ("6", "-7"), "iscomplex": ("1 + 2j", "True"),
    "isfinite": ("1.0", "True"), "isinf": ("1.0", "False"), "isnan": ("1.0", "False"),
    "isneginf": ("1.0", "False"), "isposinf": ("1.0", "False"), "isreal": ("1 + 2j", "False"),
    "left_shift": ("3, 2", "12"), "less": ("2, 3", "True"), "less_equal": ("2, 2", "True"),
    "log": ("1.0", "0.0"), "log10": ("100.0", "2.0"), "log1p": ("0.0", "0.0"),
    "log2": ("8.0", "3.0"), "logical_and": ("2, 0", "False"), "logical_not": ("0", "True"),
    "logical_or": ("2, 0", "True"), "logical_xor": ("2, 3", "False"), "maximum": ("2, 3", "3"),
    "minimum": ("2, 3", "2"), "negative": ("2", "-2"), "not_equal": ("2, 2", "False"),
    "positive": ("2", "2"), "rad2deg": ("0.0", "0.0"), "real": ("1 + 2j", "1.0"),
    "reciprocal": ("4.0", "0.25"), "right_shift": ("12, 2", "3"), "sign": ("-2.5", "-1.0"),
    "sin": ("0.0", "0.0"), "sinh": ("0.0", "0.0"), "sqrt": ("9.0", "3.0"), "square": ("3", "9"),
    "tan": ("0.0", "0.0"), "tanh": ("0.0", "0.0"), "trunc": ("-1.5", "-1.0"),
}


def with_example(name: str, doc: str) -> str:
    """The docstring of a function of `pyjx.numpy` with its example.

    >>> with_example("sqrt", "The square root.").splitlines()[-2:]
    ['>>> jax.numpy.sqrt(9.0).item()', '3.0']
    """
    arguments, result = EXAMPLES[name]
    return (f"{doc}\n\n>>> import pyjx as jax\n"
            f">>> jax.numpy.{name}({arguments}).item()\n{result}\n")
