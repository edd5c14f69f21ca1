import gettext
import io
import re
from pathlib import Path

import pytest

from dpal_site.catalogues import CatalogueMessage, compile_catalogue, messages_in, read_catalogue
from dpal_site.embedded.servers import REPOSITORY
from dpal_site.management.commands.compile_translations import ENGLISH, PACKAGES

CATALOGUES = sorted((REPOSITORY / "locale").glob("*/LC_MESSAGES/django.po"))
PLACEHOLDER = re.compile(r"%\(\w+\)[sd]|%%|<[^>]+>")
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


def found(text: str) -> list[str]:
    return [mark[0] for mark in PLACEHOLDER.finditer(text)] + [mark[1] for mark in FIELD.finditer(text)]


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
