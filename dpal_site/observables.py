"""Readers of every value and the reasons: collected from where they are declared, printed in the manual."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from django.conf import settings
from django.template.base import Node
from django.template.loader import get_template
from django.template.utils import get_app_template_dirs

from annotation.work.reads import EVERYBODY, Answer, Basis, Reader, Reads, ReadsNode
from dpal_site.api import api

# Of each place, who reads which names; one that ends with `*` stands for all that begin so.
Table = Mapping[str, Mapping[Reads, Sequence[str]]]
DOCUMENT: Final = Path(settings.BASE_DIR) / "docs" / "observables.md"
BEGIN, END = "<!-- observables: written by manage.py observables -->", "<!-- observables: end -->"
_SUMS = "account when by name operations epsilon rho delta percent epsilon_spent epsilon_left epsilon_limit"
_ELSEWHERE: Final[Mapping[str, Mapping[Reads, str]]] = {
    # Never what was sent; what is not theirs is not there.
    "Problem": {Reads.SITE: "type title status detail code plural parameters separator messages errors"},
    "statement.csv": {
        Reads.SETTINGS: "account sequence kind state mechanism subject purpose descends_from epsilon_nano delta_atto"
        " rho_nano mi_nano event_json",
        Reads.LEDGER: "created_at settled_at reason actor hash",
        Reads.RELEASED: "settled_digest",
    },
    "statement.json": {
        Reads.SETTINGS: "format project population accounts accounts.scope accounts.label accounts.unit"
        " accounts.adjacency accounts.filter accounts.limits.* accounts.entries.account_id accounts.entries.sequence"
        " accounts.entries.kind accounts.entries.event_json accounts.entries.epsilon_nano accounts.entries.delta_atto"
        " accounts.entries.rho_nano accounts.entries.mi_nano accounts.entries.parent_id accounts.entries.purpose"
        " accounts.entries.subject accounts.entries.mechanism accounts.entries.mechanism_in_words",
        Reads.LEDGER: "made_at accounts.opened_at accounts.chain_head accounts.verdict.* accounts.entries"
        " accounts.entries.created_at accounts.entries.when accounts.entries.actor accounts.entries.reason"
        " accounts.entries.hash accounts.entries.previous_hash accounts.entries.idempotency_key"
        " accounts.entries.epsilon_spent_nano accounts.entries.delta_spent_atto accounts.entries.rho_spent_nano"
        " accounts.entries.mi_spent_nano accounts.entries.epsilon_reserved_nano"
        " accounts.entries.delta_reserved_atto accounts.entries.rho_reserved_nano accounts.entries.mi_reserved_nano"
        " accounts.entries.open_reservations accounts.entries.id accounts.checkpoint signature.*",
        Reads.RELEASED: "accounts.entries.output_digest",
    },
    "spending.csv purposes.csv": {Reads.LEDGER: _SUMS},
    "releases.csv": {Reads.SETTINGS: "project version test_set examples", Reads.MEASURED: "accuracy low high"},
    "labels.csv annotators.csv work.csv": {Reads.MANAGED: "*"},
    "weights.json model.onnx model.skops": {Reads.RELEASED: "*"},
    "features.json words.json encoder.npz encoder.md encoder.vocabulary.txt": {Reads.SETTINGS: "*"},
    "samples.json card.md manifest.json manifest.sig": {Reads.MEASURED: "*"},
    "spending.svg purposes.svg releases.svg accuracy.svg reliability.svg confusion.svg": {Reads.MEASURED: "*"},
    "privacy.json": {
        Reads.SETTINGS: "schema deployment.* covered not_covered questions_shown oracle accounts.adjacency"
        " accounts.unit accounts.filter accounts.protects accounts.flavour accounts.unit_of_privacy"
        " accounts.neighbouring_data_sets accounts.limit_* accounts.guarantee.* accounts.guarantee_when_released.*"
        " accounts.population accounts.records_per_person answers",
        Reads.LEDGER: "issued_at accounts.spent_* accounts.spent_when_released.* accounts.chain_head entries entries.*",
        Reads.MEASURED: "transcript_bytes",
    },
    "question_image.png question_image.webp": {Reads.ASKED_INSIDE: "*"},
    "told_picture.webp guideline_picture.webp": {Reads.GUIDELINES: "*"},
    "headers": {
        Reads.SITE: "Content-Type Content-Language Vary Cache-Control Expires X-Frame-Options X-Content-Type-Options"
        " Referrer-Policy Cross-Origin-Opener-Policy Content-Security-Policy Permissions-Policy"
        " Strict-Transport-Security Accept-Ranges Allow WWW-Authenticate Last-Modified HX-*",
        Reads.OWN: "X-Request-ID Set-Cookie Location Retry-After Idempotency-Replayed Content-Range",
        Reads.BODY: "Content-Length Content-Disposition Link Warning X-Repo-Commit X-HF-Warning X-Error-Code"
        " X-Error-Message ETag",
    },
    # To an address that a manager chose. Where the choice of questions is secret: no question, decision, training,
    # comparison of answers, file of labels or pause.
    "webhook": {
        Reads.SETTINGS: "schema event project version round account limit_epsilon channel rolled_back reason",
        Reads.MANAGED: "dataset state settings question step work job change membership role guidelines study request"
        " kind forgetting",
    },
    # That something waits or is there, never which question, record or answer; where ids and times of questions are
    # secret, nothing about questions, comments, reviews, exports or what waits.
    "mail": {
        Reads.OWN: "account/email/*",
        Reads.SITE: "invited",
        Reads.SETTINGS: "release budget",
        Reads.OWN_WORK: "questions returned remark",
        Reads.MANAGED: "remark export waiting",
        Reads.REVIEW: "review",
    },
    "log": {
        Reads.OPERATED: "event level timestamp logger request_id exception method route status milliseconds user_id"
        " token_id security network account factor asked reason task task_id"
    },
    # Numbers of questions leave out projects that hide what they ask: they end on dashboards.
    "metrics": {
        Reads.OPERATED: "dpal_queue_depth dpal_leases dpal_lease_age_seconds dpal_broker_messages dpal_work"
        " dpal_work_age_seconds dpal_work_seconds dpal_heartbeat_age_seconds dpal_budget_epsilon_limit"
        " dpal_budget_epsilon_left dpal_budget_delta_left dpal_budget_open_reservations django_* python_* process_*"
    },
    # Nothing of a record, a question or an answer; a submission is approved because it is complete.
    "api.prolific.com": {
        Reads.SITE: "name description address completion_code places reward minutes message category amounts"
    },
    "/healthz /readyz": {Reads.SITE: "*"},
    "project.log": {Reads.MANAGED: "*"},
}


def elsewhere() -> Table:
    return {
        place: {reads: names.split() for reads, names in declared.items()}
        for places, declared in _ELSEWHERE.items()
        for place in places.split()
    }


def answers() -> Table:
    found: dict[str, dict[Reads, list[str]]] = {}
    described = api.get_openapi_schema()["components"]["schemas"]
    waiting = [Answer]
    while waiting:
        waiting += (answer := waiting.pop()).__subclasses__()
        if answer.__name__ not in described:
            continue
        for field, declared in answer.field_reads().items():
            for reads in declared:
                found.setdefault(answer.__name__, {}).setdefault(reads, []).append(field)
    return dict(sorted(found.items()))


@cache
def templates() -> Table:
    found: dict[str, dict[Reads, list[str]]] = {}
    base = Path(settings.BASE_DIR)
    folders = [base / "dpal_site" / "templates", *map(Path, get_app_template_dirs("templates"))]
    for folder in folders:
        if not folder.is_relative_to(base) or ".venv" in folder.parts:
            continue
        for path in sorted(one for kind in ("html", "svg", "txt") for one in folder.rglob(f"*.{kind}")):
            name = str(path.relative_to(folder))
            for node in _nodes(get_template(name).template.nodelist):  # type: ignore[attr-defined]
                if isinstance(node, ReadsNode):
                    for reads, names in node.declared.items():
                        found.setdefault(name, {}).setdefault(reads, []).extend(names)
    return dict(sorted(found.items()))


def _nodes(nodes: Sequence[Node]) -> Iterator[Node]:
    for node in nodes:
        yield node
        yield from _nodes(getattr(node, "nodelist", ()))


def covers(pattern: str, name: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


def reads_of(table: Table, place: str, name: str) -> set[Reads]:
    """Return the declarations of a name in a place; a key of a free document is declared as its field."""
    outer, _dot, field = place.partition(".")
    if place not in table and field and outer in table:
        place, name = outer, field
    declared = table.get(place, {})
    return {reads for reads, patterns in declared.items() if any(covers(pattern, name) for pattern in patterns)}


def readers_of(table: Table, places: Sequence[str] | frozenset[str], name: str) -> frozenset[Reader]:
    declared = [reads for place in places for reads in reads_of(table, place, name)]
    return frozenset[Reader]().union(*(reads.value.readers for reads in declared))


def as_markdown() -> str:
    lines = ["\n| declared as | who reads it | kind | why |", "|---|---|---|---|"]
    for reads in Reads:
        permission = reads.value
        who = ", ".join(reader.value for reader in Reader if reader in permission.readers)
        who = "everybody" if permission.readers == EVERYBODY else who
        lines.append(f"| {reads.name.lower()} | {who} | {permission.basis.value} | {permission.why} |")
    sections = {
        "REST, by schema": (answers(), frozenset[Basis]()),
        "Pages, by template": (templates(), frozenset({Basis.PUBLIC, Basis.OWN, Basis.MANAGERS})),
        "Files, headers, messages, logs, metrics": (elsewhere(), frozenset[Basis]()),
    }
    for title, (table, unnamed) in sections.items():
        grouped: dict[str, list[str]] = {}
        for place, declared in table.items():
            what = "managed" if set(declared) == {Reads.MANAGED} else _declared(declared, unnamed=unnamed)
            grouped.setdefault(what, []).append(f"`{place}`")
        lines += [f"\n**{title}**\n", "| where | what |", "|---|---|"]
        lines += [f"| {', '.join(places)} | {what} |" for what, places in grouped.items()]
    return "\n".join(lines)


def _declared(declared: Mapping[Reads, Sequence[str]], *, unnamed: frozenset[Basis]) -> str:
    """Return the names under each declaration, but of those in `unnamed` the declaration alone."""
    parts = [
        reads.name.lower() + f": {', '.join(f'`{name}`' for name in dict.fromkeys(names))}" * (basis not in unnamed)
        for reads, names in declared.items()
        for basis in [reads.value.basis]
    ]
    return "; ".join(parts)


def written_into(document: str) -> str:
    before, _, rest = document.partition(BEGIN)
    _stale, mark, after = rest.partition(END)
    if not mark:
        raise ValueError(f"the document lacks the marks {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{as_markdown()}\n{END}{after}"
