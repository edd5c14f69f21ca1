"""Pages, messages and manuals keep to the words of the glossary, and manuals to short sentences."""

import re
from functools import cache
from pathlib import Path

import jinja2
import pytest

from dpal_site.catalogues import messages_in
from dpal_site.embedded.servers import REPOSITORY
from dpal_site.management.commands.compile_translations import PACKAGES

MANUALS = sorted((REPOSITORY / "docs").glob("*.md"))
# What else people read from end to end.
PAGES = [REPOSITORY / name for name in ("README.md", "SECURITY.md", "CONTRIBUTING.md", "client/README.md")]
RESULTS = sorted((REPOSITORY / "docs" / "results").glob("*.md"))
# What links are looked for in.
LINKED = sorted(
    {
        *REPOSITORY.glob("*.md"),
        *(REPOSITORY / "docs").rglob("*.md"),
        *(REPOSITORY / ".github").rglob("*.md"),
        REPOSITORY / "client" / "README.md",
    }
)
# Words a sentence of a manual has on average at most.
AVERAGE_WORDS = 20
# And at most, in every manual. Decision records and the changelog are outside: they stay as they were written.
MOST_WORDS = 40
PAGE_WORDS = 700
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
CODE = re.compile(r"^(```|~~~|:::).*?^\1.*?$|<!--.*?-->", re.S | re.M)
ITEM_IN_A_LINE = re.compile(r"\s[·→]\s")
PARAGRAPH = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*+]|\d+\.)\s)")
BULLET = re.compile(r"^(?:[-+]|\d+\.)\s")
SENTENCE_END = re.compile(r"(?<=[.!?])[\"')”’]*\s+(?=[\w\"“‘(])")


def prose(markdown: str) -> str:
    """Return the words of a manual: without tables, headings and addresses of links; code and formulas are one word."""
    aside = re.compile(r"^(?:\||#|!\[|<|    ).*$", re.M)
    text = aside.sub("", CODE.sub("", markdown))
    return re.sub(r"[*∎]", "", re.sub(r"`[^`]*`|\$[^$]*\$", "x", LINK.sub(r"\1", text)))


def sentences(markdown: str) -> list[str]:
    """Return the sentences of a manual, each item of a list on its own."""
    paragraphs = (" ".join(BULLET.sub("", part.strip()).split()) for part in PARAGRAPH.split(prose(markdown)))
    return [one for part in paragraphs for one in SENTENCE_END.split(part) if len(one.split()) > 2]


def average_words(markdown: str) -> float:
    lengths = [len(one.split()) for one in sentences(markdown)]
    return sum(lengths) / max(1, len(lengths))


@cache
def left_to_others() -> dict[str, str]:
    """Return the words that the glossary's second table leaves to others, each with what is said instead."""
    table = (REPOSITORY / "docs" / "glossary.md").read_text(encoding="utf-8").split("| not | but |")[1]
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", table, re.M)
    return {word: instead for words, instead in rows for word in words.split(", ")}


@cache
def any_strange_word() -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, left_to_others()))})\b", re.I)


def strange_words(text: str) -> dict[str, str]:
    """Return what a text says in words that are not ours, with our own."""
    if not any_strange_word().search(text):
        return {}
    return {
        word: instead for word, instead in left_to_others().items() if re.search(rf"\b{re.escape(word)}\b", text, re.I)
    }


