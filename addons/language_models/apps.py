"""Application configuration."""

from annotation import addons
from annotation.choices.catalogue import CATALOGUE


class LanguageModelsConfig(addons.AddonConfig):
    name = "addons.language_models"

    def ready(self) -> None:
        from addons.language_models.choices import LanguageModelAnswers  # noqa: PLC0415 - settings are loaded by now

        super().ready()
        CATALOGUE.add_source(lambda: (LanguageModelAnswers,))
