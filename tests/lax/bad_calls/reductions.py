"""Bad calls: reductions, sorting, random bits."""

from __future__ import annotations

import numpy as np

from pyjx import lax
from tests.lax.bad_calls.calls import (
    BAD_DTYPES,
    BOOL,
    C64,
    F4,
    F32,
    I32,
    NOT_INT,
    NOT_INTS,
    OBJECTS,
    ONE,
    SCALAR,
    Bad,
    array,
    bad,
)

CALLS: dict[str, list[Bad]] = {}

# -- reductions ------------------------------------------------------------------------------------


def reduction(name: str, good: np.ndarray, *wrong: np.ndarray) -> None:
    CALLS[name] = [
        *[bad(x, (0,)) for x in OBJECTS], *[bad(x, (0,), says=x.dtype.name) for x in wrong],
        bad(good, (1,), says="axes"), bad(good, (-1,), says="axes"), bad(good, (0, 0), says="axes"),
        *[bad(good, a, says="axes") for a in NOT_INTS], bad(good, 0, says="axes"),
        bad(good, None, says="axes"), bad(good),
    ]


reduction("reduce_sum", F32, BOOL)
reduction("reduce_prod", F32, BOOL)
reduction("reduce_max", F32)
reduction("reduce_min", F32)
for _name in ("reduce_and", "reduce_or", "reduce_xor"):
    reduction(_name, I32, F32, C64)
for _name in ("argmax", "argmin"):
    CALLS[_name] = [
        *[bad(x, 0, "int32") for x in OBJECTS], bad(F32, 1, "int32", says="axis"),
        bad(F32, -1, "int32", says="axis"), *[bad(F32, n, "int32", says="axis") for n in NOT_INT],
        bad(F32, 0, "float32", says="index_dtype"), bad(C64, 0, "int32", says="complex64"),
        *[bad(F32, 0, d) for d in BAD_DTYPES], bad(array(0), 0, "int32", says="(0,)"),
    ]
CALLS["reduce"] = [
    *[bad(x, 0.0, lax.add, (0,)) for x in OBJECTS], *[bad(F32, x, lax.add, (0,)) for x in OBJECTS],
    bad(F32, F32, lax.add, (0,), says="init"), bad(F32, ONE, lambda x, y: x, (0,), says="dtype"),
    bad(F32, (0.0, 0.0), lax.add, (0,), says="init_values"), bad(F32, 0.0, None, (0,)),
    bad(F32, 0.0, lax.add, (1,), says="(1,)"), bad(F32, 0.0, lax.add, (0, 0), says="(0, 0)"),
    *[bad(F32, 0.0, lax.add, a, says="dimensions") for a in NOT_INTS], bad([], [], lax.add, (0,)),
    bad(F32, 0.0, lambda x, y: "a", (0,), says="computation"),
    bad(F32, 0.0, lambda x, y: (x, y), (0,), says="computation"),
    bad(F32, 0.0, lambda x, y: ONE, (0,), says="computation"),
    bad((F32, F4), (0.0, 0.0), lambda x, y: x, (0,), says="shapes"),
]
for _name in ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"):
    CALLS[_name] = [
        *[bad(x) for x in OBJECTS], bad(BOOL, says="bool"), bad(F32, 1, says="axis"),
        bad(F32, -1, says="axes"), bad(SCALAR, says="axis"),
        *[bad(F32, n, says="axis") for n in NOT_INT],
    ]
CALLS["cumlogsumexp"] += [bad(I32, says="int32")]

