"""What XLA's backends make of a program: LLVM's code, PTX, machine code."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from typing import Any

from pyjx.inspect.platforms import UnavailableError

# What XLA writes while it compiles, by the end of the file's name.
_ENDS = {"llvm": ".ir-with-opt.ll", "ptx": ".ptx", "object": ".o"}


class Kernels:
    """The files that XLA wrote while it compiled a program, by the name of the kernel.

    Attributes:
      llvm, ptx: texts. object: object files, of the CPU.
      optimised: HLO after XLA's optimisations.
    """

    __slots__ = ("llvm", "object", "optimised", "ptx")

    def __init__(self, folder: str) -> None:
        self.llvm: dict[str, bytes] = {}
        self.ptx: dict[str, bytes] = {}
        self.object: dict[str, bytes] = {}
        self.optimised = ""
        for name in sorted(os.listdir(folder), key=_order):
            if name.endswith("after_optimizations.txt"):
                with open(os.path.join(folder, name), encoding="utf-8") as text:
                    self.optimised = text.read()
            for form, end in _ENDS.items():
                if name.endswith(end):
                    with open(os.path.join(folder, name), "rb") as file:
                        getattr(self, form)[_kernel(name, end)] = file.read()

    def text(self, form: str) -> str:
        """The texts of all kernels, each after a line with its name."""
        mark = ";" if form == "llvm" else "//"
        found = {n: t.decode(errors="replace") for n, t in getattr(self, form).items()}
        return "\n".join([f"{mark} kernel {n}\n{t.rstrip()}\n" for n, t in found.items()
                          if t.strip()])

    def assembly(self, platform: str) -> str:
        """The machine code, disassembled by a tool that is installed."""
        if platform == "cuda":
            return self._of_ptx()
        tool = _tool("llvm-objdump", "objdump")
        parts = []
        for name, data in self.object.items():
            code = _run([tool, "-d", "-r", "--no-show-raw-insn"], data, ".o")
            body = code[code.find("Disassembly"):]
            parts.append(f"# kernel {name}\n{body.rstrip()}\n")
        return "\n".join(parts)

    def _of_ptx(self) -> str:
        assembler, disassembler = _tool("ptxas"), _tool("nvdisasm", "cuobjdump")
        parts = []
        for name, data in self.ptx.items():
            target = re.search(rb"^\.target\s+(\w+)", data, re.MULTILINE)
            if target is None:
                continue
            with tempfile.TemporaryDirectory() as folder:
                source, binary = (os.path.join(folder, n) for n in ("kernel.ptx", "kernel.cubin"))
                with open(source, "wb") as file:
                    file.write(data)
                subprocess.run([assembler, f"-arch={target[1].decode()}", source, "-o", binary],
                               check=True, capture_output=True)
                flags = ["-sass"] if disassembler.endswith("cuobjdump") else ["-c"]
                code = subprocess.run([disassembler, *flags, binary], check=True,
                                      capture_output=True, text=True).stdout
            parts.append(f"// kernel {name}\n{code.rstrip()}\n")
        return "\n".join(parts)


def _order(name: str) -> list[Any]:
    """Numbers in a name by their value."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def _kernel(name: str, end: str) -> str:
    """`module_0001.jit_f.NAME.ir-with-opt.ll` without what is not the name."""
    _, module, *parts = name.removesuffix(end).split(".")
    return ".".join(parts).removeprefix("obj-file.") or module


def _tool(*names: str) -> str:
    for name in names:
        found = shutil.which(name)
        if found is not None:
            return found
    package = "the CUDA toolkit" if names[0] in ("ptxas", "nvdisasm") else "binutils or LLVM"
    raise UnavailableError(f"to show machine code takes {' or '.join(names)} of {package}, which "
                           "is not installed; ask for llvm, or for ptx on a GPU")


def _run(command: list[str], data: bytes, suffix: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, f"kernel{suffix}")
        with open(path, "wb") as file:
            file.write(data)
        done = subprocess.run([*command, path], capture_output=True, text=True)
    if done.returncode:
        raise UnavailableError(f"{os.path.basename(command[0])}: {done.stderr.strip()}")
    return done.stdout
