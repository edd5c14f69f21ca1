"""As whom a server runs: PostgreSQL refuses root, so root lends it another user's number."""

import functools
import os
import pwd
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

LAUNCH = (sys.executable, "-I", "-S", str(Path(__file__).with_name("launch.py")))
RootMode = Literal["auto", "namespace", "setuid"]


@dataclass(frozen=True, slots=True)
class Identity:
    mode: Literal["self", "namespace", "setuid"]
    prefix: tuple[str, ...] = ()
    uid: int | None = None
    gid: int | None = None

    def command(self, *words: str | Path) -> list[str]:
        return [*self.prefix, *map(str, words)]

    def reaches(self, folder: Path) -> bool:
        return subprocess.run(self.command("test", "-x", folder), check=False).returncode == 0

    def own(self, path: Path) -> None:
        """Give a tree to this identity, unless it has it: another mode may have been in use before."""
        if self.uid is None or self.gid is None or path.stat().st_uid == self.uid:
            return
        for inner in path.rglob("*"):
            os.chown(inner, self.uid, self.gid, follow_symlinks=False)
        os.chown(path, self.uid, self.gid)


@functools.cache
def current_identity(root_mode: RootMode = "auto") -> Identity:
    """Return ourselves; as root a user namespace, or where those are forbidden (many containers) another user."""
    if os.geteuid() != 0:
        return Identity("self")
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    user = known.get("postgres") or known["nobody"]
    numbers = f"{user.pw_uid}:{user.pw_gid}"
    namespace = Identity("namespace", (*LAUNCH, "--map", numbers, "--"), 0, 0)
    if root_mode == "namespace" or (root_mode == "auto" and _works(namespace, user.pw_uid)):
        return namespace
    return Identity("setuid", (*LAUNCH, "--become", numbers, "--"), user.pw_uid, user.pw_gid)


def _works(identity: Identity, uid: int) -> bool:
    shown = subprocess.run(identity.command("id", "-u"), capture_output=True, text=True, check=False)
    return shown.stdout.strip() == str(uid)
