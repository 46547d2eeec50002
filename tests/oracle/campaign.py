"""A run of the tester: programs made, run on both sides, compared, failures shrunk, and a table."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from tests.oracle import devices, errors, indexing, kernels, programs, pytrees, references, rules
from tests.oracle.calls import Calls, functions_of
from tests.oracle.comparison import Difference, compare, internal, missing, same_message, shown
from tests.oracle.conditioning import as_precise, ill_conditioned, vanishing
from tests.oracle.explained import reason
from tests.oracle.forward import seconded
from tests.oracle.language import Program
from tests.oracle.processes import Outcome, Pair
from tests.oracle.shrinking import shrunk
from tests.oracle.values import Gen

BATCH = 40
# Candidates tried to make a program smaller that hangs or ends a process, which takes its time.
QUICK = 15.0  # seconds for a candidate
COSTLY = {"hang": 10, "crash": 60, "oracle fails": 0}


@dataclass
class Failure:
    """A program that gives something else than in the oracle, before and after shrinking."""

    seed: str
    program: Program
    difference: Difference
    small: Program

    @property
    def group(self) -> tuple[str, str]:
        """Failures of one function and one kind stand together in the table."""
        names = functions_of(self.small) or self.small.calls
        return self.difference.cause, ", ".join(names[:3])


@dataclass
class Tally:
    """What became of the programs."""

    ran: int = 0
    identical: int = 0
    both_raise: int = 0
    messages: int = 0  # of the latter, with the same message
    rounding: int = 0
    signs: int = 0
    missing: Counter[str] = field(default_factory=Counter)
    explained: Counter[str] = field(default_factory=Counter)
    internal: list[tuple[str, str, str]] = field(default_factory=list)
    other_messages: list[tuple[str, str, str]] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)


Maker = Callable[[Gen], Program]


def makers(pair: Pair) -> dict[str, Maker]:
    calls = Calls(pair.theirs.names, pair.ours.names)
    return {"calls": calls.program, "indexing": indexing.program, "programs": programs.program,
            "pytrees": pytrees.program, "errors": errors.Errors(calls).program,
            "devices": devices.program, "rules": rules.program,
            "references": references.program, "kernels": kernels.program}


def generated(seed: str, kind: str, make: Maker, start: int) -> Iterator[tuple[str, Program]]:
    number = start
    while True:
        name = f"{seed}/{kind}/{number}"
        gen = Gen(name, x64=number % 5 == 4)
        yield name, make(gen)
        number += 1


class Campaign:
    """Runs programs of the given kinds in turn until the count or the time is reached."""

    def __init__(self, pair: Pair, small: bool = True) -> None:
        self.pair = pair
        self.small = small
        self.tally = Tally()
        self.makers = makers(pair)
        self.known: Counter[tuple[str, str]] = Counter()

    def run(self, seed: str, count: int, kinds: Sequence[str], minutes: float | None = None,
            start: int = 0, report: Callable[[Failure], None] | None = None,
            progress: Callable[[Tally], None] | None = None) -> Tally:
        end = time.monotonic() + 60 * minutes if minutes else float("inf")
        sources = [generated(seed, kind, self.makers[kind], start) for kind in kinds]
        while self.tally.ran < count and time.monotonic() < end:
            room = min(BATCH, count - self.tally.ran)
            batch = [next(sources[(self.tally.ran + i) % len(sources)]) for i in range(room)]
            outcomes = self.pair.run([p for _, p in batch])
            for (name, program), (ours, theirs) in zip(batch, outcomes, strict=True):
                failure = self.judge(name, program, ours, theirs)
                if failure is not None and report is not None:
                    report(failure)
            if progress is not None:
                progress(self.tally)
        return self.tally

    def judge(self, name: str, program: Program, ours: Outcome,
              theirs: Outcome) -> Failure | None:
        tally = self.tally
        tally.ran += 1
        if missing(ours) and theirs["is"] != "crash":
            tally.missing[shown(ours)] += 1
            return None
        difference = compare(ours, theirs)
        if difference is None:
            tally.identical += 1
            if ours["is"] == "error" and theirs["is"] == "error":
                tally.both_raise += 1
                if same_message(ours, theirs):
                    tally.messages += 1
                else:
                    tally.other_messages.append((name, shown(ours), shown(theirs)))
                if internal(ours) and not internal(theirs):
                    tally.internal.append((name, shown(ours), shown(theirs)))
            return None
        if difference.cause == "rounding" or (difference.cause == "value" and self.rounded(
                program, ours, theirs)):
            tally.rounding += 1
            return None
        if difference.cause == "sign of zero":
            tally.signs += 1
            return None
        why = reason(program, difference)
        if why is None and difference.cause == "value":
            why = seconded(self.pair.theirs, program, ours)
        if why is None:
            return self.failed(name, program, difference)
        tally.explained[why] += 1
        return None

    def rounded(self, program: Program, ours: Outcome, theirs: Outcome) -> bool:
        """Whether the values differ by no more than roundings do to such a program."""
        worker = self.pair.theirs
        return (ill_conditioned(worker, program, ours, theirs)
                or as_precise(worker, program, ours, theirs)
                or vanishing(self.pair.ours, worker, program, ours, theirs))

    def failed(self, name: str, program: Program, difference: Difference) -> Failure | None:
        """Shrink the program, and ask again whether the difference is a known one."""
        small = program
        if self.small and self.known[(difference.cause, program.calls[0])] < 3:
            budget = COSTLY.get(difference.cause, 400)
            small = shrunk(program, lambda ps: self.same(ps, difference), budget)
            again = compare(*self.pair.run([small])[0])
            if again is None and small is program:
                self.tally.explained["does not happen again: state of the process"] += 1
                return None
            difference = again or difference
            why = reason(small, difference)
            if why is not None:
                self.tally.explained[why] += 1
                return None
        self.known[(difference.cause, program.calls[0])] += 1
        failure = Failure(name, program, difference, small)
        self.tally.failures.append(failure)
        return failure

    def same(self, programs: Sequence[Program], difference: Difference) -> list[bool]:
        found = []
        for ours, theirs in self.pair.run(programs, limit=QUICK):
            other = None if missing(ours) else compare(ours, theirs)
            found.append(other is not None and other.key == difference.key)
        return found


def described(f: Failure) -> str:
    return (f"--- {f.difference.cause}   (seed {f.seed})\n{f.small.snippet()}\n"
            f"# pyjx: {f.difference.ours}\n# jax:  {f.difference.theirs}\n")


def table(tally: Tally) -> str:
    """The summary as text."""
    rows = [("programs run", tally.ran), ("identical", tally.identical),
            ("  of these, both raise", tally.both_raise),
            ("    with the same message", tally.messages),
            ("equal up to rounding", tally.rounding),
            ("equal up to signs of zero or NaN bits", tally.signs),
            ("explained", sum(tally.explained.values())),
            ("names not there yet", sum(tally.missing.values())),
            ("internal messages", len(tally.internal)),
            ("different", len(tally.failures))]
    lines = [f"{name:<42}{number:>8}" for name, number in rows]
    if tally.explained:
        lines += ["", "explained:"]
        lines += [f"{n:>8}  {why}" for why, n in tally.explained.most_common()]
    if tally.missing:
        lines += ["", "not there yet:", *[f"{n:>8}  {what}" for what, n in tally.missing.items()]]
    groups = Counter(f.group for f in tally.failures)
    if groups:
        lines += ["", "different, by cause:"]
        lines += [f"{n:>8}  {cause:<10} {names}" for (cause, names), n in groups.most_common()]
    return "\n".join(lines)
