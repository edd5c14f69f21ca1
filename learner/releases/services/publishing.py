"""Publishing a version: its files and its card, written beside the others and moved into place with the commit."""

import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypedDict

from django.conf import settings
from django.core.files.storage import default_storage
from django.db import transaction
from django.utils import timezone

from annotation.choices.rules import hides_selection
from annotation.models import Oracle, Project
from annotation.work.services import files
from annotation.work.services.attempts import Lease, finish_work
from dpal.recompute.transcript import Transcript
from learner.errors import LimitsMoving
from learner.estimators.catalogue import why_not_compared, words_for
from learner.features.base import Featurizer
from learner.linear_model import LinearModel
from learner.models import Evaluation, ModelRelease, PrintedLimit, TrainingRun
from learner.pools import selectors
from learner.pools.configuration import answers_are_open, answers_event_of
from learner.releases import evaluations, storage
from learner.releases.artifacts.environment import environment
from learner.releases.artifacts.files import write_artifacts
from learner.releases.artifacts.settings import configuration_of
from learner.releases.cards.accuracy import Metric
from learner.releases.cards.rendering import OPEN_ANSWERS, AccountTerms, Card, EntryLine, Privacy
from learner.releases.evaluations import Score
from learner.releases.no_privacy import expected_of
from learner.releases.provenance_entries import provenance_of
from learner.releases.span_measures import SpanCounts, counts_in, held_out_score
from privacy.accounting.cost import atto_shown, nano_shown
from privacy.accounting.event import event_from_json
from privacy.ledger.faults import fault_point
from privacy.ledger.models import BudgetAccount, EntryKind, LedgerEntry
from privacy.ledger.selectors import guarantee, quota_of
from privacy.wording import in_english

# Limits rise by hand: a second time while one release is written has never been seen, a third is somebody's attack.
TRIES = 3


@dataclass(slots=True)
class StagedRelease:
    """A release whose files are complete and which nobody can see yet; `release` is its row once it is published."""

    run: TrainingRun
    folder: Path
    model: LinearModel
    featurizer: Featurizer
    digests: dict[str, str]
    accounts: list[BudgetAccount]
    terms: list[AccountTerms]
    scores: list[Score]
    span_counts: SpanCounts | None
    release: ModelRelease | None = None

    @property
    def digest(self) -> str:
        return digest_over(self.digests)


def digest_over(digests: dict[str, str]) -> str:
    return hashlib.sha256(json.dumps(digests, sort_keys=True).encode()).hexdigest()


@contextmanager
def staged_version(
    run: TrainingRun,
    model: LinearModel,
    featurizer: Featurizer,
    *,
    entries: Sequence[LedgerEntry],
    lease: Lease,
    transcript: Transcript,
    paid: LedgerEntry | None,
) -> Iterator[StagedRelease]:
    """Write a release's files, on whose card `entries` stand, and begin the transaction that settles and publishes
    it; `paid` is the one among them that pays for the transcript's answers.
    """
    for _ in range(TRIES):
        with _staged_release(run, model, featurizer, entries=entries, transcript=transcript, paid=paid) as staged:
            fault_point("training_staged")
            lease.check()
            with transaction.atomic():
                if not _limits_stand(staged):
                    continue
                # The labels as they were counted at the start: what was emptied since is an empty slot, and counts.
                finish_work(row=run)
                yield staged
                if staged.release is None:
                    # The work would be done, and nothing of it there.
                    raise RuntimeError(f"version {run.version} was staged and not published")
                fault_point("training_published")
                return
    raise LimitsMoving(in_english("A limit rose while the card of this version was written."))


