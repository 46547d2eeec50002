"""The command: `python -m tests.oracle --seed S --count N [--kind calls|...] [--minutes M]`."""

from __future__ import annotations

import argparse
import os
import sys
import time

from tests.oracle.campaign import Campaign, Tally, described, generated, makers, table
from tests.oracle.comparison import compare, shown
from tests.oracle.processes import VARIABLE, Pair

KINDS = ("calls", "indexing", "programs", "pytrees", "errors", "devices", "rules", "references",
         "kernels")


def replayed(pair: Pair, name: str) -> None:
    """Show one program, by the name that a report gives it, and both outcomes."""
    seed, kind, number = name.rsplit("/", 2)
    made = generated(seed, kind, makers(pair)[kind], int(number))
    program = next(made)[1]
    (ours, theirs), = pair.run([program])
    print(program.snippet())
    for who, outcome in (("pyjx", ours), ("jax", theirs)):
        print(f"# {who}: {outcome if outcome['is'] == 'value' else shown(outcome)}")
    print("#", compare(ours, theirs))


def progress(tally: Tally) -> None:
    print(f"{tally.ran} ran, {len(tally.failures)} differ", end="\r", file=sys.stderr)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.oracle", description=__doc__)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--start", type=int, default=0, help="number of the first program")
    parser.add_argument("--kind", action="append", choices=KINDS, help="all by default")
    parser.add_argument("--minutes", type=float, default=None)
    parser.add_argument("--limit", type=float, default=40.0, help="seconds for one program")
    parser.add_argument("--no-shrinking", action="store_true")
    parser.add_argument("--internal", action="store_true",
                        help="list errors whose message says nothing about the argument")
    parser.add_argument("--messages", action="store_true",
                        help="list errors that both raise with different messages")
    parser.add_argument("--replay", metavar="SEED/KIND/NUMBER", help="run one program and show it")
    options = parser.parse_args()
    oracle = os.environ.get(VARIABLE)
    if not oracle:
        parser.error(f"set {VARIABLE} to a Python that has jax")
    begun = time.monotonic()
    with Pair(oracle, options.limit) as pair:
        if options.replay:
            replayed(pair, options.replay)
            return 0
        campaign = Campaign(pair, small=not options.no_shrinking)
        tally = campaign.run(options.seed, options.count, options.kind or KINDS, options.minutes,
                             options.start, lambda f: print(described(f), flush=True), progress)
    listed = tally.internal * options.internal + tally.other_messages * options.messages
    for name, ours, theirs in listed:
        print(f"{name}\n    pyjx: {ours}\n    jax:  {theirs}")
    print(table(tally))
    print(f"{time.monotonic() - begun:.0f} s", file=sys.stderr)
    return 1 if tally.failures else 0


if __name__ == "__main__":
    sys.exit(main())
