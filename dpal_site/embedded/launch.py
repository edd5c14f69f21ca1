"""Prepare this process, then become the command: run by path with any Python, imports nothing of the project."""

import ctypes
import os
import signal
import sys
from pathlib import Path

CLONE_NEWUSER = 0x10000000
PR_SET_PDEATHSIG = 1


def map_user(uid: int, gid: int) -> None:
    """Enter a user namespace that shows this user as `uid`; files keep their real owner, so none is handed over."""
    libc = ctypes.CDLL(None, use_errno=True)
    outside_uid, outside_gid = os.geteuid(), os.getegid()
    if libc.unshare(CLONE_NEWUSER) != 0:
        raise OSError(ctypes.get_errno(), "unshare(CLONE_NEWUSER)")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{uid} {outside_uid} 1")
    Path("/proc/self/gid_map").write_text(f"{gid} {outside_gid} 1")


def become_user(uid: int, gid: int) -> None:
    os.setgroups([])
    os.setgid(gid)
    os.setuid(uid)


def die_with(parent: int) -> None:
    """Ask the kernel for SIGTERM when the parent ends, even by SIGKILL; other systems than Linux have no such call."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:  # it ended before the call above
        sys.exit(1)


def main(words: list[str]) -> None:
    while words[0] != "--":
        option, value, *words = words
        if option == "--die-with":
            die_with(int(value))
            continue
        uid, gid = map(int, value.split(":"))
        {"--map": map_user, "--become": become_user}[option](uid, gid)
    os.execvp(words[1], words[1:])  # noqa: S606 - becoming the command is the purpose


if __name__ == "__main__":
    main(sys.argv[1:])
