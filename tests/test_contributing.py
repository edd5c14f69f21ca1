"""What CONTRIBUTING.md names is there: files, folders, targets of `make` and names in code."""

import re
from functools import cache
from pathlib import Path

from dpal_site.embedded.servers import REPOSITORY

ROOMS = ("annotation", "benchmarks", "client", "deploy", "docs", "dpal_site", "learner", "privacy", "tests")
# What stands for a name that somebody thinks of, and what programs make while they run.
STANDS_FOR_A_NAME = {"_part.html", "verb_noun"}
MADE_HERE = ("var/",)


def files_here() -> set[Path]:
    """Return the files of the repository below its own folders and those beside them."""
    return {*REPOSITORY.glob("*.*"), *(path for room in ROOMS for path in (REPOSITORY / room).rglob("*.*"))}


@cache
def places() -> set[str]:
    """Return each file and folder by all ends of its path, since a page names `models/` of any room."""
    paths = {file.relative_to(REPOSITORY).parts for file in files_here()} | {(".ci", "unused.py")}
    folders = {path[:end] for path in paths for end in range(1, len(path))}
    return {"/".join(path[start:]) for path in paths | folders for start in range(len(path))}


@cache
def words() -> set[str]:
    """Return the names in code, SQL and settings, but those of this test itself."""
    read = (
        file.read_text("utf-8")
        for file in files_here()
        if file.suffix in (".py", ".sql", ".toml") and file.name != Path(__file__).name
    )
    makefile = (REPOSITORY / "Makefile").read_text("utf-8")
    return {word for text in (*read, makefile) for word in re.findall(r"\w+", text)}


@cache
def targets() -> set[str]:
    return set(re.findall(r"^([\w-]+):", (REPOSITORY / "Makefile").read_text("utf-8"), re.M))


def not_there(markdown: str) -> set[str]:
    """Return what a page names in code that nothing here is called."""
    spans = set(re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", markdown, flags=re.S | re.M)))
    real = {span for span in spans if not re.search(r"[<{]\w+[>}]", span)} - STANDS_FOR_A_NAME
    made = {span for span in real if span.startswith(MADE_HERE)}
    paths = {
        span for span in real - made if re.fullmatch(r"[\w-][\w.-]*(/[\w.-]*)+|[\w-]+\.(py|md|sql|html|toml|po)", span)
    }
    made_by = {span for span in real if re.search(r"\bmake [\w-]+$", span)}
    names = {
        word
        for span in real - made - paths - made_by
        for word in re.findall(r"\b(?:\w*[a-z]_[a-z]\w*|[A-Z]+_[A-Z_]+|[A-Z]\w*[a-z]\w*[A-Z]\w*)\b", span)
    }
    return (
        {path for path in paths if path.rstrip("/") not in places() and not (REPOSITORY / path).exists()}
        | {span for span in made_by if span.split()[-1] not in targets()}
        | (names - words() - STANDS_FOR_A_NAME)
    )


def test_what_contributing_names_is_there():
    assert not_there((REPOSITORY / "CONTRIBUTING.md").read_text("utf-8")) == set()


def test_what_is_gone_is_found():
    there = "`models/`, `privacy/wording.py`, `as_message(x)`, `make test`, `var/docs`, `StrategyChoice.strategy`"
    gone = "`rooms/none.py`, `none.html`, `said_all_together(x)`, `X=1 make nothing`, `NoSuchChoice`, `DPAL_NO_SUCH`"
    found = {"rooms/none.py", "none.html", "said_all_together", "X=1 make nothing", "NoSuchChoice", "DPAL_NO_SUCH"}
    assert not_there(f"{there}, {gone}, `tests/<layer>/none.py`") == found
