"""Catalogues of translations: which messages the code and pages hold, and `.po` files read and compiled by Babel."""

import ast
import builtins
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.catalog import Message as Entry
from babel.messages.extract import extract
from babel.messages.mofile import write_mo
from babel.messages.pofile import PoFileParser
from django.utils.translation.template import templatize

PLURAL = "\0"
# Names under which messages are marked in Python, by how many strings each takes.
SINGULAR = {"_", "gettext", "gettext_lazy", "gettext_noop", "as_message", "say_now"}
PRESET_WORDS = {"title", "sentence", "cost", "made_of"}
# Errors that programs and administrators read: they stay English.
UNTRANSLATED = {
    "CommandError",
    "HttpError",
    "IdempotencyKeyReused",
    "InvalidRecords",
    "ImproperlyConfigured",
    "EmbeddedError",
    "ProcessDied",
    "ServerNotStarted",
    "UnsupportedUrl",
    "TransactionManagementError",
    "WorkLost",
    "RollbackDetected",
    "CounterMissing",
    "no_proof",
    "ArtifactCorrupt",
    "EngineFailed",
    "EncoderMissing",
    "PoolDamaged",
    # Of an auditor's own commands, which speak English alone.
    "LedgerRefused",
    "NoteRefused",
    "StatementRefused",
}
PLURALS = {"ngettext", "ngettext_lazy", "ngettext_noop", "as_plural_message"}
IN_TEMPLATES = {"_": None, "gettext": None, "ngettext": (1, 2)}
# A compiled catalogue says when it was written; the same words make the same bytes whenever that is.
NO_DATE = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class CatalogueMessage:
    text: str
    plural: str = ""

    @property
    def key(self) -> str:
        return f"{self.text}{PLURAL}{self.plural}" if self.plural else self.text


def messages_in(folders: Iterable[Path]) -> set[CatalogueMessage]:
    found: set[CatalogueMessage] = set()
    for folder in folders:
        for path in folder.rglob("*.py"):
            if "migrations" not in path.parts:
                found |= set(_in_python(path.read_text(encoding="utf-8")))
        for path in [*folder.rglob("*.html"), *folder.rglob("templates/**/*.txt")]:
            found |= set(_in_template(path))
    return found


def _in_python(source: str) -> Iterator[CatalogueMessage]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            yield from _refusal(node.exc)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            yield from _broken_rule(node.targets[0], node.value)
        elif isinstance(node, ast.Call):
            yield from _marked(node)


def _name_of(called: ast.expr) -> str:
    return called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")


def _strings(parts: Iterable[ast.expr]) -> list[str]:
    return [part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]


def _marked(call: ast.Call) -> Iterator[CatalogueMessage]:
    name = _name_of(call.func)
    wanted = 1 if name in SINGULAR else 2 if name in PLURALS else 0
    strings = _strings(call.args[:wanted])
    if wanted and len(strings) == wanted:
        yield CatalogueMessage(*strings)
    if name == "Preset":
        # Pure modules know no gettext; the page translates what it shows of a preset, and a page doubles percent signs.
        for text in _strings(word.value for word in call.keywords if word.arg in PRESET_WORDS):
            yield CatalogueMessage(text.replace("%", "%%"))


def _refusal(error: ast.Call) -> Iterator[CatalogueMessage]:
    name = _name_of(error.func)
    if not hasattr(builtins, name) and name not in UNTRANSLATED:
        # Our refusals have their sentence first, but for those that name rows or a status before it.
        yield from (CatalogueMessage(text) for text in _strings(error.args[:2]))


def _broken_rule(target: ast.Subscript, rule: ast.expr) -> Iterator[CatalogueMessage]:
    if _name_of(target.value) == "broken":
        yield from map(CatalogueMessage, _strings([rule]))


def _in_template(path: Path) -> Iterator[CatalogueMessage]:
    # Django turns a template into calls of gettext; the text before one is no indentation.
    lines = templatize(path.read_text(encoding="utf-8"), origin=str(path)).splitlines()
    calls = io.BytesIO("\n".join(line.lstrip() for line in lines).encode())
    for _line, texts, _comments, _context in extract("python", calls, IN_TEMPLATES):
        yield CatalogueMessage(texts) if isinstance(texts, str) else CatalogueMessage(*texts)


class _Written(Catalog):
    def __setitem__(self, id: str | list[str] | tuple[str, ...], message: Entry) -> None:  # noqa: A002  # Babel's name
        if id and id in self:
            raise ValueError(f"the catalogue holds a message twice: {id!r:.60}")
        super().__setitem__(id, message)


def _read(path: Path) -> Catalog:
    catalogue = _Written()
    with path.open(encoding="utf-8") as lines:
        PoFileParser(catalogue, ignore_obsolete=True, abort_invalid=True).parse(lines)
    return catalogue


def read_catalogue(path: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for entry in _read(path):
        forms = [entry.string] if isinstance(entry.string, str) else entry.string
        found[PLURAL.join(entry.id) if isinstance(entry.id, list | tuple) else entry.id] = list(forms or ())
    return found


def compile_catalogue(path: Path) -> bytes:
    catalogue = _read(path)
    catalogue.creation_date = catalogue.revision_date = NO_DATE
    compiled = io.BytesIO()
    write_mo(compiled, catalogue)
    return compiled.getvalue()
