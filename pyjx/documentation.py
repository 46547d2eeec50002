"""Sections that the docstrings of array functions leave out, because functions share them: what the
arguments are, what is returned, and where the examples begin. They are put in when a name of a
package is first used."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

# What arguments are, by name, and by "function.name" where a function means something else.
ARGUMENTS = {
    **dict.fromkeys(("A", "a1", "arr", "array", "ary", "v"), "an array."),
    "M": "the number of points; for `tri` that of columns, by default as many as rows.",
    "N": "the number of rows.",
    "UPLO": 'which triangle is read: "L" or "U".',
    **dict.fromkeys(("a", "x", "x1", "x2", "y", "z"), "an array or a number."),
    "a2": "another array.",
    "allow_pickle": "as for NumPy.",
    "alpha": "a number, the slope or scale of the negative part.",
    "ar1": "an array, which is flattened.",
    "ar2": "another array, which is flattened.",
    "arg1": "a dtype, or a class of dtypes.",
    "arg2": "another one.",
    "args": "arrays; for functions of files NumPy's arguments.",
    "arrays": "a sequence of arrays, or of sequences of them.",
    "arys": "arrays or numbers.",
    "assume_unique": "whether the elements of each argument are different.",
    "atol": "the absolute difference that is allowed.",
    "axes": "the axes, from the front or, negative, from the back.",
    "axis": "the axis, from the front or, negative, from the back; where that is allowed several, "
            "or None for all.",
    "axis1": "the first of two axes.",
    "axis2": "the second of two axes.",
    "b": "another array or number.",
    "bins": "the number of bins, or their edges.",
    "casting": "the rule, as for NumPy.",
    "copy": "whether the result has memory of its own.",
    "correction": "the same as `ddof`, by the name of the array API.",
    "count": "the number of elements; -1 for all.",
    "d": "the distance between samples.",
    "ddof": "what is subtracted from the number of elements that the sum is divided by.",
    "deg": "whether angles are in degrees.",
    "density": "whether the result is a density, whose integral is 1.",
    "descending": "whether the largest comes first.",
    "destination": "where these axes go.",
    "device": "the device or sharding of the result.",
    "dimensions": "the shape of the grid.",
    "dtype": "the dtype of the result; None for the one that follows from the arguments.",
    "element": "an object.",
    "endpoint": "whether `stop` is the last number.",
    "equal_nan": "whether nan equals nan.",
    "file": "a path or an open file.",
    "fill_value": "the value of all elements, or of those that `size` adds.",
    "from_": "a dtype or an array.",
    "include_initial": "whether the result begins with the 1 of no factors.",
    "indices_or_sections": "the number of equal parts, or the indices at which they begin.",
    "initial": "a number that the result begins with.",
    "inplace": "must be False: arrays do not change.",
    "k": "the number of the diagonal: 0 is the main one, positive ones are above it.",
    "keepdims": "whether the axes stay, with size 1.",
    "kth": "the position that is to have the element which sorting would put there.",
    "kwds": "arrays by name.",
    "mask_func": "a function of an array and `k`, such as `triu`.",
    "max": "the largest value of the result.",
    "max_line_width": "the number of characters of a line.",
    "mean": "the mean, where it is known.",
    "method": "how values between two elements are found, such as \"linear\".",
    "min": "the least value of the result.",
    "negative_slope": "the slope below zero.",
    "new_shape": "the shape of the result.",
    "norm": 'where the transform is scaled: None or "backward", "ortho" or "forward".',
    "operands": "arrays, or their shapes.",
    "optimize": "how the order of contractions is chosen.",
    "ord": "the order of the norm.",
    "out": "not supported, must be None.",
    "out_sharding": "how the result lies on a mesh.",
    "overwrite_input": "not supported, must be False.",
    "precision": "what accelerators compute with: None, a `lax.Precision` or its name.",
    "array_repr.precision": "the number of digits.",
    "array_str.precision": "the number of digits.",
    "preferred_element_type": "the dtype that is summed in, and that of the result.",
    "promote_integers": "whether narrow integers become those of the default width.",
    "prototype": "an array, whose shape and dtype the result has.",
    "q": "the quantiles: numbers from 0 to 1, or to 100 for percentiles.",
    "range": "the least and the largest value that is counted.",
    "reps": "how often each axis is repeated.",
    "rowvar": "whether rows are variables, and columns observations.",
    "rtol": "the difference that is allowed, relative to the second argument.",
    "s": "the numbers of points along the axes.",
    "shape": "the shape of the result: an integer or a sequence of them.",
    "size": "the number of elements of the result, which must be known where arguments are traced.",
    "source": "the axes that move.",
    "sparse": "whether each grid has one long axis only.",
    "stable": "whether equal elements keep their order.",
    "subscripts": "which axes are which, as for `einsum`.",
    "suppress_small": "whether tiny numbers are shown as 0.",
    "symmetrize_input": "whether the matrix and its adjoint are averaged first.",
    "to": "a dtype.",
    "tup": "a sequence of arrays.",
    "weights": "the weight of each element.",
    "where": "boolean array, broadcast against the first argument, of the elements to include.",
}
_LINE = 92  # characters


def describe(function: Callable[..., Any], name: str) -> None:
    """Give a function of arrays the sections `Args`, `Returns` and `Examples` where it lacks them.

    >>> import pyjx as jax
    >>> [line for line in jax.numpy.sin.__doc__.splitlines() if line.strip().endswith("s:")]
    ['Args:', 'Returns:', 'Examples:']
    """
    doc: str | None = function.__doc__
    if not isinstance(doc, str) or "Examples:" in doc or ">>>" not in doc:
        return
    pad = "    " if "\n    >>>" in doc else ""
    before, example = doc[:doc.index(f"{pad}>>>")], doc[doc.index(f"{pad}>>>"):]
    text, raises, errors = before.partition(f"\n{pad}Raises:")
    text, returns, result = text.partition(f"\n{pad}Returns:")
    parts = [text.rstrip()]
    names = _parameters(function)
    if "Args:" not in text:
        listed = [_entry(p, ARGUMENTS.get(f"{name}.{p}", ARGUMENTS.get(p)), pad) for p in names]
        parts.append(f"{pad}Args:\n" + "\n".join([x for x in listed if x]))
    result = result.rstrip() if returns else f"\n{pad}  {_result(names)}"
    parts.append(f"{pad}Returns:{result}")
    if raises:
        parts.append(f"{pad}Raises:{errors.rstrip()}")
    function.__doc__ = "\n\n".join([*parts, f"{pad}Examples:\n\n{example}"])


def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    body = function
    while hasattr(body, "__wrapped__"):
        body = body.__wrapped__
    code = getattr(body, "__code__", None)
    if code is None:
        return ()
    variadic = bool(code.co_flags & 4) + bool(code.co_flags & 8)
    return code.co_varnames[:code.co_argcount + code.co_kwonlyargcount + variadic]


@cache
def _entry(name: str, meaning: str | None, pad: str) -> str:
    if meaning is None:
        return ""
    lines = [f"{pad}  {name}:"]
    for word in meaning.split():
        if len(lines[-1]) + len(word) > _LINE:
            lines.append(f"{pad}   ")
        lines[-1] += f" {word}"
    return "\n".join(lines)


def _result(names: tuple[str, ...]) -> str:
    """What a function of arrays returns whose docstring does not say it."""
    if "keepdims" in names:
        return "An array without the axes that are reduced, or with size 1 there if `keepdims`."
    arrays = [n for n in names if n in ("x", "y", "x1", "x2")]
    return ("An array of the shape of the argument." if len(arrays) == 1 else
            "An array of the shape that the arguments are broadcast to.")
