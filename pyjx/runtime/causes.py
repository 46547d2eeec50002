"""Why a function was traced again: what differs from the nearest trace before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyjx.core.avals import ShapedArray
from pyjx.core.records import Record
from pyjx.runtime.descriptions import brief
from pyjx.runtime.ledger import Entry, Layout, Path, layout_of


class Change(Record):
    """One difference between a trace and an earlier one.

    Attributes:
      kind: what differs: `shape`, `rank`, `dtype`, `weak type`, `static`, `structure`, `keyword`,
        `function`, `options`, `flag`, `axes`, `tracer`, `cleared` or `evicted`.
      where: the argument with its path, such as `batch['x']`, or the flag; empty for the function.
      before, after: what it was and what it is.
    """

    kind: str
    where: str
    before: str
    after: str

    def __str__(self) -> str:
        where = f"{self.where}: " if self.where else ""
        return f"{where}{self.before} -> {self.after}" if self.before else f"{where}{self.after}"


CURES = {
    "shape": "pad the argument to one of a few shapes",
    "rank": "give the argument the same number of axes in each call",
    "dtype": "convert the argument to one dtype before the call",
    "weak type": "always pass an array, as by jnp.asarray(x, dtype), or always a Python number",
    "static": "pass the value as an array, unless shapes or Python control flow depend on it",
    "identity": "give the class of the argument __eq__ and __hash__, or make the object once",
    "structure": "pass the same structure in each call",
    "keyword": "pass the argument in the same way, by position or by keyword, in each call",
    "function": "make the function and jit it once, outside of the loop or function that calls it",
    "options": "jit the function once, with the same options",
    "flag": "set the flag once, before the first call",
    "axes": "use the same names and sizes of axes",
    "tracer": "pass the value that the function closes over as an argument",
    "cleared": "clear the caches less often",
    "evicted": "call the function with fewer signatures",
}


def cure_for(change: Change) -> str:
    """What to do about it."""
    return CURES["identity" if change.kind == "static" and "another" in change.after
                 else change.kind]


def type_text(aval: Any) -> str:
    """`f32[3]`, or `weak f32[]` for what Python numbers make."""
    text: str = aval.str_short(True)
    return f"weak {text}" if getattr(aval, "weak_type", False) else text


def layout(entry: Entry) -> Layout:
    """The structure of an entry's arguments."""
    if entry.layout is None:
        entry.layout, entry.tree = layout_of(entry.source, entry.tree, entry.static), None
    return entry.layout


def arguments(entry: Entry) -> list[str]:
    """What the function was traced for: `x: f32[3]` for each leaf, and the static arguments."""
    paths = layout(entry).leaves
    texts = [f"{''.join(p)}: {type_text(a)}" for p, a in zip(paths, entry.avals, strict=True)]
    return texts + [f"{s.name} = {s.text}" for s in entry.static]


def changes_of(entry: Entry, earlier: Sequence[Entry]) -> tuple[Change, ...]:
    """What differs from the nearest of the earlier entries; empty for the first one."""
    if not earlier:
        return ()
    own = [e for e in earlier if e.function == entry.function]
    if not own:
        nearest = min(reversed(earlier), key=lambda e: _distance(_signature_changes(e, entry)))
        return (_new_function(nearest, entry), *_signature_changes(nearest, entry))
    found = [_signature_changes(e, entry) for e in reversed(own)]
    nearest_changes = min(found, key=_distance)
    return nearest_changes or (_dropped(own, entry),)


def _distance(changes: Sequence[Change]) -> int:
    return sum([4 if c.kind == "structure" else 1 for c in changes])


def _new_function(before: Entry, after: Entry) -> Change:
    """A function like one before, but another object: what it has with it may differ."""
    made = {
        "partial": "a functools.partial made anew",
        "method": "a method of another object",
        "object": "another callable object",
        "wrapper": "a transformed function made anew",
    }.get(after.source.made, "a function made anew by the same code")
    then = dict(before.source.captured)
    differing = [f"{name}: {then[name]} -> {text}" for name, text in after.source.captured
                 if name in then and then[name] != text]
    having = f", with {', '.join(differing)}" if differing else ""
    return Change("function", "", "", made + having)


def _dropped(own: Sequence[Entry], entry: Entry) -> Change:
    """It had been traced for the same before."""
    if entry.captures_tracers:
        return Change("tracer", "", "", "the function closes over a value that is being traced, "
                                        "and is traced anew with each")
    if entry.clears > own[-1].clears:
        return Change("cleared", "", "", "the traces had been cleared (clear_caches, clear_cache)")
    return Change("evicted", "", "", "the trace had been dropped: only so many signatures are kept")


