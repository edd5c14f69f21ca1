"""What a project's people share with other projects: the limit of a population, or none."""

from django.utils.translation import gettext as _

from annotation.budget.words import epsilon_words
from annotation.models import Project
from privacy.ledger.selectors import guarantee, quota_of


def project_limit_words(project: Project) -> str:
    """Say under which common limit the people of a project stand, or that there is none."""
    quota = quota_of(project.pool_account)
    if quota is None:
        return outside_words()
    now = guarantee(quota.population.account)
    return _("In the population %(name)s: %(spent)s of %(limit)s ε are spent by all its projects together.") % {
        "name": quota.population.name,
        "spent": epsilon_words(now.epsilon_spent),
        "limit": epsilon_words(now.epsilon_limit),
    }


def outside_words() -> str:
    """Say what it means to share no limit."""
    return _("Outside any common limit: whoever has records in other projects, too, loses the sum of what they spend.")
