"""Sources at pinned versions, and their builds, in a folder that git does not see."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "target" / "peers"


class Trouble(Exception):
    """A failure, in words for the user."""


def need(program, how):
    """Refuses to go on without a program on the PATH, and says how to get it."""
    if not shutil.which(program):
        raise Trouble(f"{program} is not on the PATH: {how}")


def command(*argv, cwd=None, env=None):
    """Runs a command whose output is for the user, and shows it first."""
    argv = [str(argument) for argument in argv]
    print("+", shlex.join(argv), file=sys.stderr, flush=True)
    ended = subprocess.run(argv, cwd=cwd, env={**os.environ, **(env or {})}, stdout=sys.stderr)
    if ended.returncode:
        raise Trouble(f"`{shlex.join(argv)}` failed with exit code {ended.returncode}")


def checkout(name):
    """The folder that the user wants a peer built from, `None` for the pinned version."""
    variable = f"PEERS_{name.upper()}"
    path = os.environ.get(variable)
    if path and not Path(path).is_dir():
        raise Trouble(f"{variable} is {path}, which is no folder")
    return Path(path).resolve() if path else None


def describe(folder):
    """The commit of a folder in git's words."""
    argv = ["git", "-C", folder, "describe", "--always", "--tags", "--dirty"]
    return subprocess.run(argv, capture_output=True, text=True).stdout.strip() or "unknown"


def built(name, version):
    """Notes that a peer is built."""
    (FOLDER / name / "version").write_text(version + "\n")
    print(f"{name} {version} is built in {FOLDER / name}", file=sys.stderr)


def version(name):
    """The version that a peer was built at."""
    file = FOLDER / name / "version"
    if not file.exists():
        raise Trouble(f"{name} is not built: run tools/peers/build {name}")
    return file.read_text().strip()


def go_build(name, pinned, modules, packages):
    """Builds Go packages into `bin`: the pinned version from the module proxy, or a checkout.

    `modules` has the folder of each module in a checkout. Packages are built in a module of their
    own, which `go install PACKAGE@VERSION` would do if it took modules with replacements. What
    these depend on follows from the versions by Go's rule, the least that all of them allow.
    """
    need("go", "install Go from https://go.dev/dl, 1.25 or newer")
    folder = FOLDER / name
    shutil.rmtree(folder / "module", ignore_errors=True)
    (folder / "module").mkdir(parents=True)
    (folder / "module" / "go.mod").write_text(f"module peers/{name}\n\ngo 1.25.0\n")
    source = checkout(name)
    edits = [f"-require={module}@{pinned}" for module in modules]
    if source:
        edits += [f"-replace={module}={source / at}" for module, at in modules.items()]
    command("go", "mod", "edit", *edits, cwd=folder / "module")
    # A flag of its own, for the repository around it is not what is built.
    flags = ["-mod=mod", "-buildvcs=false"]
    for binary, package in packages.items():
        out = folder / "bin" / binary
        command("go", "build", *flags, "-o", out, package, cwd=folder / "module")
    built(name, describe(source) if source else pinned)
