"""Application configuration."""

from annotation import addons
from annotation.choices.catalogue import CATALOGUE


class LanguageModelsConfig(addons.AddonConfig):
    """Application configuration of language models."""

    name = "addons.language_models"

    def ready(self) -> None:
        """Let projects choose that a language model answers."""
        from addons.language_models.choices import LanguageModelAnswers  # noqa: PLC0415 - settings are loaded by now

        super().ready()
        CATALOGUE.add_source(lambda: (LanguageModelAnswers,))
