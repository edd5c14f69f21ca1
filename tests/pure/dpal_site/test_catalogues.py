import gettext
import io
import re
from pathlib import Path

import allauth
import django
import pytest

from dpal_site.catalogues import CatalogueMessage, compile_catalogue, messages_in, read_catalogue
from dpal_site.embedded.servers import REPOSITORY
from dpal_site.management.commands.compile_translations import ENGLISH, PACKAGES

CATALOGUES = sorted((REPOSITORY / "locale").glob("*/LC_MESSAGES/django.po"))
PLACEHOLDER = re.compile(r"%\(\w+\)[sd]|%%|<[^>]+>")
THEIRS = Path(allauth.__file__).parent
FIELD = re.compile(r"\{(\w+)[^{}]*\}")


def test_there_is_another_language():
    assert [path.parent.parent.name for path in CATALOGUES] == ["de"]


@pytest.fixture(scope="module")
def marked():
    return messages_in(REPOSITORY / package for package in PACKAGES)


@pytest.mark.parametrize("path", CATALOGUES, ids=lambda path: path.parent.parent.name)
class TestCatalogues:
    def test_nothing_is_missing(self, path, marked):
        catalogue = read_catalogue(path)
        missing = sorted(message.text for message in marked if not all(catalogue.get(message.key, [""])))
        assert not missing, "translate these in locale/, then run manage.py compile_translations"

    def test_plurals_have_two_forms(self, path, marked):
        catalogue = read_catalogue(path)
        wrong = [message.text for message in marked if len(catalogue[message.key]) != (2 if message.plural else 1)]
        assert not wrong

    def test_placeholders_and_tags_are_those_of_the_message(self, path):
        wrong = []
        for key, texts in read_catalogue(path).items():
            # A singular may leave its number out.
            wanted = {frozenset(found(form)) for form in key.split("\0")}
            if key and not all(frozenset(found(text)) in wanted for text in texts):
                wrong.append(key)
        assert not wrong

    def test_fields_of_a_translation_say_nothing_about_format(self, path):
        """A page fills them with the words that stand in the sentence, not with numbers."""
        texts = [text for texts in read_catalogue(path).values() for text in texts]
        assert not [text for text in texts if any(mark[0] != f"{{{mark[1]}}}" for mark in FIELD.finditer(text))]

    def test_the_compiled_file_is_current(self, path):
        for each in (path, REPOSITORY / ENGLISH):
            compiled = each.with_suffix(".mo").read_bytes()
            assert compiled == compile_catalogue(each), "run manage.py compile_translations"


def of_libraries():
    found = {message.key for message in messages_in([THEIRS])}
    for root in (THEIRS, Path(django.__file__).parent):
        for compiled in root.rglob("locale/de/LC_MESSAGES/*.mo"):
            known = gettext.GNUTranslations(io.BytesIO(compiled.read_bytes()))
            found |= {key[0] if isinstance(key, tuple) else key for key in known._catalog}
    return found


def said_nowhere(catalogue, marked):
    return sorted(set(catalogue) - {message.key for message in marked} - of_libraries() - {""})


@pytest.mark.parametrize("path", CATALOGUES, ids=lambda path: path.parent.parent.name)
def test_nothing_is_translated_that_nobody_says(path, marked):
    assert said_nowhere(read_catalogue(path), marked) == []


def test_a_sentence_that_has_gone_is_found(marked):
    gone = "Somebody said this once, and nobody does now."
    assert said_nowhere({gone: ["Einst"], "Log in": ["Anmelden"], "": [""]}, marked) == [gone]


def found(text: str) -> list[str]:
    return [mark[0] for mark in PLACEHOLDER.finditer(text)] + [mark[1] for mark in FIELD.finditer(text)]


COUNTED = re.compile(r"(?:%\(\w+\)[sd]|\{\w+[^{}]*\})(?:</?\w+>)? (?:of your )?((?:labelled |comparable )?[a-z]+)\b")
# What stands behind a number that is never one: a constant, what a rule holds above one, or what is no whole number.
NEVER_ONE = {
    "At most ": "a limit of the program",
    "at most ": "a limit of the program",
    "more than ": "a limit of the program",
    "longer than ": "a limit of the program",
    "up to ": "a limit of the program",
    "Send at most ": "a limit of the program",
    "1 to {most": "a limit of the program",
    "{least} to {most}": "a limit of the program",
    "Given up: ": "work is tried more than once",
    "scanner gave no answer in ": "work is tried more than once",
    "Reading stopped ": "work is tried more than once",
    "rows was ended ": "work is tried more than once",
    "At least {k}": "k is at least 2",
    "for %(classes)s": "a project has at least 2 classes",
    "among %(n_classes)s": "a project has at least 2 classes",
    "paid for with {n}": "a project has at least 2 classes",
    "odds {odds} with {n_classes}": "a project has at least 2 classes",
    "There are {possible}": "a question has at least 2 answers",
    "about %(worth)s": "no whole number",
    "about %(needed)s": "what one person says alone never passes",
    "about %(times)s": "no whole number, and above 1",
    "holds it {k}": "k is at least 2",
    "in the last %(days)s": "a constant",
    "Below %(enough)s": "a constant",
    "log of %(records)s": "a constant",
    "over %(texts)s": "a constant",
    "%(wanted)s texts": "a constant",
    "the last {models}": "a constant",
    "From {versions}": "a constant",
    "did nothing for {minutes}": "a constant",
    "{most:,} records": "a limit of the program",
    "metadata: takes {most}": "a limit of the program",
    "Only %(rows)s of your": "thousands",
    "This upload has %(rows)s": "too many to count at once",
    "%(rows)s records": "thousands",
    "Its delta for {number}": "a group is at least 2",
    "its delta for {number}": "a group is at least 2",
    "For these %(n)s": "one record has a sentence of its own",
    "of %(planted)s": "the faults of the manual",
    "{project} labels": "the name of a project, and no number",
    "About {expected:.1f}": "no whole number",
    "About <strong>%(expected)s": "no whole number",
    "has {columns:,} columns": "more than a limit of the program",
    "Only the first %(rows)s": "thousands",
}


