"""Two outcomes side by side: what differs, and whether it counts."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from tests.oracle.processes import Outcome


@dataclass(frozen=True)
class Difference:
    """`cause` is what differs (dtype, weak, shape, value, raises, ...), the rest says how."""

    cause: str
    ours: str
    theirs: str

    @property
    def key(self) -> tuple[str, str]:
        """What must stay the same while a program is shrunk."""
        return self.cause, head(self.ours) if self.cause in ("raises", "error") else ""


# Roundings that a tolerance allows, in units of the dtype's last place.
ROUNDINGS = 64.0
NO_SUCH_NAME = re.compile(r"(module|package) '?pyjx[\w.]*'? has no attribute|"
                          r"No module named 'pyjx|is not (yet )?(implemented|supported) by pyjx")


def head(s: str) -> str:
    return s.split(":")[0]


def shown(outcome: Outcome) -> str:
    if outcome["is"] == "error":
        lines = outcome["message"].strip().splitlines() or [""]
        return f"{outcome['type']}: {lines[0]}"
    return str(outcome.get("message", outcome["is"]))


def missing(ours: Outcome) -> bool:
    """The program uses a name that pyjx does not have yet."""
    return ours["is"] == "error" and bool(NO_SUCH_NAME.search(ours["message"]))


def normalised(message: str) -> str:
    """The first line of a message without addresses, quotes and the package's name."""
    line = (message.strip().splitlines() or [""])[0]
    line = re.sub(r"0x[0-9a-f]+", "0x", line.replace("pyjx", "jax"))
    return re.sub(r"[\s'\"`]+", " ", line).strip().rstrip(".")


def same_message(ours: Outcome, theirs: Outcome) -> bool:
    return normalised(ours["message"]) == normalised(theirs["message"])


INTERNAL_TYPES = ("AssertionError", "KeyError", "UnboundLocalError", "NameError", "OverflowError",
                  "RecursionError", "MLIRError", "StopIteration", "ZeroDivisionError")
INTERNAL = re.compile(
    r"has no attribute|is not subscriptable|unhashable type|is not iterable|NoneType|"
    r"unsupported operand|"
    r"(list|tuple|assignment) index out of range|not enough values to unpack|"
    r"too many values to unpack|object cannot be interpreted|must be real number|"
    r"^'builtin_function_or_method'|expects? string or|has no len|MLIR|stablehlo|INTERNAL|"
    r"zip\(\) argument|max\(\) arg|min\(\) arg|must be a string or a real number|float\(\) arg|"
    r"not compatible with finfo|verifier errors|too large to convert|Invalid type:|"
    r"iteration over a 0-d|std::bad_cast|incompatible function arg|for axis 0 with size 0|"
    r"Unhandled OpSharding|is not implemented for `jax\.sharding\.Abstract|"
    r"inhomogeneous shape|cannot be resolved|Non-hashable static|^\d+$|^$")


def internal(outcome: Outcome) -> bool:
    """The message is Python's or the compiler's own: the argument was not looked at."""
    return internal_text(outcome["type"], normalised(outcome["message"]))


def internal_text(kind: str, message: str) -> bool:
    return kind in INTERNAL_TYPES or bool(INTERNAL.search(message))


# -- values ----------------------------------------------------------------------------------------


def elements(x: dict[str, Any]) -> np.ndarray:
    dtype = np.dtype(x["dtype"]) if "V" not in x["dtype"] and "[" not in x["dtype"] else None
    if dtype is None:
        return np.zeros(x["shape"], bool)
    return np.frombuffer(base64.b64decode(x["data"]), dtype).reshape(x["shape"])


def unit(dtype: np.dtype) -> float:
    kind = {"complex64": "float32", "complex128": "float64"}.get(str(dtype), str(dtype))
    return float(ml_dtypes.finfo(kind).eps)


def gap(a: np.ndarray, b: np.ndarray) -> float:
    """The largest difference, in units of the last place of the largest finite element."""
    if a.size == 0 or a.tobytes() == b.tobytes():
        return 0.0
    if a.dtype.kind in "biu":
        return float("inf")
    eps = unit(a.dtype)
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        x, y = a.astype(wide), b.astype(wide)
        if a.dtype.kind == "c":
            x = np.stack([x.real, x.imag])
            y = np.stack([y.real, y.imag])
        if not np.array_equal(np.isfinite(x), np.isfinite(y)):
            return float("inf")
        odd = ~np.isfinite(x)
        if not np.array_equal(x[odd], y[odd], equal_nan=True):
            return float("inf")
        apart = np.abs(x[~odd] - y[~odd])
        if not apart.size or not apart.any():
            return 0.0
        scale = max(float(np.abs(y[~odd]).max()), 1e-30)
        return float(apart.max() / scale / eps)


