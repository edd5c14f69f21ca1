"""Cards and thresholds issued after a release: no card of an offered one prints less than its account allows."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.db import transaction

from annotation.models import Project
from annotation.work.services import files
from learner.errors import ArtifactCorrupt, CardNotIssued
from learner.estimators import abstaining
from learner.models import ModelRelease, PrintedLimit, ReleaseState
from learner.pools.selectors import releases_of
from learner.releases import storage
from learner.releases.artifacts.files import reissue_artifacts
from learner.releases.cards.rendering import AccountTerms, Privacy
from learner.releases.selectors import abstaining_of
from learner.releases.services import publishing
from privacy.accounting.cost import atto_shown, nano_shown
from privacy.ledger.models import BudgetAccount, LedgerEntry
from privacy.wording import as_message


def issue_for_higher_limit(
    *, project: Project, account: BudgetAccount, epsilon_limit_nano: int, delta_limit_atto: int, **_: object
) -> None:
    """Issue every card anew that prints less than the account is about to allow; receives `limit_changing`."""
    printed = PrintedLimit.objects.filter(account=account).exclude(release__state=ReleaseState.RETIRED)
    for each in printed.select_related("release").order_by("release_id"):
        if each.epsilon_limit_nano >= epsilon_limit_nano and each.delta_limit_atto >= delta_limit_atto:
            continue
        each.epsilon_limit_nano = max(each.epsilon_limit_nano, epsilon_limit_nano)
        each.delta_limit_atto = max(each.delta_limit_atto, delta_limit_atto)
        _issue(releases_of(project).get(pk=each.release_id), account, each)


def _issue(release: ModelRelease, account: BudgetAccount, printed: PrintedLimit) -> None:
    terms = [_raised(each, printed) if each["protects"] == account.plain_label else each for each in release.guarantee]
    refusal = as_message(
        "The limit stays: the files of version {version} do not verify. Retire that version first.",
        version=release.version,
    )
    _reissue(release, terms, refusal=refusal)
    printed.save(update_fields=["epsilon_limit_nano", "delta_limit_atto"])


def issue_with_thresholds(*, release: ModelRelease, entries: Sequence[LedgerEntry]) -> None:
    """Store in a release's files when it abstains, as its newest counts say, and what finding that was charged."""
    # No limit rises meanwhile: its card would be written from terms that this one does not have.
    accounts = PrintedLimit.objects.filter(release=release).values("account")
    list(BudgetAccount.objects.select_for_update(no_key=True).filter(pk__in=accounts).order_by("pk"))
    current = releases_of(release.project).get(pk=release.pk)
    refusal = as_message("The files of version {version} do not verify.", version=release.version)
    _reissue(current, current.guarantee, refusal=refusal, entries=entries)
    current.lineage.add(*entries)


def _reissue(
    release: ModelRelease, terms: list[AccountTerms], *, refusal: str, entries: Sequence[LedgerEntry] | None = None
) -> None:
    """Write a release's files again; `entries` that found thresholds store these, too."""
    folder, name = release.folder, _next_folder(release)
    draft = publishing.drafts_of(release.project) / f".{name.rpartition('/')[2]}"
    shutil.rmtree(draft, ignore_errors=True)
    try:
        with storage.files_at_hand(release) as source:
            digests = _write(source, draft, release, terms, entries)
        publishing.move_into_place(draft, name)
    except ArtifactCorrupt as error:
        raise CardNotIssued(refusal) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    ModelRelease.objects.filter(pk=release.pk).update(folder=name, digests=digests, guarantee=terms)
    transaction.on_commit(lambda: files.delete_folder(folder))


def _write(
    source: Path, draft: Path, release: ModelRelease, terms: list[AccountTerms], entries: Sequence[LedgerEntry] | None
) -> dict[str, str]:
    said: dict[str, Any] = json.loads((source / "privacy.json").read_text(encoding="utf-8"))
    privacy: Privacy = {
        "oracle": said["oracle"],
        "questions_shown": said["questions_shown"],
        "accounts": terms,
        "entries": [*said["entries"], *map(publishing.line_of, entries or ())],
        "heads": {each["protects"]: each["chain_head"] for each in said["accounts"]},
        "issued_at": publishing.today(),
        "answers": said.get("answers", ""),
        **publishing.transcript_size(said),
    }
    metrics = publishing.metrics_of(release)
    made_on = release.created_at.date().isoformat()
    card = publishing.card_facts(
        release.training_run,
        estimator=release.estimator,
        metrics=metrics,
        made_on=made_on,
        counts=release.span_counts or None,
    )
    found = abstaining_of(release)
    card["abstain"] = found
    stored = None if entries is None else abstaining.stored(found)
    return reissue_artifacts(source, draft, card=card, privacy=privacy, signer=storage.signer(), abstain=stored)


def _raised(terms: AccountTerms, printed: PrintedLimit) -> AccountTerms:
    # Cards that were written before limits could rise on them do not say what stood when released: it stood until now.
    first: AccountTerms = {
        **terms,
        "limit_epsilon_when_released": terms.get("limit_epsilon_when_released", terms["limit_epsilon"]),
        "limit_delta_when_released": terms.get("limit_delta_when_released", terms["limit_delta"]),
    }
    return {
        **first,
        "limit_epsilon": nano_shown(printed.epsilon_limit_nano),
        "limit_delta": atto_shown(printed.delta_limit_atto),
    }


def _next_folder(release: ModelRelease) -> str:
    """Return the folder of the next issue: that of version 3 is `3`, then `3-2`, `3-3`."""
    base, _, issue = release.folder.rpartition("/")[2].partition("-")
    return f"{release.folder.rpartition('/')[0]}/{base}-{int(issue or 1) + 1}"