def plural_words(text):
    return set(re.findall(r"\b[a-z]+s\b", re.sub(r"%\(\w+\)[sd]|\{\w+[^{}]*\}", "", text)))


@pytest.fixture(scope="module")
def counted_things(marked):
    things = {
        word
        for message in marked
        if message.plural
        for word in plural_words(message.plural) - plural_words(message.text)
    }
    return things - {"has", "was", "is", "does", "this", "its"}


def without_a_singular(messages, things):
    """Return the messages that count something in the plural alone; what `NEVER_ONE` names is left out."""
    several = re.compile("|".join(map(re.escape, NEVER_ONE)))
    told = {message.text for message in messages if not message.plural}
    return {
        text
        for text in told
        for count in COUNTED.finditer(text)
        if count[1].split()[-1] in things and not several.search(text[max(0, count.start() - 40) : count.end()])
    }


def test_what_is_counted_has_a_singular(marked, counted_things):
    assert len(counted_things) > 40
    assert without_a_singular(marked, counted_things) == set()


def test_what_would_say_one_records_is_found(counted_things):
    said = [
        "{n} records came",
        "right on %(k)s labelled examples",
        "At most {n} records.",
        "{n:,} that came",
        "a record",
    ]
    wrong = without_a_singular([*map(CatalogueMessage, said), CatalogueMessage("{n} row", "{n} rows")], counted_things)
    assert wrong == set(said[:2])
    assert not any(re.search(r"\brecords\b", where) and "{n}" in where for where in NEVER_ONE)


def test_python_reads_what_was_compiled(tmp_path: Path):
    written = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n'
    written += 'msgid "a \\"b\\""\nmsgstr "ä\\nö"\n\nmsgid "%(n)d day"\nmsgid_plural "%(n)d days"\n'
    written += 'msgstr[0] "%(n)d Tag"\nmsgstr[1] ""\n"%(n)d Tage"\n\nmsgid "open"\nmsgstr ""\n'
    path = tmp_path / "django.po"
    path.write_text(written, encoding="utf-8")
    known = gettext.GNUTranslations(io.BytesIO(compile_catalogue(path)))
    assert known.gettext('a "b"') == "ä\nö"
    assert [known.ngettext("%(n)d day", "%(n)d days", n) for n in (1, 2)] == ["%(n)d Tag", "%(n)d Tage"]
    assert known.gettext("open") == "open"


def test_messages_are_found_in_code_and_pages(tmp_path: Path):
    (tmp_path / "code.py").write_text('_("one" " two")\nngettext("%(n)d a", "%(n)d b", n)\nfoo("three")\n')
    (tmp_path / "page.html").write_text(
        "{% load i18n %}{% translate 'four' %}{% blocktranslate with n=x %}five {{ n }} (%){% endblocktranslate %}"
        "{% blocktranslate count n=x %}{{ n }} six{% plural %}{{ n }} sixes{% endblocktranslate %}"
        "{{ x|default:_('7') }}"
    )
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "letter.txt").write_text("{% load i18n %}{% translate 'eight' %}")
    (tmp_path / "notes.txt").write_text("{% translate 'nine' %}")
    assert messages_in([tmp_path]) == {
        CatalogueMessage("one two"),
        CatalogueMessage("%(n)d a", "%(n)d b"),
        CatalogueMessage("four"),
        CatalogueMessage("five %(n)s (%%)"),
        CatalogueMessage("%(n)s six", "%(n)s sixes"),
        CatalogueMessage("7"),
        CatalogueMessage("eight"),
    }


def test_a_message_twice_is_refused(tmp_path: Path):
    path = tmp_path / "django.po"
    path.write_text('msgid "a"\nmsgstr "b"\n\nmsgid "a"\nmsgstr "c"\n')
    with pytest.raises(ValueError, match="twice"):
        read_catalogue(path)
