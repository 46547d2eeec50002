"""The disk cache of executables: a program that was compiled once is loaded from then on.

Loading takes a fraction of a millisecond to a few, compiling the smallest program 5 to 25, so
every program is kept, single operations too. One file an entry, named by a hash of everything
that the executable depends on: program, options, jaxlib, platform, devices and host CPU. Entries
are replaced atomically and carry a checksum, so processes may share the folder, and what is
damaged is compiled again. The folder is the user's own (mode 0700); one that another user owns or
may write to is not used, because an executable is code. (Where the umask leaves the group its
rights, the group is the user's own.) The oldest entries go when the folder
outgrows `cache_max_bytes`.
"""

from __future__ import annotations

import math
import os
import platform
import re
import stat
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

from lowering.program import LoweredProgram
from pyjx import configuration as config
from pyjx import jaxlib_api
from pyjx.core import logs
from pyjx.core.bounded import BoundedDict, kept
from pyjx.core.frames import is_of_handler, warn
from pyjx.lazy import deferred

hashlib = deferred("hashlib")  # loads OpenSSL

_MAGIC = b"PYJXEXE\x01"
_DIGEST_SIZE = 32
_SUFFIX = ".xla"
_NOTE = ".note"
_NOTE_LIFETIME = 30 * 86400.0  # seconds after which nobody minds that a program ended a process
_TEMPORARY_LIFETIME = 3600.0  # seconds after which another process's temporary file is litter
_TOUCH_INTERVAL = 3600.0  # entries are marked as used at most this often
_KEEP_FRACTION = 0.8  # of the bound, when entries are evicted


class CacheVerificationError(RuntimeError):
    """A program on disk is not what compiling it anew gives.

    Ways out: delete the folder of the cache, which `python -m pyjx doctor` names, or turn the flag
    off that compares them.
    """


def _failed(error: Exception, message: str) -> None:
    """Note that the cache can't be used, which programs do without, unless the flag
    `jax_raise_persistent_cache_errors` wants the error."""
    if config.raise_persistent_cache_errors.value:
        raise error
    logs.log(__name__, logs.DEBUG, f"{message}: {error}")


# ---- where --------------------------------------------------------------------------------


def wanted_folder() -> str:
    explicit = config.compilation_cache_dir.value or config.cache_dir.value
    if explicit:
        return os.path.expanduser(explicit)
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        base = os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "pyjx") if os.path.isabs(base) else ""


@lru_cache(maxsize=16)
def _usable(folder: str) -> bool:
    """Make the folder if need be; whether it is safe and writable."""
    try:
        if "://" in folder:
            raise OSError("not a local folder")
        os.makedirs(folder, mode=0o700, exist_ok=True)
        info = os.stat(folder)
        if not stat.S_ISDIR(info.st_mode):
            raise OSError("not a folder")
        if not _is_private(info):
            raise OSError("another user owns it or may write to it")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise OSError("not writable")
    except OSError as error:
        _failed(error, f"no compilation cache in {folder}")
        if config.compilation_cache_dir.value or config.cache_dir.value:  # the user named it
            warn(f"Compiled programs cannot be kept in {folder} ({error}): each process compiles "
                 "them. Name a folder of yours by PYJX_CACHE_DIR; PYJX_CACHE=0 keeps none.")
        return False
    return True


def _is_private(info: os.stat_result) -> bool:
    if os.name != "posix":
        return True
    foreign = stat.S_IWOTH | (_umask() & stat.S_IWGRP)
    return info.st_uid == os.geteuid() and not info.st_mode & foreign


@lru_cache(maxsize=1)
def _umask() -> int:
    """The rights that the user gives nobody else; it can't be asked for without setting it, but on
    Linux."""
    try:
        with open("/proc/self/status") as f:
            return next(int(line.split()[1], 8) for line in f if line.startswith("Umask:"))
    except (OSError, StopIteration):
        old = os.umask(0o077)
        os.umask(old)
        return old


def folder() -> str | None:
    """The folder in use, or None where the cache is off or cannot be used."""
    if not (config.cache.value and config.enable_compilation_cache.value):
        return None
    path = wanted_folder()
    return path if _usable(path) else None


def forget_folders() -> None:
    """Look at folders anew, of which some may have come or gone."""
    _usable.cache_clear()
    _umask.cache_clear()


def set_cache_dir(path: str | os.PathLike[str]) -> None:
    """Keep compiled programs in this folder, from now on: the flag `jax_compilation_cache_dir`.

    Who may write to the folder may run code in processes that read it.

    >>> import pyjx as jax
    >>> from pyjx.experimental.compilation_cache import compilation_cache
    >>> before = jax.config.jax_compilation_cache_dir
    >>> compilation_cache.set_cache_dir("/tmp/programs")
    >>> jax.config.jax_compilation_cache_dir
    '/tmp/programs'
    >>> jax.config.update("jax_compilation_cache_dir", before)
    """
    config.config.update("jax_compilation_cache_dir", os.fspath(path))


