"""Catalogues of translations: which messages the code and pages hold, and `.po` files read and compiled in Python.

GNU gettext's tools are not needed: what they would do for this project fits here, so that tests can say at once which
message has no translation.
"""

import ast
import builtins
import re
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

PLURAL = "\0"
# Names under which messages are marked in Python, by how many strings each takes.
SINGULAR = {"_", "gettext", "gettext_lazy", "gettext_noop", "say"}
PRESET_WORDS = {"title", "sentence", "cost"}
# Errors that programs and administrators read: they stay English.
UNTRANSLATED = {
    "CommandError",
    "DataProblem",
    "HttpError",
    "ImproperlyConfigured",
    "EmbeddedError",
    "ProcessDied",
    "ServerNotStarted",
    "UnsupportedUrl",
    "TransactionManagementError",
    "WorkLost",
    "no_proof",
}
PLURALS = {"ngettext", "ngettext_lazy"}
STRING = r"""u?('(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")"""
MARK = re.compile(rf"(?<!p)\b(?:_|gettext|ngettext)\(\s*{STRING}(?:\s*,\s*{STRING})?")


@dataclass(frozen=True, slots=True)
class Message:
    """One message: its text and, where it counts something, its plural."""

    text: str
    plural: str = ""

    @property
    def key(self) -> str:
        """The message as a compiled catalogue knows it."""
        return f"{self.text}{PLURAL}{self.plural}" if self.plural else self.text


def messages_in(folders: Iterable[Path]) -> set[Message]:
    """Return every message marked for translation in the Python files and templates under `folders`."""
    found: set[Message] = set()
    for folder in folders:
        for path in folder.rglob("*.py"):
            if "migrations" not in path.parts:
                found |= set(_in_python(path.read_text(encoding="utf-8")))
        for path in folder.rglob("*.html"):
            found |= set(_in_template(path))
    return found


def _in_python(source: str) -> Iterator[Message]:
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


def _marked(call: ast.Call) -> Iterator[Message]:
    name = _name_of(call.func)
    wanted = 1 if name in SINGULAR else 2 if name in PLURALS else 0
    strings = _strings(call.args[:wanted])
    if wanted and len(strings) == wanted:
        yield Message(*strings)
    if name == "Preset":
        # Pure modules know no gettext; the page translates what it shows of a preset, and a page doubles percent signs.
        for text in _strings(word.value for word in call.keywords if word.arg in PRESET_WORDS):
            yield Message(text.replace("%", "%%"))


def _refusal(error: ast.Call) -> Iterator[Message]:
    """Find what our own errors say to people: the page that shows a refusal translates it."""
    name = _name_of(error.func)
    if not hasattr(builtins, name) and name not in UNTRANSLATED:
        # Our refusals have their sentence first, but for those that name rows or a status before it.
        yield from (Message(text) for text in _strings(error.args[:2]))


def _broken_rule(target: ast.Subscript, rule: ast.expr) -> Iterator[Message]:
    """Find the rules a configuration can break: the form that shows them translates them."""
    if _name_of(target.value) == "broken":
        yield from map(Message, _strings([rule]))


def _in_template(path: Path) -> Iterator[Message]:
    from django.utils.translation.template import templatize  # noqa: PLC0415  # optional

    # Django turns a template into calls that a reader of Python understands.
    for mark in MARK.finditer(templatize(path.read_text(encoding="utf-8"), origin=str(path))):
        yield Message(*(ast.literal_eval(text) for text in mark.groups() if text))


def read_catalogue(path: Path) -> dict[str, list[str]]:
    """Return a `.po` file as translations by message key, one for each plural form; the header stands under ''."""
    catalogue: dict[str, list[str]] = {}
    for block in path.read_text(encoding="utf-8").split("\n\n"):
        fields: dict[str, str] = {}
        name = ""
        for line in block.splitlines():
            if line.startswith("#"):
                continue
            if not line.startswith('"'):
                name, _, line = line.partition(" ")
                fields[name] = ""
            fields[name] += ast.literal_eval(line)
        if "msgid" in fields:
            key = Message(fields["msgid"], fields.get("msgid_plural", "")).key
            if key in catalogue:
                raise ValueError(f"{path.name} holds a message twice: {key[:60]!r}")
            catalogue[key] = [text for field, text in sorted(fields.items()) if field.startswith("msgstr")]
    return catalogue


def compile_catalogue(catalogue: dict[str, list[str]]) -> bytes:
    """Return the bytes of a `.mo` file: the format of GNU gettext, little-endian, without a hash table."""
    entries = sorted((key.encode(), PLURAL.join(texts).encode()) for key, texts in catalogue.items() if all(texts))
    keys, texts = b"", b""
    spots = []
    for key, text in entries:
        spots.append((len(key), len(keys), len(text), len(texts)))
        keys += key + b"\0"
        texts += text + b"\0"
    table = 7 * 4
    keys_at = table + 16 * len(entries)
    texts_at = keys_at + len(keys)
    head = struct.pack("<7I", 0x950412DE, 0, len(entries), table, table + 8 * len(entries), 0, table)
    of_keys = b"".join(struct.pack("<2I", length, keys_at + offset) for length, offset, _, _ in spots)
    of_texts = b"".join(struct.pack("<2I", length, texts_at + offset) for _, _, length, offset in spots)
    return head + of_keys + of_texts + keys + texts
