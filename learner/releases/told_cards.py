"""Model cards as pages show them, in the reader's language."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.utils.translation import get_language
from markdown_it import MarkdownIt

from annotation.markdown import PageRenderer
from annotation.wording import localized
from learner.errors import ArtifactCorrupt
from learner.linear_model import LinearModel
from learner.models import ModelRelease
from learner.pools import selectors
from learner.releases import storage
from learner.releases.cards.described import described_body
from learner.releases.cards.rendering import Card, EntryLine, Privacy, card_body
from learner.releases.cards.words import Telling
from learner.releases.no_privacy import estimate_said
from learner.releases.services import described, publishing
from learner.releases.services.described import DescribedRelease

FORMS = ("backticks", "escape", "fence", "heading", "list", "table")
FENCE = "---\n"


def without_front_matter(card: str) -> str:
    return card.split(f"\n{FENCE}", 1)[-1].lstrip("\n") if card.startswith(FENCE) else card


def card_html(card: str) -> str:
    reader = MarkdownIt("zero", {"html": False}, renderer_cls=PageRenderer).enable(list(FORMS))
    tokens = reader.parse(without_front_matter(card))
    titled = bool(tokens) and tokens[0].type == "heading_open" and tokens[0].tag == "h1"
    return str(reader.renderer.render(tokens[3:] if titled else tokens, reader.options, {}))


Body = Callable[[Telling], str]


@dataclass(frozen=True, slots=True)
class ShownCard:
    """A card as HTML, whose text is escaped; `told` where it is in the language of the page, else it is the file."""

    html: str
    told: bool


def shown_card(release: ModelRelease) -> ShownCard | None:
    """Return the card of a release for the page of its reader; None where its file is not the one that was released."""
    file = storage.card_of(release=release)
    return None if file is None else _shown(file, _bodies(release))


def shown_described_card(found: DescribedRelease) -> ShownCard:
    model = LinearModel.from_json(json.loads((found.folder / "weights.json").read_text(encoding="utf-8")))
    card = described.described_facts(found.project, found.scores)
    return _shown(found.card, [lambda tell: described_body(model, card=card, tell=tell)])


def _shown(file: str, bodies: Iterable[Body]) -> ShownCard:
    if not (get_language() or "en").startswith("en"):
        for body in bodies:
            if body(str) == without_front_matter(file):
                return ShownCard(card_html(body(localized)), told=True)
    return ShownCard(card_html(file), told=False)


def _bodies(release: ModelRelease) -> Iterator[Body]:
    """Yield what may have been written: a plan may have been simulated since."""
    try:
        with storage.open_file(release=release, name="privacy.json") as file:
            stored: dict[str, Any] = json.load(file)
    except ArtifactCorrupt:
        return
    model = LinearModel.from_json(release.weights)
    privacy = _privacy(release, stored)
    run = release.training_run
    facts = publishing.card_facts(
        run,
        estimator=release.estimator,
        metrics=publishing.metrics_of(release),
        made_on=release.created_at.date().isoformat(),
    )
    nothing_known: Card = {**facts, "no_privacy": estimate_said(None, may_plan=False)}
    for card in (facts, nothing_known):
        yield partial(_body, model, card, privacy)


def _body(model: LinearModel, card: Card, privacy: Privacy, tell: Telling) -> str:
    return card_body(model, card=card, privacy=privacy, tell=tell)


def _privacy(release: ModelRelease, stored: dict[str, Any]) -> Privacy:
    """Return the guarantee as the file states it, its sentences as messages where they are still said so."""
    # A version's own training stands on its card as it was reserved, and in its lineage as it was committed.
    entries = [each for entry in selectors.lineage_of(release) for each in (entry, entry.parent) if each is not None]
    summaries = {line["id"]: line["summary"] for line in map(publishing.line_of, entries)}
    answers = publishing.answers_words(release.project)
    return {
        "oracle": stored["oracle"],
        "questions_shown": stored["questions_shown"],
        "accounts": stored["accounts"],
        "entries": [_told(line, summaries) for line in stored["entries"]],
        "heads": {},
        "issued_at": stored["issued_at"],
        "answers": answers if answers == stored.get("answers", "") else stored["answers"],
        **publishing.transcript_size(stored),
    }


def _told(line: EntryLine, summaries: Mapping[str, str]) -> EntryLine:
    told = line.copy()
    told["summary"] = summaries.get(line["id"], line["summary"])
    return told
