"""What a project stores that an evaluator of its guarantee asks for."""

import json

from django.conf import settings

from annotation.choices.secrecy import hides_selection
from annotation.models import Oracle, Project
from annotation.projects.settings_words import setting_value
from learner.evidence.sp800_226 import AccountFacts, Facts, LimitLine
from learner.models import ReleaseState
from learner.pools import selectors
from learner.releases import storage
from learner.releases.cards.rendering import Privacy
from learner.releases.services import publishing
from privacy.accounting.units import atto_spendable, atto_spent, nano_spendable, nano_spent
from privacy.models import BudgetAccount, EntryKind, LedgerEntry, Quota
from privacy.selectors import guarantee, spending_by_mechanism
from privacy.services.checkpoints import checkpoint_at


def facts_of(project: Project) -> Facts:
    """Return what the document of SP 800-226's questions is written from; nothing in it is hidden from engineers."""
    accounts = selectors.guarantee_accounts(project)
    newest = selectors.releases_of(project).exclude(state=ReleaseState.CANDIDATE).order_by("-version").first()
    privacy: Privacy = {
        "oracle": "crowd" if project.oracle == Oracle.CROWD else "trusted",
        "questions_shown": not hides_selection(project.settings),
        "accounts": [publishing.card_terms(account) for account in accounts],
        "entries": [],
        "heads": {},
        "issued_at": publishing.today(),
        "answers": publishing.answers_words(project),
    }
    chosen = project.settings
    return {
        "name": project.name,
        "made_on": publishing.today(),
        "privacy": privacy,
        "accounts": [_account(account) for account in accounts],
        "texts_per_contributor": chosen.get("texts_per_contributor"),
        **{name: str(setting_value(name, chosen.get(name) or "")) for name in ("selection", "estimator", "features")},  # type: ignore[typeddict-item]
        "newest_version": newest.version if newest else None,
        "metrics": publishing.metrics_of(newest) if newest else [],
        "checks": dict(newest.checks) if newest else {},
        "public_key": storage.signer().public_key,
        "second_factor": ", ".join(sorted(settings.SECOND_FACTOR)),
        "encrypted": settings.HTTPS,
    }


def _account(account: BudgetAccount) -> AccountFacts:
    now = guarantee(account)
    changes = LedgerEntry.objects.filter(account=account, kind__in=(EntryKind.GRANT, EntryKind.LIMIT_CHANGE))
    return {
        "terms": publishing.card_terms(account),
        "limits": [_limit(entry) for entry in changes.order_by("sequence")],
        "mechanisms": [
            {
                "name": spent.name,
                "uses": spent.operations,
                "epsilon": nano_spent(spent.epsilon_nano),
                "delta": atto_spent(spent.delta_atto),
            }
            for spent in spending_by_mechanism(account)
        ],
        "entries": now.sequence,
        "checkpoint": checkpoint_at(account, now.sequence),
        "in_population": Quota.objects.filter(account=account).exists(),
    }


def _limit(entry: LedgerEntry) -> LimitLine:
    granted = json.loads(entry.event_json)
    return {
        "when": entry.created_at.date().isoformat(),
        "who": entry.actor,
        "epsilon": nano_spendable(granted["epsilon_limit_nano"]),
        "delta": atto_spendable(granted["delta_limit_atto"]),
        "reason": entry.reason,
    }
