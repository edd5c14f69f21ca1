"""Name what the Markdown pages refer to and is not there: files, headings, settings, commands and make targets.

`python .ci/docs.py` prints each dead reference with its page and fails; other hosts are not asked.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
BLOCK = re.compile(r"^(```|~~~|:::).*?^\1.*?$|<!--.*?-->", re.S | re.M)
# Read by libraries, or with a part of the operator's own.
FOREIGN = {"AWS_CA_BUNDLE", "LANGUAGE_MODEL_KEY_NAME", "LANGUAGE_MODEL_KEY_NAME_FILE"}
# Commands of Django and its apps.
DJANGO = {"check", "createsuperuser", "shell"}


@cache
def tracked() -> tuple[str, ...]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return tuple(name for name in listed.splitlines() if (ROOT / name).is_file())


@cache
def words_of_code() -> frozenset[str]:
    """Return the upper-case names in everything but pages, translations, locks and results."""
    names: set[str] = set()
    for name in tracked():
        path = ROOT / name
        if path.suffix in {".py", ".yml", ".toml", ".conf", ".sh", ".sql", ".html", ".js", ""}:
            names.update(re.findall(r"\b[A-Z][A-Z0-9_]*_[A-Z0-9_]+\b", path.read_text("utf-8", errors="ignore")))
    return frozenset(names)


def anchors(markdown: str) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and the built manual write them."""
    headings = re.findall(r"^#{1,6} +(.+?) *$", BLOCK.sub("", markdown), re.M)
    names = [re.sub(r"[^\w\- ]", "", LINK.sub(r"\1", heading).lower()).replace(" ", "-") for heading in headings]
    before = [names[:place].count(name) for place, name in enumerate(names)]
    return {f"{name}-{times}" if times else name for name, times in zip(names, before, strict=True)}


def dead_links(page: Path, markdown: str) -> list[str]:
    """Return the links of a page that lead to no file or no heading of this repository."""
    dead = []
    for link in re.findall(r"\]\((?!\w+:)([^)\s]+)\)", re.sub(r"`[^`\n]*`", "x", BLOCK.sub("", markdown))):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        inside = markdown if target == page else target.read_text("utf-8") if anchor and target.is_file() else ""
        if not target.exists() or (anchor and anchor not in anchors(inside)):
            dead.append(link)
    return dead


def dead_names(markdown: str) -> Iterator[str]:
    """Yield settings, commands, targets and source files that a page names and that do not exist."""
    for name in re.findall(r"`([A-Z][A-Z0-9]*_[A-Z0-9_]+)(?:=[^`]*)?`", markdown):
        if name not in words_of_code() | FOREIGN and name.removesuffix("_FILE") not in words_of_code():
            yield f"setting {name}"
    commands = {Path(name).stem for name in tracked() if "/management/commands/" in name} | DJANGO
    yield from (f"manage.py {name}" for name in re.findall(r"manage\.py ([a-z_]+)", markdown) if name not in commands)
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    yield from (f"make {name}" for name in re.findall(r"`make ([a-z-]+)", markdown) if name not in targets)
    for name in re.findall(r"`((?:[\w.-]+/)*[\w-]+\.(?:py|sql|sh|yml))`", markdown):
        if not any(f"/{found}".endswith(f"/{name}") for found in tracked()):
            yield f"file {name}"


def dead_mentions(text: str) -> list[str]:
    """Return the manuals, with their headings, that code or a page of the site names and that do not exist."""
    dead = []
    for path, anchor in re.findall(r"\b(docs/[\w/]+\.md)(?:#([\w-]+))?", text):
        page = ROOT / path
        if not page.is_file() or (anchor and anchor not in anchors(page.read_text("utf-8"))):
            dead.append(path + f"#{anchor}" * bool(anchor))
    return dead


def main() -> int:
    found = []
    for name in tracked():
        text = (
            (ROOT / name).read_text("utf-8", errors="ignore")
            if name.endswith((".md", ".py", ".html", "Makefile"))
            else ""
        )
        if name.endswith(".md"):
            found += [f"{name}: {dead}" for dead in (*dead_links(ROOT / name, text), *dead_names(text))]
        elif not name.startswith("tests/"):
            found += [f"{name}: {dead}" for dead in dead_mentions(text)]
    print("\n".join(found), end="\n" * bool(found))
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
