"""Differences between programs that are not the names of their values."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence

from pyjx.core.records import Record

# Names of values, which differ from text to text: those of MLIR and HLO, and a jaxpr's letters.
_MLIR = re.compile(r"%[\w.$-]+")
_HLO_DEFINED = re.compile(
    r"^\s*(?:ROOT )?%?([\w.-]+) = |^(?:ENTRY )?%?([\w.-]+) [({]", re.MULTILINE)
_HLO_NAME = re.compile(r"(?<![\w.\"-])%?[A-Za-z_][\w.-]*")
_LETTERS = re.compile(r"\b([a-z]+):(?:[a-z]+\d*|key<\w+>)(?:<\w+>)?\[")
_WORD = re.compile(r"(?<![\w.:\"'=-])[a-z]+(?![\w(=\"'.<-]|\[[a-z_]+=)")
_MODULE = re.compile(r"\A(module |HloModule )[@\w.$-]+")  # its name is that of the function
# What says where an operation came from, and not what it does.
_PLACES = re.compile(r",? metadata=\{[^{}]*\}| loc\((?:[^()\"]|\"[^\"]*\"|\([^()]*\))*\)")
_TABLES = re.compile(
    r"^(FileNames|FunctionNames|FileLocations|StackFrames)\n(?:.+\n)*\n?", re.MULTILINE)
_ALIASES = re.compile(r"^#loc\d* = .*\n?", re.MULTILINE)


class Difference(Record):
    """How two texts differ; true where they do, and printed as `text`.

    Attributes:
      text: a unified diff, the names of the second renamed to those of the first.
      removed, added: how many lines.
    """

    text: str
    removed: int
    added: int

    def __bool__(self) -> bool:
        return bool(self.removed or self.added)

    def __str__(self) -> str:
        return self.text


def without_places(text: str) -> str:
    """A program's text without where its operations come from."""
    return _ALIASES.sub("", _TABLES.sub("", _PLACES.sub("", text))).strip("\n")


def diff(first: str, second: str, names: tuple[str, str] = ("first", "second"), context: int = 3
         ) -> Difference:
    """How two texts of programs differ, after renumbering and without places in the source.

    Args:
      first, second: texts of jaxprs, StableHLO or HLO, both of one kind.
      names: what the two are called in the head of the diff, a pair.
      context: lines around what differs.

    Returns:
      A `Difference`: false where they are the same, and printed as a unified diff.

    Raises:
      TypeError: one of them is no text.

    >>> from pyjx import inspect
    >>> first = "%0 = sine %arg0\\n%1 = add %0, %0"
    >>> bool(inspect.diff(first, "%7 = sine %x\\n%8 = add %7, %7"))
    False
    >>> print(inspect.diff(first, "%0 = cosine %arg0\\n%1 = add %0, %0"))
    --- first
    +++ second
    @@ -1,2 +1,2 @@
    -%0 = sine %arg0
    +%0 = cosine %arg0
     %1 = add %0, %0
    """
    for text in (first, second):
        if not isinstance(text, str):
            raise TypeError("inspect.diff: expected the texts of two programs, such as "
                            f"str(program.jaxpr) or program.stablehlo(), got {type(text).__name__}")
    ours, theirs = (_MODULE.sub(r"\1program", without_places(t)).split("\n")
                    for t in (first, second))
    if ours == theirs:
        return Difference("", 0, 0)
    pattern = _pattern(first)
    known: list[frozenset[str] | None] = [None, None]
    if pattern is not _MLIR:
        known = [_defined(text, pattern) for text in (first, second)]
    renamed = _renamed(ours, theirs, pattern, known)
    lines = list(difflib.unified_diff(
        ours, renamed, names[0], names[1], n=context, lineterm=""))
    return Difference("\n".join(lines), _count(lines, "-"), _count(lines, "+"))


def _count(lines: Sequence[str], mark: str) -> int:
    return sum([line.startswith(mark) for line in lines[2:]])


def _pattern(text: str) -> re.Pattern[str]:
    head = text.lstrip()
    if head.startswith("HloModule"):
        return _HLO_NAME
    return _WORD if head.startswith(("{ lambda", "let ")) else _MLIR


def _defined(text: str, pattern: re.Pattern[str]) -> frozenset[str]:
    """The names of values that a text defines."""
    if pattern is _WORD:
        return frozenset(_LETTERS.findall(text))
    return frozenset([a or b for a, b in _HLO_DEFINED.findall(text)] + re.findall(
        r"([\w.-]+): \(?[a-z]+\d*\[", text))


def _scopes(lines: list[str]) -> list[str]:
    """For each line the function that it is in, whose names are its own."""
    scope, scopes = "", []
    for line in lines:
        head = re.match(r"\s*func\.func .*?@([\w.$-]+)|(?:ENTRY )?%?([\w.-]+) [({].*\{$", line)
        if head is not None:
            scope = head[1] or head[2]
        scopes.append(scope)
    return scopes


class _Names:
    """The names of values in the lines of a text."""

    def __init__(self, lines: list[str], pattern: re.Pattern[str], known: frozenset[str] | None
                 ) -> None:
        self.lines = lines
        self.scopes = _scopes(lines)
        self._pattern = pattern
        self._known = known

    def is_name(self, word: str) -> bool:
        return self._known is None or word.lstrip("%") in self._known

    def masked(self) -> list[str]:
        """The lines without names."""
        return [self._pattern.sub(lambda m: "%" if self.is_name(m[0]) else m[0], line)
                for line in self.lines]

    def on(self, i: int) -> list[tuple[str, str]]:
        """The names on a line, each with its scope."""
        return [(self.scopes[i], w) for w in self._pattern.findall(self.lines[i])
                if self.is_name(w)]

    def replaced(self, i: int, new: Callable[[tuple[str, str]], str]) -> str:
        """A line with other names."""
        return self._pattern.sub(
            lambda m: new((self.scopes[i], m[0])) if self.is_name(m[0]) else m[0], self.lines[i])


def _renamed(ours: list[str], theirs: list[str], pattern: re.Pattern[str],
             known: list[frozenset[str] | None]) -> list[str]:
    """Their lines with our names, as far as lines correspond."""
    a, b = (_Names(lines, pattern, k) for lines, k in zip((ours, theirs), known, strict=True))
    matcher = difflib.SequenceMatcher(None, a.masked(), b.masked(), autojunk=False)
    to_ours: dict[tuple[str, str], str] = {}
    taken: set[tuple[str, str]] = set()
    for tag, i, stop, j, j_stop in matcher.get_opcodes():
        if tag not in ("equal", "replace") or stop - i != j_stop - j:
            continue
        for mine, other in zip(map(a.on, range(i, stop)), map(b.on, range(j, j_stop)),
                               strict=True):
            pairs = list(zip(mine, other, strict=False))
            for x, y in pairs if tag == "equal" else pairs[:1]:
                if y not in to_ours and x not in taken:
                    to_ours[y] = x[1]
                    taken.add(x)
    names = {name for _, name in taken}

    def new(place: tuple[str, str]) -> str:
        if place not in to_ours:  # there is none of ours for it
            name = place[1]
            while name in names:
                name += "'"
            to_ours[place] = name
            names.add(name)
        return to_ours[place]

    return [b.replaced(j, new) for j in range(len(theirs))]
