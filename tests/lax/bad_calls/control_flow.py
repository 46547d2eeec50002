"""Bad calls: control flow, collectives."""

from __future__ import annotations

from typing import Any

from pyjx import lax
from tests.lax.bad_calls.calls import F4, F32, I32, NOT_INT, OBJECTS, ONE, SCALAR, Bad, bad

CALLS: dict[str, list[Bad]] = {}

# -- control flow ----------------------------------------------------------------------------------


def _same(*args: Any) -> Any:
    return args[0]


def _positive(x: Any) -> Any:
    return lax.gt(x, 0.0)


_CONTROL_FLOW = {
    "while_loop": [
        bad(None, _same, 1.0, says="cond_fun"), bad(_positive, 3, 1.0, says="body_fun"),
        bad(lambda x: x, _same, 1.0, says="cond_fun"), bad(lambda x: "a", _same, 1.0),
        bad(lambda x: (True, True), _same, 1.0, says="cond_fun"),
        bad(lambda x: lax.gt(x, F32), _same, F32, says="cond_fun"),
        bad(_positive, lambda x: (x, x), 1.0, says="body_fun"),
        bad(_positive, lambda x: ONE, 1.0, says="body_fun"),
        bad(_positive, lambda x: F32, 1.0, says="body_fun"), bad(_positive, lambda x: "a", 1.0),
        bad(_positive, _same, 1.0, max_steps=-1, says="max_steps"),
        *[bad(_positive, _same, 1.0, max_steps=n, says="max_steps") for n in NOT_INT
          if n is not None],
        *[bad(lambda x: True, _same, x) for x in OBJECTS if x is not None and type(x) is not dict],
    ],
    "fori_loop": [
        bad(0, 3, None, 1.0), bad(0.5, 3, _same, 1.0), bad(0, "x", _same, 1.0),
        bad(I32, 3, _same, 1.0), bad(0, 3, lambda i, x: (x, x), 1.0),
        bad(0, 3, lambda i, x: F32, 1.0), bad(0, 3, lambda i, x: x, "a"),
    ],
    "scan": [
        bad(None, 1.0, F32), bad(lambda c, x: c, 1.0, F32), bad(lambda c, x: (F32, x), 1.0, F32),
        bad(lambda c, x: ((c, c), x), 1.0, F32), bad(lambda c, x: (c, x), 1.0, (F32, F4)),
        bad(lambda c, x: (c, x), 1.0, F32, 4, says="length"),
        bad(lambda c, x: (c, x), 1.0, None, says="length"), bad(lambda c, x: (c, x), 1.0, SCALAR),
        bad(lambda c, x: (c, x), 1.0, F32, unroll=-1, says="unroll"),
        bad(lambda c, x: (c, x), 1.0, F32, length="x", says="length"),
        bad(lambda c, x: (c, x), "a", F32), bad(lambda c, x: (c, x), 1.0, "a"),
        bad(lambda c, x: (c, "a"), 1.0, F32),
    ],
    "cond": [
        bad(F32, _same, _same, 1.0), bad("a", _same, _same, 1.0), bad(None, _same, _same, 1.0),
        bad(True, None, _same, 1.0), bad(True, _same, 3, 1.0), bad(1j, _same, _same, 1.0),
        bad(True, _same, lambda x: (x, x), 1.0), bad(True, _same, lambda x: F32, 1.0),
        bad(True, _same, lambda x: ONE, 1.0), bad(True, _same, _same, "a"),
    ],
    "switch": [
        bad(0.5, [_same, _same], 1.0), bad(I32, [_same, _same], 1.0), bad("a", [_same], 1.0),
        bad(0, [], 1.0), bad(0, [_same, None], 1.0), bad(0, 3, 1.0),
        bad(0, [_same, lambda x: (x, x)], 1.0), bad(0, [_same, lambda x: F32], 1.0),
        bad(0, [_same, _same], "a"),
    ],
    "map": [bad(None, F32), bad(_same, "a"), bad(_same, SCALAR), bad(_same, (F32, F4)),
            bad(_same, F32, batch_size="x"), bad(_same, SCALAR, batch_size=2)],
    "associative_scan": [
        bad(None, F32), bad(lax.add, (F32, F4)), bad(lax.add, F32, axis=1),
        bad(lax.add, F32, axis="x"), bad(lax.add, "a"), bad(lax.add, SCALAR),
    ],
}
_CONTROL_FLOW["custom_linear_solve"] = [
    bad(3, F32, lambda f, b: b, says="matvec"), bad(_same, F32, None, says="solve"),
    bad(_same, F32, lambda f, b: b, 3, says="transpose_solve"),
    bad(_same, "a", lambda f, b: b), bad(_same, F32, lambda f, b: "a"),
    bad(lambda x: (x, x), F32, lambda f, b: b, says="matvec() output shapes must match b"),
    bad(lambda x: [x], F32, lambda f, b: b, says="structure"),
    bad(_same, F32, lambda f, b: F4, says="solve() output shapes"),
    bad(_same, F32, lambda f, b: b, has_aux=True, says="auxiliary"),
    bad(_same, F32, lambda f, b: b, lambda f, b: F4, says="transpose_solve() output shapes"),
]
_CONTROL_FLOW["custom_root"] = [
    bad(3, F32, lambda f, x: x, lambda g, y: y),
    bad(_same, F32, None, lambda g, y: y, says="solve"),
    bad(_same, F32, lambda f, x: x, None, says="tangent_solve"),
    bad(_same, "a", lambda f, x: x, lambda g, y: y),
    bad(lambda x: (x, x), F32, lambda f, x: x, lambda g, y: y, says="f() output"),
    bad(_same, F32, lambda f, x: (x, x), lambda g, y: y, says="solve() output"),
    bad(_same, F32, lambda f, x: x, lambda g, y: (y, y), says="tangent_solve() output"),
    bad(_same, F32, lambda f, x: x, lambda g, y: y, has_aux=True, says="auxiliary"),
]
_CONTROL_FLOW["platform_dependent"] = [
    bad(F32), bad(F32, cpu=3, says="'cpu'"), bad(F32, default=3, says="'default'"),
    bad(F32, gpu=_same, says="cuda"), bad(),
]
_CONTROL_FLOW["composite"] = [
    bad(None, "my.op", says="decomposition"), bad(_same, "my.op", "x", says="version"),
    bad(_same), bad(),
]
CALLS.update({name: calls for name, calls in _CONTROL_FLOW.items() if name in dir(lax)})

