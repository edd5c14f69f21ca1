"""Application configuration."""

from django.utils.translation import gettext_lazy as _

from annotation import addons
from annotation.choices.catalogue import CATALOGUE


class LanguageModelsConfig(addons.AddonConfig):
    name = "addons.language_models"
    panels = {
        "quality": "language_models/_machine.html",
        "opening_words": "language_models/_opening.html",
        "settings": "language_models/_link.html",
    }
    actions = (
        (_("Accepted drafted examples"), "language_models:words_draft"),
        (_("Drafted examples with a language model"), "language_models:draft_for_project api:draft_words"),
    )

    def ready(self) -> None:
        from addons.language_models import selectors  # noqa: PLC0415 - tables are known by now
        from addons.language_models.choices import LanguageModelAnswers  # noqa: PLC0415 - settings are loaded by now
        from annotation.templatetags.addons import FACTS  # noqa: PLC0415 - as above

        super().ready()
        FACTS.append(selectors.machine_facts)
        CATALOGUE.add_source(lambda: (LanguageModelAnswers,))