@pytest.mark.parametrize("manual", MANUALS + PAGES + RESULTS, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_manuals_use_the_words_of_the_glossary(manual: Path):
    text = prose(manual.read_text(encoding="utf-8").split("## Words we leave to others")[0])
    assert strange_words(text) == {}


def test_pages_and_messages_use_the_words_of_the_glossary():
    marked = messages_in(REPOSITORY / package for package in PACKAGES)
    assert len(marked) > 2000
    texts = (f"{message.text} {message.plural}" for message in marked)
    assert {text: found for text in texts if (found := strange_words(re.sub(r"%\(\w+\)s|\{\w+\}", "", text)))} == {}


def test_the_glossary_says_what_other_tools_call_it():
    rows = re.findall(
        r"^\| (.+) \|$", (REPOSITORY / "docs" / "glossary.md").read_text().split("## Words we leave")[0], re.M
    )
    told = [cells for row in rows[1:] if len(cells := re.split(r" \|\s", row)) == 3]
    assert len(told) == len(rows) - 1
    tools = ("Label Studio", "Argilla", "OpenDP", "dp-accounting")
    assert {
        word: elsewhere for word, _, elsewhere in told if elsewhere.strip() and not elsewhere.startswith(tools)
    } == {}
    assert sum(bool(elsewhere.strip()) for _, _, elsewhere in told) >= 20


@cache
def read_by_people() -> str:
    """Return what messages and the other manuals say; of code only what is one word, as an entry's kind is."""
    said = [f"{message.text} {message.plural}" for message in messages_in(REPOSITORY / name for name in PACKAGES)]
    manuals = (LINK.sub(r"\1", CODE.sub("", path.read_text("utf-8"))) for path in MANUALS if path.name != "glossary.md")
    return "\n".join(
        [
            *said,
            *(re.sub(r"`([^`]*)`", lambda code: code[1] if code[1].isalpha() else "x", manual) for manual in manuals),
        ]
    )


def unspoken(words: list[str]) -> list[str]:
    """Return the words that stand neither on a page nor in a message nor in another manual, as one or several."""
    forms = {
        word: f"{re.escape(word.removesuffix('y'))}(?:y|ies)" if word[-1] == "y" else f"{word}s?" for word in words
    }
    return [word for word in words if not re.search(rf"\b{forms[word]}\b", read_by_people(), re.I)]


def test_each_word_of_the_glossary_is_one_that_people_read():
    table = (REPOSITORY / "docs" / "glossary.md").read_text("utf-8").split("## Words we leave")[0]
    words = [word for cell in re.findall(r"^\| ([a-z][^|]*) \|", table, re.M)[1:] for word in cell.split(", ")]
    assert len(words) > 60
    assert unspoken(words) == []
    assert len(words) == len(set(words)), "one word, one row"
    assert unspoken(["record", "odometer", "privacy family"]) == ["odometer", "privacy family"]


def test_a_strange_word_is_found():
    assert strange_words("Each labeller has a wallet.") == {"labeller": "annotator", "wallet": "account"}
    assert len(left_to_others()) > 40


@pytest.mark.parametrize("manual", MANUALS + PAGES + RESULTS, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_manuals_have_short_sentences(manual: Path):
    assert average_words(manual.read_text(encoding="utf-8")) <= AVERAGE_WORDS


def longest(markdown: str) -> str:
    """Return the sentence of most words; dots and arrows in a line, as between sources or steps, make a list of it."""
    return max(
        (part for one in sentences(markdown) for part in ITEM_IN_A_LINE.split(one)), key=lambda one: len(one.split())
    )


@pytest.mark.parametrize("manual", MANUALS + PAGES + RESULTS, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_no_sentence_is_too_long(manual: Path):
    found = longest(manual.read_text(encoding="utf-8"))
    assert len(found.split()) <= MOST_WORDS, found


def test_a_long_sentence_is_counted():
    long = " ".join(["word"] * 41) + "."
    assert longest(f"It is short. {long}\n\n| {long} |\n") == long
    items = f"1. One {'word ' * 30}\n2. two {'word ' * 31} → three words more · {'word ' * 9}"
    assert len(longest(items).split()) == 32
    assert average_words(f"# A heading\n\n| a | table |\n\n```\ncode here now\n```\n\n{long} It is long.") == 22
    assert average_words("- One has four words. Two have five words here.\n- A third has six words here.") == 5


def test_a_release_is_a_page_of_the_changelog():
    releases = (REPOSITORY / "CHANGELOG.md").read_text("utf-8").split("\n## ")[1:]
    assert [release.split("\n")[0] for release in releases if len(release.split()) > PAGE_WORDS] == []


def named_tests(markdown: str) -> set[str]:
    """Return the tests that a manual names, as pytest does, from the folder of tests on."""
    return set(re.findall(r"`(?:tests/)?((?:\w+/)*test_\w+\.py(?:::\w+)*)`", markdown))


def is_a_test(name: str) -> bool:
    """Whether there is such a file, wherever it lies if no folder is named, and in it what is named."""
    path, *inside = name.split("::")
    tests = REPOSITORY / "tests"
    files = [tests / path] if "/" in path else tests.rglob(path)
    defined = (
        re.findall(r"^\s*(?:class|def) (\w+)", file.read_text("utf-8"), re.M) for file in files if file.is_file()
    )
    return any(set(inside) <= set(names) for names in defined)


@pytest.mark.parametrize("manual", MANUALS, ids=lambda path: path.name)
def test_a_test_that_a_manual_names_exists(manual: Path):
    assert {name for name in named_tests(manual.read_text(encoding="utf-8")) if not is_a_test(name)} == set()


def test_a_test_that_is_gone_is_found():
    named = named_tests(
        "`test_manuals.py`, `tests/test_manuals.py::test_a_test_that_is_gone_is_found`, `web/test_none.py::Test`"
    )
    assert {name for name in named if not is_a_test(name)} == {"web/test_none.py::Test"}
    assert not is_a_test("test_manuals.py::test_that_nobody_wrote")
    assert len(named_tests((REPOSITORY / "docs" / "comparison.md").read_text(encoding="utf-8"))) > 40


def test_each_number_beside_a_cell_leads_to_a_source_and_each_source_is_used():
    comparison = (REPOSITORY / "docs" / "comparison.md").read_text(encoding="utf-8")
    tables, sources = comparison.split("## Where it is said")
    at_the_foot = re.findall(r"^(\d+)\. \[", sources, re.M)
    assert at_the_foot == [str(place) for place in range(1, len(at_the_foot) + 1)]
    assert set(re.findall(r"(?<!\w)\[(\d+)\](?!\()", tables)) == set(at_the_foot)


def test_each_row_of_the_comparison_has_a_cell_for_each_tool():
    comparison = (REPOSITORY / "docs" / "comparison.md").read_text(encoding="utf-8")
    rows = [line for line in comparison.splitlines() if line.startswith("|")]
    assert {line.count("|") for line in rows} == {8}


def unshown(comparison: str) -> list[str]:
    """Return what cells about DPAL claim without a page of the manual and a test that shows it; "no" claims nothing."""
    rows = [line.split("|") for line in comparison.splitlines() if line.startswith("|") and "|---" not in line]
    claims = [row[2].strip() for row in rows if row[2].strip() not in ("DPAL", "no")]
    return [one for one in claims if not (re.search(r"\]\([\w/-]+\.md", one) and named_tests(one))]


def test_each_cell_about_dpal_names_its_page_and_its_test():
    assert unshown((REPOSITORY / "docs" / "comparison.md").read_text(encoding="utf-8")) == []
    assert unshown("| | DPAL | B |\n|---|---|---|\n| a | yes (same test) | ? |\n| b | no | ? |") == ["yes (same test)"]


def unread(template: str) -> bool:
    """Whether Jinja, for which the manual's templates are written, cannot read one; djade reads another language."""
    try:
        jinja2.Environment(autoescape=True).parse(template)
    except jinja2.TemplateSyntaxError:
        return True
    return re.search(r"\{% -|- %\}", template) is not None


def test_templates_of_the_manual_can_be_read():
    templates = {path.name: path.read_text("utf-8") for path in (REPOSITORY / "docs" / "_templates").rglob("*.html")}
    assert "page.html" in templates
    assert [name for name, template in templates.items() if unread(template)] == []


def test_a_template_that_djade_rewrote_is_not_read():
    template = (REPOSITORY / "docs" / "_templates" / "page.html").read_text("utf-8")
    assert unread(template.replace("{%-", "{% -"))
    assert unread(template.replace("-%}", "- %}"))
    assert unread("{% if next -%}{{ a - %}")


def test_djade_is_told_to_leave_templates_of_the_manual_alone():
    """In each line of the Makefile that runs it, and before a commit."""
    runs = [line for line in (REPOSITORY / "Makefile").read_text("utf-8").splitlines() if "bin/djade" in line]
    assert len(runs) == 2
    assert [line for line in runs if "':!docs/_templates'" not in line] == []
    hook = (REPOSITORY / ".pre-commit-config.yaml").read_text("utf-8").split("- id: djade")[1].split("- id:")[0]
    assert "exclude: ^docs/_templates/" in hook


def anchors(markdown: str) -> set[str]:
    """Return what links may lead to inside a page: its headings, as GitHub and the built manual write them."""
    headings = re.findall(r"^#{1,6} +(.+?) *$", CODE.sub("", markdown), re.M)
    names = [re.sub(r"[^\w\- ]", "", LINK.sub(r"\1", heading).lower()).replace(" ", "-") for heading in headings]
    before = [names[:place].count(name) for place, name in enumerate(names)]
    return {f"{name}-{times}" if times else name for name, times in zip(names, before, strict=True)}


def dead_links(page: Path, markdown: str) -> list[str]:
    """Return the links of a page that lead to no file or no heading of this repository; other hosts are not asked."""
    dead = []
    for link in re.findall(r"\]\((?!\w+:)([^)\s]+)\)", re.sub(r"`[^`\n]*`", "x", CODE.sub("", markdown))):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        inside = markdown if target == page else target.read_text("utf-8") if anchor and target.is_file() else ""
        if not target.exists() or (anchor and anchor not in anchors(inside)):
            dead.append(link)
    return dead


@pytest.mark.parametrize("page", LINKED, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_links_lead_somewhere(page: Path):
    assert dead_links(page, page.read_text("utf-8")) == []


def test_a_link_that_leads_nowhere_is_found():
    alive = (
        "# Two `words`, here\n[a](#two-words-here) [b](https://example.org/x) [c](glossary.md#glossary) [d](../tests)"
    )
    code = "```\n[no](link.md)\n```\n`[no](link.md)`"
    dead = (
        "[e](#three) [f](nowhere.md) [g](../docs/glossary.md#nowhere) [h *too*](images/nowhere.svg) [i](../tests#there)"
    )
    found = ["#three", "nowhere.md", "../docs/glossary.md#nowhere", "images/nowhere.svg", "../tests#there"]
    assert dead_links(REPOSITORY / "docs" / "index.md", f"{alive}\n{code}\n{dead}\n") == found
    assert anchors("# One\n## One\n```\n# no\n```\n### [One](a.md) [two]\n") == {"one", "one-1", "one-two"}
