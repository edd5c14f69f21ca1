"""The whole declaration as the manual prints it."""

from collections.abc import Iterator
from pathlib import Path

from django.conf import settings

from dpal_site.observables.elsewhere import HEADERS, LOGS, MAILS, METRICS, OTHER, WEBHOOKS
from dpal_site.observables.files import FILES
from dpal_site.observables.kinds import EVERYBODY, Reader, Shown
from dpal_site.observables.model_pages import BUDGET, DASHBOARD, RELEASES
from dpal_site.observables.pages import COMING_AND_GOING, EVERY_PAGE, FOR_MANAGERS, QUESTIONS
from dpal_site.observables.rest import REST

SECTIONS: tuple[tuple[str, tuple[Shown, ...]], ...] = (
    ("REST, by schema", REST),
    ("Every page", EVERY_PAGE),
    ("Pages of coming and going", COMING_AND_GOING),
    ("Pages of questions", QUESTIONS),
    ("Pages of budgets", BUDGET),
    ("Pages of releases", RELEASES),
    ("Dashboard", DASHBOARD),
    ("Pages for managers, operators and one's own account, by address", FOR_MANAGERS),
    ("Files", FILES),
    ("Headers", HEADERS),
    ("Messages, logs, metrics, health", (*WEBHOOKS, *MAILS, *LOGS, *METRICS, *OTHER)),
)
EVERYTHING = tuple(row for _title, rows in SECTIONS for row in rows)
DOCUMENT = Path(settings.BASE_DIR) / "docs" / "privacy.md"
BEGIN, END = "<!-- observables: written by manage.py observables -->", "<!-- observables: end -->"


def as_markdown() -> str:
    """Return the tables, a heading each."""
    return "\n".join(line for title, rows in SECTIONS for line in _section(title, rows))


def written_into(document: str) -> str:
    """Return a document with the tables as they are now between its two marks."""
    before, _, rest = document.partition(BEGIN)
    _stale, mark, after = rest.partition(END)
    if not mark:
        raise ValueError(f"the document lacks the marks {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{as_markdown()}\n{END}{after}"


def _section(title: str, rows: tuple[Shown, ...]) -> Iterator[str]:
    yield from (f"\n**{title}**\n", "| where | what | who reads it | kind | why |", "|---|---|---|---|---|")
    for row in rows:
        cells = (_code(row.places), _code(row.names) or "nothing", _who(row.readers), row.basis.value, row.why)
        yield f"| {' | '.join(cells)} |"


def _code(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _who(readers: frozenset[Reader]) -> str:
    if readers == EVERYBODY:
        return "everybody"
    return ", ".join(reader.value for reader in Reader if reader in readers)