# -- collectives -----------------------------------------------------------------------------------

_LEAVES = [x for x in OBJECTS if x is not None and type(x) is not dict]
_UNBOUND = {"says": "unbound axis name", "error": NameError}

for _name in ("psum", "pmean", "pmax", "pmin"):
    CALLS[_name] = [
        *[bad(x, 0) for x in _LEAVES], bad(F32, "i", says="i", error=NameError),
        bad(F32, None, **_UNBOUND), bad(F32, (0, "i"), **_UNBOUND), bad(F32, 1, says="(1,)"),
        bad(F32, (0, 0), says="duplicate"), bad(F32, 0, axis_index_groups=[[0]], says="named"),
    ]
CALLS["axis_index"] = CALLS["axis_size"] = [
    bad("i", **_UNBOUND), bad(None, **_UNBOUND), bad(("i", "j"), **_UNBOUND), bad(0, **_UNBOUND)]
CALLS["pcast"] = [bad(F32, "i", to="varying", says="shard_map"), bad(F32, "i"),
                  bad(F32, "i", to="x", says="'x'")]
CALLS |= {
    name: [bad(F32, axis, *more, **_UNBOUND) for axis in ("i", None, ("i", "j"), 0)]
    for name, more in {
        "all_gather": (), "psum_scatter": (), "psum_scatter_start": (), "all_to_all": (0, 0),
        "pswapaxes": (0,),
        "ppermute": ([(0, 1)],), "pshuffle": ([0],), "pbroadcast": (0,),
    }.items()
}
CALLS["ragged_all_to_all"] = [
    bad(F32, F32, ONE, ONE, ONE, ONE, axis_name="i", **_UNBOUND), bad(F32, F32, axis_name="i"),
    bad(F32, F32, ONE, ONE, ONE, ONE, axis_name=None, **_UNBOUND),
]