def value_difference(a: dict[str, Any], b: dict[str, Any], path: str) -> list[Difference]:
    """Differences of two described values; the first that is found is the telling one."""
    kinds = (a["is"], b["is"])
    if kinds[0] != kinds[1]:
        return [Difference("kind", f"{kinds[0]} {brief(a)}", f"{kinds[1]} {brief(b)}")]
    if a["is"] == "plain":
        return [] if (a["type"], a["value"]) == (b["type"], b["value"]) else close_plain(a, b)
    if a["is"] == "object":
        same = a["type"] == b["type"] and a["value"] == b["value"]
        return [] if same else [Difference("object", brief(a), brief(b))]
    if a["is"] in ("dict", "sequence"):
        return container_difference(a, b, path)
    for cause in ("dtype", "shape", "weak"):
        if a.get(cause) != b.get(cause):
            return [Difference(cause, brief(a), brief(b))]
    if a["data"] == b["data"]:
        return []
    if a["is"] == "keys" or a["dtype"] == "object":
        return [Difference("value", brief(a), brief(b))]
    distance = gap(elements(a), elements(b))
    if distance == 0.0:  # signs of zero, bits of NaN
        return [Difference("sign of zero", brief(a), brief(b))]
    cause = "rounding" if distance <= ROUNDINGS else "value"
    return [Difference(cause, f"{brief(a)} ({distance:.3g} ulp apart)", brief(b))]


def close_plain(a: dict[str, Any], b: dict[str, Any]) -> list[Difference]:
    if a["type"] != b["type"]:
        return [Difference("type", brief(a), brief(b))]
    return [Difference("value", brief(a), brief(b))]


def container_difference(a: dict[str, Any], b: dict[str, Any], path: str) -> list[Difference]:
    if a["type"] != b["type"]:
        return [Difference("container", brief(a), brief(b))]
    if len(a["items"]) != len(b["items"]):
        return [Difference("length", brief(a), brief(b))]
    found: list[Difference] = []
    for i, (x, y) in enumerate(zip(a["items"], b["items"], strict=True)):
        if a["is"] == "dict":
            if x[0] != y[0]:
                return [Difference("keys", brief(a), brief(b))]
            x, y = x[1], y[1]
        found += value_difference(x, y, f"{path}[{i}]")
    return found


def brief(x: dict[str, Any]) -> str:
    if x["is"] in ("plain", "object"):
        return f"{x['type']} {x['value']}"
    if x["is"] in ("dict", "sequence"):
        parts = [brief(i[1] if x["is"] == "dict" else i) for i in x["items"][:4]]
        return f"{x['type']}({', '.join(parts)})"[:300]
    weak = "~" if x.get("weak") else ""
    values = ""
    if x["is"] != "keys" and x["dtype"] != "object":
        flat = elements(x).ravel()
        values = " " + " ".join(map(str, flat[:8].tolist()))
    return f"{x['is']} {weak}{x['dtype']}{x['shape']}{values}"


# -- outcomes --------------------------------------------------------------------------------------

RANKING = ("kind", "container", "length", "keys", "type", "dtype", "shape", "weak", "object",
           "value", "sign of zero", "rounding")


def compare(ours: Outcome, theirs: Outcome) -> Difference | None:
    """The gravest difference of two outcomes, or None."""
    if ours["is"] in ("crash", "hang") or theirs["is"] in ("crash", "hang"):
        if ours["is"] == theirs["is"]:
            return None
        return Difference(ours["is"] if ours["is"] in ("crash", "hang") else "oracle fails",
                          shown(ours), shown(theirs))
    if ours["is"] == "error" and theirs["is"] == "error":
        if ours["builtin"] == theirs["builtin"] or set(theirs["bases"]) <= set(ours["bases"]):
            return None
        return Difference("error", shown(ours), shown(theirs))
    if ours["is"] == "error":
        return Difference("raises", shown(ours), brief(theirs["value"]))
    if theirs["is"] == "error":
        return Difference("accepts", brief(ours["value"]), shown(theirs))
    found = value_difference(ours["value"], theirs["value"], "result")
    if not found:
        if ours["warnings"] != theirs["warnings"]:
            return Difference("warnings", str(ours["warnings"]), str(theirs["warnings"]))
        return None
    return min(found, key=lambda d: RANKING.index(d.cause))
