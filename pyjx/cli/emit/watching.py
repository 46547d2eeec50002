"""The command again, whenever a source file changes."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

from emit_hlo.arguments import Options

_SECONDS = 0.3  # between two looks
FILES = "PYJX_EMIT_HLO_FILES"  # where a process says which files it read


def watch(options: Options) -> int:
    """Run the command in processes of its own, one after each change, until a Ctrl-C."""
    words = [w for w in options.argv if w != "--watch"]
    with tempfile.TemporaryDirectory(prefix="emit-hlo-") as folder:
        said = os.path.join(folder, "files")
        env = {**os.environ, FILES: said}
        known = _times(_named(options))  # before each run: a change while it goes on counts, too
        while True:
            subprocess.run([sys.executable, "-m", "emit_hlo", *words], env=env)
            watched = _read(said) or _named(options)
            if not watched:
                return 2
            found = _times(watched)
            if not options.quiet:
                sys.stderr.write(f"emit-hlo: watching {len(watched)} files\n")
            changed = any([known.get(path, at) != at for path, at in found.items()])
            while not changed:
                time.sleep(_SECONDS)
                changed = _times(watched) != found
            known = _times(watched)


def _read(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8") as file:
            return [line for line in file.read().split("\n") if line]
    except OSError:
        return []


def _named(options: Options) -> list[str]:
    """The file of the command line, where the program could not be imported."""
    target = options.target or ""
    place = target if os.path.isfile(target) else target.rpartition(":")[0]
    return [place] if os.path.isfile(place) else []


def _times(paths: list[str]) -> dict[str, int]:
    times = {}
    for path in map(os.path.abspath, paths):
        try:
            times[path] = os.stat(path).st_mtime_ns
        except OSError:  # an editor is replacing it
            times[path] = 0
    return times


def tell_files() -> None:
    """Say which of the user's files this process has read, if it is watched for that."""
    place = os.environ.get(FILES)
    if not place:
        return
    found = []
    installed = (os.path.dirname(os.__file__), f"{os.sep}site-packages{os.sep}")
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if path and os.path.isfile(path) and not path.startswith(installed[0]) \
                and installed[1] not in path:
            found.append(os.path.abspath(path))
    with open(place, "w", encoding="utf-8") as file:
        file.write("\n".join(sorted(set(found))))