# ---- keys ---------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def cpu_facts() -> tuple[str, ...]:
    """What the system says of the first processor: its name and features."""
    try:
        with open("/proc/cpuinfo", "rb") as f:
            first = f.read(8192).split(b"\n\n")[0].decode("ascii", "replace")
    except OSError:
        return (platform.processor(),)
    return tuple([line for line in first.splitlines()
                  if line.startswith(("flags", "Features", "model name", "CPU part"))])


@lru_cache(maxsize=1)
def _host_cpu() -> bytes:
    """What code for this host may rely on: machine, CPU features, number of threads, which is that
    of the CPUs that this process may use: for so many XLA divides loops, and is slow on fewer."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    facts = [sys.platform, os.uname().machine if hasattr(os, "uname") else "",
             str(cpus), os.environ.get("NPROC", "")]
    return "\n".join([*facts, *cpu_facts()]).encode()


@kept(64)
def _platform(client: Any, kinds: tuple[str, ...], count: int) -> bytes:
    version = jaxlib_api.JAXLIB_RELEASE
    facts = (version, client.platform, client.platform_version, str(client.process_index()),
             str(count), *kinds)
    return "\n".join(facts).encode() + _host_cpu()


# By id; the options are kept, so ids stay.
_option_bytes = BoundedDict(256, "compiler options as bytes")


def _serialized(options: Any) -> bytes:
    known = _option_bytes.get(id(options))
    if known is None:
        known = _option_bytes[id(options)] = options, options.SerializeAsString()
    return known[1]  # type: ignore[no-any-return]


# Source locations do not change what a program does. `loc(#loc3)` after an operation or an
# argument, and the lines that define the aliases.
_LOCATIONS = r'(?m)^#loc\w* = .*\n?|^#\w+ = loc\(.*\n?| loc\(#\w+\)'


def source(program: LoweredProgram | str | bytes) -> str | bytes:
    """What XLA gets: with locations, which name the operations in profiles and dumps."""
    return program.located_text() if isinstance(program, LoweredProgram) else program


def _known_by(program: LoweredProgram | str | bytes) -> str | bytes:
    """What the key says of a program: its text, with locations where the flag wants them there."""
    if config.compilation_cache_include_metadata_in_key.value:
        return source(program)
    if isinstance(program, LoweredProgram):
        return program.text
    if isinstance(program, str) and "loc(" in program:
        return re.sub(_LOCATIONS, "", program)
    return program


def _flags() -> bytes:
    return "\n".join(
        f"{name}={os.environ.get(name, '')}" for name in ("XLA_FLAGS", "LIBTPU_INIT_ARGS")
    ).encode()


def entry_for(client: Any, program: LoweredProgram | str | bytes, devices: tuple[Any, ...],
              options: Any) -> Entry | None:
    """The place of a program in the cache, or None where it must not be kept."""
    if folder() is None:
        return None
    flags = _flags()
    option_bytes = _serialized(options)
    if b"xla_dump" in flags or b"xla_dump" in option_bytes:
        return None  # the user wants what only a compilation gives
    kinds = tuple(dict.fromkeys(d.device_kind for d in devices))
    return entry_of(_platform(client, kinds, len(devices)), option_bytes, flags, _known_by(program))


def entry_of(*parts: str | bytes) -> Entry | None:
    """The place of what is known by its parts; None where nothing is kept."""
    where = folder()
    encoded = [part.encode() if isinstance(part, str) else part for part in parts]
    return None if where is None else Entry(where, _digest(
        _MAGIC, *[piece for part in encoded for piece in (len(part).to_bytes(8, "little"), part)]))


def _digest(*parts: bytes) -> bytes:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.digest()


# ---- entries ------------------------------------------------------------------------------


_verified: set[bytes] = set()  # keys of entries


class Entry:
    """One program's file: magic, checksum, serialized executable."""

    __slots__ = ("_key", "_path")

    def __init__(self, where: str, key: bytes) -> None:
        self._key = key
        self._path = os.path.join(where, key.hex() + _SUFFIX)

    @property
    def note(self) -> str:
        """The path of the note that it is being compiled (runtime/shield.py)."""
        return self._path.removesuffix(_SUFFIX) + _NOTE

    def load(self, client: Any, devices: Any, options: Any, host_callbacks: Sequence[Any]) -> Any:
        """The executable, which calls these functions of this process, or None if there is none or
        it cannot be used."""
        blob = self.read()
        if blob is None:
            return None
        try:
            return jaxlib_api.deserialize_executable(client, blob, devices, options, host_callbacks)
        except jaxlib_api.JaxRuntimeError as error:  # what XLA dislikes is compiled again
            self._discard(error)
            return None

    def store(self, client: Any, executable: Any, compile_seconds: float) -> None:
        """Keep the executable for other processes; failures are silent."""
        if compile_seconds < _minimum_seconds():
            return
        try:
            blob = client.serialize_executable(executable)
        except jaxlib_api.JaxRuntimeError as error:  # not every platform can
            _failed(error, "an executable cannot be kept")
            return
        if len(blob) < config.persistent_cache_min_entry_size_bytes.value:
            return
        self.write(blob)

    def write(self, blob: bytes) -> None:
        """Keep bytes for other processes; failures are silent."""
        try:
            self._write(blob)
        except OSError as error:
            if is_of_handler(error):
                raise
            _failed(error, "the compilation cache cannot be written")

    def verify(self, loaded: Any, compile: Callable[[], Any]) -> None:
        """Raise CacheVerificationError unless what was loaded is what compiling gives, as far as
        XLA's optimised programs tell; the first time in the process that it is asked."""
        if self._key in _verified:
            return
        _verified.add(self._key)
        stored, fresh = [[jaxlib_api.hlo_text(m, metadata=False) for m in x.hlo_modules()]
                         for x in (loaded, compile())]
        if stored != fresh:
            raise CacheVerificationError(
                f"the compiled program in {self._path} differs from what compiling it anew gives "
                "(the flag jax_compilation_cache_check_contents compares them)")

    def _checksum(self, blob: bytes) -> bytes:
        return _digest(self._key, blob)

    def read(self) -> bytes | None:
        """The bytes that are kept; None if there are none, or they are damaged."""
        try:
            flags = os.O_RDONLY  # and a pipe is not waited for
            for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"):
                flags |= getattr(os, name, 0)
            with open(os.open(self._path, flags), "rb") as f:
                info = os.fstat(f.fileno())
                if not (stat.S_ISREG(info.st_mode) and _is_private(info)):
                    return None
                content = f.read()
        except OSError as error:
            if is_of_handler(error):
                raise
            return None
        start = len(_MAGIC) + _DIGEST_SIZE
        blob = content[start:]
        if content[:len(_MAGIC)] != _MAGIC or content[len(_MAGIC):start] != self._checksum(blob):
            self._discard(RuntimeError("damaged"))
            return None
        if time.time() - info.st_mtime > _TOUCH_INTERVAL:
            self._touch()
        return blob

    def _touch(self) -> None:
        with suppress(OSError):
            os.utime(self._path)

    def _discard(self, reason: Exception) -> None:
        with suppress(OSError):
            os.unlink(self._path)
        _failed(reason, f"the cached executable {self._path} is dropped")

    def _write(self, blob: bytes) -> None:
        where = os.path.dirname(self._path)
        temporary = os.path.join(where, f"tmp-{os.getpid()}-{time.monotonic_ns()}-{id(blob)}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        try:
            with open(os.open(temporary, flags, 0o600), "wb") as f:
                f.write(_MAGIC)
                f.write(self._checksum(blob))
                f.write(blob)
            os.replace(temporary, self._path)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        _note_growth(where, len(_MAGIC) + _DIGEST_SIZE + len(blob))


def _minimum_seconds() -> float:
    """The flag, where the user has set it; else nothing is too quick to be kept."""
    flag = config.persistent_cache_min_compile_time_secs
    if flag.value != flag.default or flag.environ in os.environ:
        return float(flag.value)
    return 0.0


# ---- size ---------------------------------------------------------------------------------

_sizes: dict[str, int] = {}  # of folders, as far as this process knows


def maximum_bytes() -> int:
    """The bound on the folder's size; a negative one means none."""
    size = config.compilation_cache_max_size.value
    return int(size if size >= 0 else config.cache_max_bytes.value)


def _note_growth(where: str, size: int) -> None:
    """Look through the folder on the first write, and when it may have become too large."""
    bound = maximum_bytes()
    if bound < 0:
        return
    known = _sizes.get(where)
    total = contents(where)[1] if known is None else known + size
    _sizes[where] = evict(where, bound) if total > bound else total


def _entries(where: str) -> list[tuple[float, int, str]]:
    """(time of last use, size, path) of each entry; litter of dead processes is removed."""
    found = []
    with os.scandir(where) as files:
        for file in files:
            try:
                info = file.stat(follow_symlinks=False)
                if file.name.endswith(_SUFFIX):
                    found.append((info.st_mtime, info.st_size, file.path))
                elif time.time() - info.st_mtime > (
                        _TEMPORARY_LIFETIME if file.name.startswith("tmp-") else
                        _NOTE_LIFETIME if file.name.endswith(_NOTE) else math.inf):
                    os.unlink(file.path)
            except OSError:  # another process was faster
                continue
    return found


def contents(where: str) -> tuple[int, int]:
    """How many entries a folder has, and their bytes."""
    sizes = [size for _, size, _ in _entries(where)]
    return len(sizes), sum(sizes)


def evict(where: str, bound: int) -> int:
    """Remove the entries used longest ago until the folder is well below `bound` bytes."""
    entries = sorted(_entries(where))
    total = sum(size for _, size, _ in entries)
    for _, size, path in entries:
        if total <= bound * _KEEP_FRACTION:
            break
        try:
            os.unlink(path)
        except OSError:
            continue
        total -= size
    return total


def clear() -> None:
    """Remove all entries from the folder in use."""
    where = folder()
    if where is not None:
        evict(where, -1)
        _sizes.pop(where, None)
