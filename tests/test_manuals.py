"""Pages, messages and manuals keep to the words of the glossary, and manuals to short sentences."""

import re
from pathlib import Path

import pytest

from dpal_site.catalogues import messages_in
from dpal_site.embedded.servers import REPOSITORY
from dpal_site.management.commands.compile_translations import PACKAGES

MANUALS = sorted((REPOSITORY / "docs").glob("*.md"))
# Words a sentence of a manual has on average at most.
AVERAGE_WORDS = 20
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
PARAGRAPH = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*+]|\d+\.)\s)")
BULLET = re.compile(r"^(?:[-+]|\d+\.)\s")
SENTENCE_END = re.compile(r"(?<=[.!?])[\"')”’]*\s+(?=[\w\"“‘(])")


def prose(markdown: str) -> str:
    """Return the words of a manual: without tables, headings and addresses of links; code and formulas are one word."""
    aside = re.compile(r"^(?:\||#|!\[|<|    ).*$", re.M)
    text = aside.sub("", re.sub(r"^(```|~~~|:::).*?^\1.*?$|<!--.*?-->", "", markdown, flags=re.S | re.M))
    return re.sub(r"[*∎]", "", re.sub(r"`[^`]*`|\$[^$]*\$", "x", LINK.sub(r"\1", text)))


def sentences(markdown: str) -> list[str]:
    """Return the sentences of a manual, each item of a list on its own."""
    paragraphs = (" ".join(BULLET.sub("", part.strip()).split()) for part in PARAGRAPH.split(prose(markdown)))
    return [one for part in paragraphs for one in SENTENCE_END.split(part) if len(one.split()) > 2]


def average_words(markdown: str) -> float:
    lengths = [len(one.split()) for one in sentences(markdown)]
    return sum(lengths) / max(1, len(lengths))


def left_to_others() -> dict[str, str]:
    """Return the words that the glossary's second table leaves to others, each with what is said instead."""
    table = (REPOSITORY / "docs" / "glossary.md").read_text(encoding="utf-8").split("| not | but |")[1]
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", table, re.M)
    return {word: instead for words, instead in rows for word in words.split(", ")}


def strange_words(text: str) -> dict[str, str]:
    """Return what a text says in words that are not ours, with our own."""
    return {
        word: instead for word, instead in left_to_others().items() if re.search(rf"\b{re.escape(word)}\b", text, re.I)
    }


@pytest.mark.parametrize("manual", MANUALS, ids=lambda path: path.name)
def test_manuals_use_the_words_of_the_glossary(manual: Path):
    text = prose(manual.read_text(encoding="utf-8").split("## Words we leave to others")[0])
    assert strange_words(text) == {}


def test_pages_and_messages_use_the_words_of_the_glossary():
    marked = messages_in(REPOSITORY / package for package in PACKAGES)
    assert len(marked) > 2000
    texts = (f"{message.text} {message.plural}" for message in marked)
    assert {text: found for text in texts if (found := strange_words(re.sub(r"%\(\w+\)s|\{\w+\}", "", text)))} == {}


def test_a_strange_word_is_found():
    assert strange_words("Each labeller has a wallet.") == {"labeller": "annotator", "wallet": "account"}
    assert len(left_to_others()) > 40


@pytest.mark.parametrize("manual", MANUALS, ids=lambda path: path.name)
def test_manuals_have_short_sentences(manual: Path):
    assert average_words(manual.read_text(encoding="utf-8")) <= AVERAGE_WORDS


def test_a_long_sentence_is_counted():
    long = " ".join(["word"] * 41) + "."
    assert average_words(f"# A heading\n\n| a | table |\n\n```\ncode here now\n```\n\n{long} It is long.") == 22
    assert average_words("- One has four words. Two have five words here.\n- A third has six words here.") == 5
