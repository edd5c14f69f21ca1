"""What CONTRIBUTING.md names is there, and every room is named in it; modules that other pages name are there, too."""

import re
from functools import cache
from pathlib import Path

import pytest

from dpal_site.embedded.servers import REPOSITORY

ROOMS = ("annotation", "benchmarks", "client", "deploy", "docs", "dpal_site", "learner", "privacy", "tests")
# What stands for a name that somebody thinks of, and what programs make while they run.
STANDS_FOR_A_NAME = {"_part.html", "verb_noun"}
MADE_HERE = ("var/",)
CONTRIBUTING = REPOSITORY / "CONTRIBUTING.md"
PAGES = sorted([*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/**/*.md"), *REPOSITORY.glob("client/*.md")])
A_MODULE = re.compile(r"(?:[\w.-]+/)*\w+\.(?:py|sql)|(?:annotation|dpal_site|learner|privacy)/[\w./-]+")
A_DOTTED_MODULE = re.compile(r"(?:annotation|dpal_site|learner|privacy)(?:\.[a-z_]\w*)+(?<!\.md)(?<!\.json)")
# Folders of an app that are no rooms: what Django looks for, and what an app's addresses and commands are made of.
NO_ROOMS = {"management", "migrations", "static", "templates", "templatetags"}


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


def is_module(dotted: str) -> bool:
    """Say whether a dotted name is that of a module or a folder of them."""
    path = dotted.replace(".", "/")
    return "/" in path and (f"{path}.py" in places() or path in places())


def modules_not_there(markdown: str) -> set[str]:
    """Return the modules and folders of code that a manual or a decision names and that are not here."""
    spans = set(re.findall(r"`([^`\s]+)`", markdown))
    paths = {span for span in spans if A_MODULE.fullmatch(span) and span.rstrip("/") not in places()}
    # The last word may be a name that the module defines.
    dotted = {span for span in spans if A_DOTTED_MODULE.fullmatch(span)}
    return paths | {span for span in dotted if not is_module(span) and not is_module(span.rpartition(".")[0])}


def rooms_not_listed(markdown: str) -> set[str]:
    """Return the rooms of the two apps that the table of CONTRIBUTING.md leaves out."""
    table = markdown.partition("| `annotation/` |")[2].partition("\n\n")[0]
    cells = [line.split("|") for line in table.splitlines()[1:]]
    listed = {
        f"{app}/{room}"
        for app, column in (("annotation", 1), ("learner", 3))
        for cell in cells
        for room in re.findall(r"`([^`]+)`", cell[column])
    }
    rooms = {
        f"{app}/{folder.name}/"
        for app in ("annotation", "learner")
        for folder in (REPOSITORY / app).iterdir()
        if any(folder.glob("*.py")) and folder.name not in NO_ROOMS
    }
    return rooms - listed


def test_what_contributing_names_is_there():
    assert not_there(CONTRIBUTING.read_text("utf-8")) == set()


def test_every_room_stands_in_a_table_of_contributing():
    assert rooms_not_listed(CONTRIBUTING.read_text("utf-8")) == set()


def test_a_room_that_no_table_lists_is_found():
    markdown = CONTRIBUTING.read_text("utf-8").replace("`people/`", "people")
    assert rooms_not_listed(markdown) == {"annotation/people/"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_modules_that_a_page_names_are_there(page: Path):
    assert modules_not_there(page.read_text("utf-8")) == set()


def test_a_module_that_is_gone_is_found():
    there = "`learner/next_step.py`, `text.py`, `services/ledger.py`, `learner.next_step`, `privacy.md`, `card.json`"
    there += ", `learner.rounds.services.loop.advance_project`, `privacy/accounting/`, `annotation.models`"
    gone = {"learner/next_steps.py", "repeat_selectors.py", "learner.gone", "learner.rounds.gone.advance_project"}
    assert modules_not_there(there + "".join(f", `{name}`" for name in gone)) == gone


def test_what_is_gone_is_found():
    there = "`models/`, `privacy/wording.py`, `as_message(x)`, `make test`, `var/docs`, `StrategyChoice.strategy`"
    gone = "`rooms/none.py`, `none.html`, `said_all_together(x)`, `X=1 make nothing`, `NoSuchChoice`, `DPAL_NO_SUCH`"
    found = {"rooms/none.py", "none.html", "said_all_together", "X=1 make nothing", "NoSuchChoice", "DPAL_NO_SUCH"}
    assert not_there(f"{there}, {gone}, `tests/<layer>/none.py`") == found