@contextmanager
def _staged_release(
    run: TrainingRun,
    model: LinearModel,
    featurizer: Featurizer,
    *,
    entries: Sequence[LedgerEntry],
    transcript: Transcript,
    paid: LedgerEntry | None,
) -> Iterator[StagedRelease]:
    """Write a release's files where nobody looks; what was not published on leaving is removed."""
    project = run.project
    folder = drafts_of(project) / f".{run.pk}-{run.attempt}"
    for left in folder.parent.glob(f".*{run.pk}-*"):
        # Written by an attempt that was killed: paid for, never published.
        shutil.rmtree(left, ignore_errors=True)
    public = list(evaluations.public_test_sets(project))
    scores = [evaluations.score_model(model, dataset) for dataset in public]
    accounts = _accounts_now(project)
    terms = [card_terms(account) for account in accounts]
    privacy: Privacy = {
        "oracle": "crowd" if project.oracle == Oracle.CROWD else "trusted",
        "questions_shown": not hides_selection(project.settings),
        "accounts": terms,
        "entries": [line_of(entry) for entry in entries],
        "heads": {account.plain_label: guarantee(account).chain_head for account in accounts},
        "issued_at": today(),
        "answers": answers_words(project),
    }
    counts = counts_in(transcript)
    metrics = [metric_of(evaluations.evaluation_of(score)) for score in scores]
    card = card_facts(run, estimator=project.estimator, metrics=metrics, made_on=today(), counts=counts)
    try:
        digests = write_artifacts(
            folder,
            model=model,
            featurizer=featurizer,
            card=card,
            privacy=privacy,
            provenance=provenance_of(project, featurizer, scores, accounts, entries),
            signer=storage.signer(),
            outcomes=evaluations.public_outcomes(model, public),
            transcript=replace(transcript, charged=None if paid is None else _charged_by(paid)),
        )
        yield StagedRelease(run, folder, model, featurizer, digests, accounts, terms, scores, counts)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class TranscriptSize(TypedDict, total=False):
    transcript_bytes: int


def transcript_size(said: Mapping[str, Any]) -> TranscriptSize:
    return {"transcript_bytes": said["transcript_bytes"]} if "transcript_bytes" in said else {}


def answers_words(project: Project) -> str:
    """Return what a card says of how answers left the site, empty where each training reads them itself."""
    if answers_are_open(project):
        return OPEN_ANSWERS
    event = answers_event_of(project)
    if event is None:
        return ""
    epsilon = event.cost(adjacency="replace").epsilon
    whose, asked, times = "one answer", event.questions_per_annotator, event.randomizations
    if event.unit != "answer":
        questions = f"{asked} question{'' if asked == 1 else 's'}"
        whose = f"one annotator, whose answers to at most {questions} are protected together,"
    often = "once for each question" if times == 1 else f"at most {times} times for each question"
    return (
        f"What the answers to a question agree on left the site through a randomised response, {often}. Epsilon "
        f"{epsilon:.6g} of {whose} covers all questions, rounds, trainings and versions together; it was spent once, "
        "and this version cost nothing more."
    )


def card_facts(
    run: TrainingRun, *, estimator: str, metrics: list[Metric], made_on: str, counts: SpanCounts | None
) -> Card:
    used = selectors.trained_on(run)
    card: Card = {
        "project": run.project.slug,
        "name": run.project.name,
        "version": run.version,
        "predicts": run.project.question,
        "estimator": words_for(estimator),
        "questions_asked": used.questions,
        "pool_size": used.pool_size,
        "sampling_rate": used.rate,
        "created_at": made_on,
        "metrics": metrics,
        "words_source": str(run.project.settings.get("words_source") or ""),
        "not_compared": why_not_compared(estimator),
    }
    expected = expected_of(run.project)
    if expected is not None:
        card["expected"] = expected
    if counts is not None:
        found = held_out_score(counts)
        card["held_out"] = {
            "name": "all",
            "spans": found.spans,
            "value": found.f1,
            "low": found.low,
            "high": found.high,
        }
    return card


def metric_of(measured: Evaluation) -> Metric:
    shown, measures = evaluations.accuracy_of(measured), measured.measures
    found: Metric = {
        "dataset": shown.dataset,
        "examples": shown.examples,
        "accuracy": shown.value,
        "interval": (shown.low, shown.high),
        "macro_f1": measures["macro_f1"]["value"],
        "constant": shown.constant,
        "version_0": shown.described,
        "calibration_error": measures["calibration_error"]["value"],
    }
    if measured.finds_spans:
        named = zip(map(str, measured.dataset.project.classes), measures["f1"], strict=False)
        total = {"name": "all", "spans": sum(one["spans"] for one in measures["f1"])}
        found["types"] = [total | measures["micro_f1"], *({"name": name} | one for name, one in named)]
    return found


def metrics_of(release: ModelRelease) -> list[Metric]:
    return [metric_of(each) for each in release.evaluations.order_by("pk").select_related("dataset")]


def today() -> str:
    return timezone.now().date().isoformat()


def drafts_of(project: Project) -> Path:
    if files.are_local():
        return Path(default_storage.path(f"releases/{project.slug}"))
    return settings.VAR_DIR / "releases" / project.slug


