"""Issuing cards anew before a limit rises: no card of an offered release prints less than its account allows."""

import json
import shutil
from pathlib import Path
from typing import Any

from django.db import transaction

from annotation.models import Project
from annotation.work.services import files
from learner.errors import ArtifactCorrupt, CardNotIssued
from learner.models import ModelRelease, PrintedLimit, ReleaseState
from learner.pools.selectors import releases_of
from learner.releases import storage
from learner.releases.artifacts.files import reissue_artifacts
from learner.releases.cards.rendering import AccountTerms, Privacy
from learner.releases.services import publishing
from privacy.accounting.units import atto_shown, nano_shown
from privacy.ledger.models import BudgetAccount
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
    folder, name = release.folder, _next_folder(release)
    draft = publishing.drafts_of(release.project) / f".{name.rpartition('/')[2]}"
    shutil.rmtree(draft, ignore_errors=True)
    try:
        with storage.files_at_hand(release) as source:
            digests = _write(source, draft, release, terms)
        publishing.move_into_place(draft, name)
    except ArtifactCorrupt as error:
        raise CardNotIssued(
            as_message(
                "The limit stays as it is: the card of version {version} prints it and cannot be issued anew, since "
                "its files do not verify. Retire that version first.",
                version=release.version,
            )
        ) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    printed.save(update_fields=["epsilon_limit_nano", "delta_limit_atto"])
    ModelRelease.objects.filter(pk=release.pk).update(folder=name, digests=digests, guarantee=terms)
    transaction.on_commit(lambda: files.delete_folder(folder))


def _write(source: Path, draft: Path, release: ModelRelease, terms: list[AccountTerms]) -> dict[str, str]:
    said: dict[str, Any] = json.loads((source / "privacy.json").read_text(encoding="utf-8"))
    privacy: Privacy = {
        "oracle": said["oracle"],
        "questions_shown": said["questions_shown"],
        "accounts": terms,
        "entries": said["entries"],
        "heads": {each["protects"]: each["chain_head"] for each in said["accounts"]},
        "issued_at": publishing.today(),
        "answers": said.get("answers", ""),
        **publishing.transcript_size(said),
    }
    metrics = publishing.metrics_of(release)
    made_on = release.created_at.date().isoformat()
    card = publishing.card_facts(release.training_run, estimator=release.estimator, metrics=metrics, made_on=made_on)
    return reissue_artifacts(source, draft, card=card, privacy=privacy, signer=storage.signer())


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
