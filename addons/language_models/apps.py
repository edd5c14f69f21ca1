"""Application configuration."""

from annotation import addons
from annotation.choices.catalogue import CATALOGUE


class LanguageModelsConfig(addons.AddonConfig):
    name = "addons.language_models"
    panels = {"quality": "language_models/_machine.html"}

    def ready(self) -> None:
        from addons.language_models import selectors  # noqa: PLC0415 - tables are known by now
        from addons.language_models.choices import LanguageModelAnswers  # noqa: PLC0415 - settings are loaded by now
        from annotation.templatetags.addons import FACTS  # noqa: PLC0415 - as above

        super().ready()
        FACTS.append(selectors.machine_facts)
        CATALOGUE.add_source(lambda: (LanguageModelAnswers,))
