"""Base class of the configuration of an add-on, and what an add-on may add to the core."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from django.apps import AppConfig
from django.utils.functional import Promise


class AddonConfig(AppConfig):
    """An app under `addons/` that a site switches on by name in `DPAL_ADDONS`.

    The site finds its modules by name: `settings`, `urls`, `api` (with a `router`) and `tasks`. Import this module, not
    the class: Django takes the one configuration class that `apps` holds.
    """

    # Templates to include, by the place in a page of the core; see the tag `addon_panels`.
    panels: ClassVar[Mapping[str, str]] = {}
    # Sentences of the activity log with their pages and routes, and names of the numbers in their addresses.
    actions: ClassVar[Sequence[tuple[str | Promise, str]]] = ()
    numbers: ClassVar[Mapping[str, str | Promise]] = {}

    def ready(self) -> None:
        from annotation.budget.action_words import NUMBERS, SENTENCES, by_action  # noqa: PLC0415 - tables are known by now
        from annotation.templatetags.addons import PANELS  # noqa: PLC0415 - as above
        from annotation.work.services.history import NOTED_APPS  # noqa: PLC0415 - tables are known by now

        for place, template in self.panels.items():
            PANELS.setdefault(place, []).append(template)
        SENTENCES.update(by_action(self.actions))
        NUMBERS.update(self.numbers)
        NOTED_APPS.append(f"{self.label}:")