def _signature_changes(before: Entry, after: Entry) -> tuple[Change, ...]:
    changes: list[Change] = []
    if before.options != after.options:
        changes += [Change("options", f"jit(..., {name})", brief(then), brief(now))
                    for name, then, now in zip(after.options._fields, before.options, after.options,
                                               strict=True)
                    if then != now]
    if before.tree_hash != after.tree_hash or layout(before) != layout(after):
        changes += _structure_changes(before, after)
    changes += _type_changes(before, after)
    changes += _static_changes(before, after)
    if before.flags != after.flags:
        then, now = dict(before.flags), dict(after.flags)
        for name in sorted({*then, *now}):
            if then.get(name) != now.get(name):
                changes.append(Change("flag", name, then.get(name, "default"),
                                      now.get(name, "default")))
    if before.axes != after.axes:
        changes.append(Change("axes", "named axes", before.axes or "none", after.axes or "none"))
    return tuple(changes)


def _type_changes(before: Entry, after: Entry) -> list[Change]:
    then = dict(zip(layout(before).leaves, before.avals, strict=True))
    changes = []
    for path, now in zip(layout(after).leaves, after.avals, strict=True):
        old = then.get(path)
        if old is not None and old is not now and old != now:
            changes.append(Change(_kind(old, now), "".join(path), type_text(old), type_text(now)))
    return changes


def _kind(old: Any, now: Any) -> str:
    if not (isinstance(old, ShapedArray) and isinstance(now, ShapedArray)):
        return "dtype"
    if len(old.shape) != len(now.shape):
        return "rank"
    if old.shape != now.shape:
        return "shape"
    return "dtype" if old.dtype != now.dtype else "weak type"


def _static_changes(before: Entry, after: Entry) -> list[Change]:
    then = {s.name: s for s in before.static}
    changes = []
    for now in after.static:
        old = then.pop(now.name, None)
        if old is None:
            changes.append(Change("static", now.name, "not given", now.text))
        elif old != now:
            same = old.text == now.text
            text = f"another {now.kind} that does not equal it" if same and old.kind == now.kind \
                else f"{now.text} of type {now.kind}" if same else now.text
            changes.append(Change("static", now.name, old.text, text))
    return changes + [Change("static", s.name, s.text, "not given") for s in then.values()]


def _structure_changes(before: Entry, after: Entry) -> list[Change]:
    """Nodes that differ, and leaves that came or went where no node around them tells more."""
    old, new = layout(before), layout(after)
    then, now = dict(old.nodes), dict(new.nodes)
    changes = []
    told: set[Path] = set()
    old_types = dict(zip(old.leaves, before.avals, strict=True))
    new_types = dict(zip(new.leaves, after.avals, strict=True))

    def text(nodes: dict[Path, str], types: dict[Path, Any], path: Path) -> str:
        return nodes.get(path) or (type_text(types[path]) if path in types else "not given")

    paths = list(dict.fromkeys([p for p, _ in new.nodes] + list(new.leaves)
                               + [p for p, _ in old.nodes] + list(old.leaves)))
    for path in sorted(paths, key=len):
        if any([path[:n] in told for n in range(1, len(path))]):
            continue
        a, b = text(then, old_types, path), text(now, new_types, path)
        if (path in old_types and path in new_types) or a == b:
            continue
        told.add(path)
        keys = _key_changes(path, old, new) if a.startswith("dict") and b.startswith("dict") else []
        changes += keys or [Change("structure", "".join(path), a, b)]
    if not changes and old.keywords != new.keywords:
        for name in sorted({*old.keywords} ^ {*new.keywords}):
            by = ("by keyword", "by position") if name in old.keywords else (
                "by position", "by keyword")
            changes.append(Change("keyword", name, *by))
    return changes or [Change("structure", "the arguments", "", "another structure of containers")]


def _key_changes(path: Path, old: Layout, new: Layout) -> list[Change]:
    """Keys that a dict has more or less."""
    n = len(path)

    def keys(layout: Layout) -> list[str]:
        inside = [p[n] for p in (*layout.leaves, *[p for p, _ in layout.nodes])
                  if len(p) > n and p[:n] == path]
        return list(dict.fromkeys(inside))

    then, now, where = keys(old), keys(new), "".join(path)
    return [
        *[Change("structure", where + k, "", "new key") for k in now if k not in then],
        *[Change("structure", where + k, "", "key gone") for k in then if k not in now],
    ]
