"""The examples of the documents, run as they are printed: code blocks that name the file they would be saved as."""

import os
import re
import subprocess
import sys
from pathlib import Path

from dpal_site.embedded.servers import REPOSITORY

DOCUMENTS = ("README.md", "docs/releases.md", "docs/streams.md", "client/README.md")
EXAMPLE = re.compile(r"```(?:bash|python) file=(\S+)\n(.*?)```", re.DOTALL)
# What a person copies must be an example that runs; nothing with an address or a module in it goes untested.
UNNAMED = re.compile(r"```\w*\n(?:[^`]*?\n)?\s*(?:curl|import|from|def) [^`]*```")

# Pages whose examples a test of their own runs.
RUN_ELSEWHERE = {"statement.md": "tests/web/annotation/budget/test_lines.py"}


def examples() -> dict[str, str]:
    found = [pair for name in DOCUMENTS for pair in EXAMPLE.findall(_text_of(name))]
    assert len(dict(found)) == len(found), "two examples have one name"
    return dict(found)


def unnamed() -> list[str]:
    pages = [*(REPOSITORY / "docs").glob("*.md"), *(REPOSITORY / name for name in ("README.md", "SECURITY.md"))]
    for name, test in RUN_ELSEWHERE.items():
        assert name in _text_of(test)
        pages.remove(REPOSITORY / "docs" / name)
    return [block for page in pages for block in UNNAMED.findall(page.read_text(encoding="utf-8"))]


def write_examples(folder: Path) -> None:
    for name, script in examples().items():
        (folder / name).write_text(script, encoding="utf-8")


def run(
    name: str, folder: Path, known: dict[str, str], *, sent: bytes = b"", programs: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run an example in its folder, with nothing but `known` in its environment and `sent` as its input.

    `programs` holds the Python that runs it, and what else is found before the programs of this machine.
    """
    python = sys.executable if programs is None else str(programs / "python")
    command = ["bash", name] if name.endswith(".sh") else [python, "-W", "ignore", name]
    path = os.environ["PATH"] if programs is None else f"{programs}:{os.environ['PATH']}"
    environment = {"PATH": path, "HOME": str(folder), **known}
    done = subprocess.run(
        command, cwd=folder, env=environment, input=sent, capture_output=True, timeout=120, check=False
    )
    return subprocess.CompletedProcess(command, done.returncode, done.stdout.decode(), done.stderr.decode())


def _text_of(name: str) -> str:
    return (REPOSITORY / name).read_text(encoding="utf-8")