WINDOW = (F32, 0.0, lax.add)
CALLS["reduce_window"] = [
    *[bad(x, 0.0, lax.add, (2,)) for x in OBJECTS], *[bad(F32, x, lax.add, (2,)) for x in OBJECTS],
    bad(F32, F32, lax.add, (2,), says="init"), bad(F32, ONE, lambda x, y: x, (2,), says="dtype"),
    bad(F32, (0.0, 0.0), lax.add, (2,), says="init_values"), bad(F32, 0.0, None, (2,)),
    bad([], [], lax.add, (2,)), bad((F32, F4), (0.0, 0.0), lambda x, y: x, (2,), says="shape"),
    bad(*WINDOW, (2, 2), says="window_dimensions"), bad(*WINDOW, (0,), says="window_dimensions"),
    *[bad(*WINDOW, s, says="window_dimensions") for s in NOT_INTS],
    bad(*WINDOW, (2,), (0,), says="window_strides"),
    bad(*WINDOW, (2,), (1, 1), says="window_strides"),
    *[bad(*WINDOW, (2,), s, says="window_strides") for s in NOT_INTS],
    bad(*WINDOW, (2,), None, "NOPE", says="NOPE"), bad(*WINDOW, (2,), None, 3, says="padding"),
    bad(*WINDOW, (2,), None, ((0, 0), (0, 0)), says="padding"),
    bad(*WINDOW, (2,), None, ((0,),), says="padding"),
    bad(*WINDOW, (2,), None, (("x", 0),), says="padding"),
    bad(*WINDOW, (2,), None, "SAME", (0,), says="dilation"),
    bad(*WINDOW, (2,), None, "SAME", (1,), (-1,), says="dilation"),
    *[bad(*WINDOW, (2,), None, "SAME", s, says="base_dilation") for s in NOT_INTS],
    *[bad(*WINDOW, (2,), None, "SAME", None, s, says="window_dilation") for s in NOT_INTS],
    bad(F32, 0.0, lambda x, y: (x, y), (2,), says="computation"),
]
CALLS["reduce_window_shape_tuple"] = [
    bad((3,), (2, 2), (1,), ((0, 0),), says="window_dimensions"),
    bad((3,), (2,), (0,), ((0, 0),), says="window_strides"),
    bad((3,), (2,), (1,), ((0,),), says="padding"), bad((3,), (2,), (1,), "NOPE", says="padding"),
    bad((3,), (2,), (1,), ((0, 0),), (0,), says="dilation"),
    bad(3, (2,), (1,), ((0, 0),), says="operand_shape"),
    *[bad((3,), s, (1,), ((0, 0),), says="window_dimensions") for s in NOT_INTS],
]

# -- sorting ---------------------------------------------------------------------------------------

CALLS["sort"] = [
    *[bad(x) for x in OBJECTS], *[bad((F32, x)) for x in OBJECTS], bad(()), bad((F32, F4)),
    bad(F32, 1, says="axis 1"), bad(F32, -2, says="axis -2"),
    bad((F32, F32), num_keys=0, says="num_keys"),
    bad((F32, F32), num_keys=3, says="num_keys"), bad((F32, F32), num_keys="x", says="num_keys"),
    *[bad(F32, n, says="dimension") for n in NOT_INT], bad(SCALAR, says="axis"),
]
CALLS["sort_key_val"] = [
    *[bad(x, F32) for x in OBJECTS], *[bad(F32, x) for x in OBJECTS], bad(F32, F4),
    bad(F32, F32, 1, says="axis 1"), *[bad(F32, F32, n, says="dimension") for n in NOT_INT],
]
CALLS["top_k"] = [
    *[bad(x, 1) for x in OBJECTS], bad(F32, 4, says="k argument"), bad(F32, -1, says="k argument"),
    bad(C64, 1, says="complex"), bad(SCALAR, 1, says="axis"), bad(F32, 1, axis=1, says="axis 1"),
    *[bad(F32, n, says=" k ") for n in NOT_INT],
    *[bad(F32, 1, axis=n, says="axis") for n in NOT_INT],
]
for _name in ("approx_max_k", "approx_min_k"):
    CALLS[_name] = [
        *[bad(x, 1) for x in OBJECTS], bad(F32, 0, says="k must"), bad(F32, 4, says="k must"),
        bad(I32, 1, says="float"), bad(SCALAR, 1, says="dimension"), bad(F32, 1, 1, says="axis 1"),
        bad(F32, 1, -1, 0.0, says="recall_target"), bad(F32, 1, -1, 1.5, says="recall_target"),
        bad(F32, 1, -1, "x", says="recall_target"), *[bad(F32, n, says=" k ") for n in NOT_INT],
        *[bad(F32, 1, n, says="reduction_dimension") for n in NOT_INT],
        bad(F32, 1, reduction_input_size_override="x", says="reduction_input_size_override"),
    ]

# -- random bits -----------------------------------------------------------------------------------

_KEY = np.zeros(4, np.uint32)
CALLS["rng_bit_generator"] = [
    *[bad(x, (2,)) for x in OBJECTS], bad(F32, (2,), says="key"), bad(_KEY[:3], (2,), says="key"),
    *[bad(_KEY, s, says="shape") for s in NOT_INTS], bad(_KEY, (-1,), says="shape"),
    bad(_KEY, (2,), "float32", says="dtype"), *[bad(_KEY, (2,), d) for d in BAD_DTYPES],
    bad(_KEY, (2,), algorithm=9, says="algorithm"),
    bad(_KEY, (2,), algorithm="x", says="algorithm"),
]
CALLS["rng_uniform"] = [
    *[bad(x, 1.0, (2,)) for x in OBJECTS], *[bad(0.0, x, (2,)) for x in OBJECTS],
    bad(0.0, 1, (2,), says="dtypes"), bad(F32, 1.0, (2,), says="scalars"),
    bad(0j, 1j, (2,), says="complex"), *[bad(0.0, 1.0, s, says="shape") for s in NOT_INTS],
    bad(0.0, 1.0, (-1,), says="shape"),
]