def move_into_place(folder: Path, name: str) -> None:
    # Left by an attempt that died after moving and before its commit: no release names it.
    files.delete_folder(name)
    if files.are_local():
        folder.rename(Path(default_storage.path(name)))
        return
    for path in sorted(folder.iterdir()):
        files.store_file(path, f"{name}/{path.name}")


def publish(staged: StagedRelease, *, entry: LedgerEntry, lineage: Sequence[LedgerEntry]) -> ModelRelease:
    """Store the release and move its files into place, as the last step of the transaction that commits its cost."""
    run = staged.run
    project = run.project
    name = f"releases/{project.slug}/{run.version}"
    release = ModelRelease.objects.create(
        project=project,
        version=run.version,
        training_run=run,
        estimator=project.estimator,
        event=_paid_event(entry),
        weights=staged.model.to_json(),
        features=json.loads(staged.featurizer.to_json()),
        folder=name,
        digests=staged.digests,
        guarantee=staged.terms,
        entry=entry,
        labels_used=run.labels_used,
        span_counts=staged.span_counts or {},
        configuration=configuration_of(project),
        environment=environment(),
    )
    release.lineage.set(lineage)
    print_limits(release, staged.accounts)
    evaluations.store_scores(release, staged.scores)
    move_into_place(staged.folder, name)
    staged.release = release
    return release


def print_limits(release: ModelRelease, accounts: Sequence[BudgetAccount]) -> None:
    """Note what the card of a release says of its accounts' limits, which then stay where they are."""
    PrintedLimit.objects.bulk_create(
        PrintedLimit(
            release=release,
            account=account,
            epsilon_limit_nano=account.epsilon_limit_nano,
            delta_limit_atto=account.delta_limit_atto,
        )
        for account in accounts
    )


def _accounts_now(project: Project) -> list[BudgetAccount]:
    """Return the accounts of a release's guarantee with their limits as they are, not as somebody read them earlier."""
    accounts = selectors.guarantee_accounts(project)
    for account in accounts:
        account.refresh_from_db()
    return accounts


def _limits_stand(staged: StagedRelease) -> bool:
    """Say whether the limits are those that were written, and keep them so until the end of the transaction."""
    ids = [account.pk for account in staged.accounts]
    locked = BudgetAccount.objects.select_for_update(no_key=True).filter(pk__in=ids).order_by("pk")
    now = {account.pk: (account.epsilon_limit_nano, account.delta_limit_atto) for account in locked}
    written = {account.pk: (account.epsilon_limit_nano, account.delta_limit_atto) for account in staged.accounts}
    return now == written


def _paid_event(entry: LedgerEntry) -> dict[str, Any]:
    paid = entry.parent
    while paid is not None and paid.kind == EntryKind.COMMIT:
        paid = paid.parent
    return dict(paid.event) if paid is not None else {}


def card_terms(account: BudgetAccount) -> AccountTerms:
    now, quota = guarantee(account), quota_of(account)
    return {
        "protects": account.plain_label,
        "filter": now.filter,
        "unit": now.unit,
        "adjacency": now.adjacency,
        "limit_epsilon": now.epsilon_limit,
        "limit_delta": now.delta_limit,
        "spent_epsilon": now.epsilon_spent,
        "spent_delta": now.delta_spent,
        "limit_epsilon_when_released": now.epsilon_limit,
        "limit_delta_when_released": now.delta_limit,
        "population": "" if quota is None else quota.population.plain_label,
        "records_per_person": 1 if quota is None else quota.records_per_person,
    }


def _charged_by(entry: LedgerEntry) -> dict[str, Any]:
    """Return what a transcript says of the entry that paid for its answers."""
    return {"entry": line_of(entry)["id"], "event": _reserved(entry).event}


def _reserved(entry: LedgerEntry) -> LedgerEntry:
    return entry.parent if entry.parent is not None and entry.kind == "commit" else entry


def line_of(entry: LedgerEntry) -> EntryLine:
    reserved = _reserved(entry)
    return {
        "id": f"{entry.account.plain_label} #{entry.sequence}",
        "kind": reserved.mechanism,
        "summary": reserved.purpose
        if reserved.mechanism.startswith("post")
        else event_from_json(reserved.event).summary(),
        "epsilon": nano_shown(entry.epsilon_nano or 0),
        "delta": atto_shown(entry.delta_atto),
    }
