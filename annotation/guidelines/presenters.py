"""What a page shows of the guidelines, beside a question or where they are written."""

from typing import Any

from django.utils.translation import gettext as _

from annotation.guidelines.text import ShownPicture, guidelines_html
from annotation.models import Guidelines, Project


def guidelines_parts(project: Project, shown: Guidelines, pictures: tuple[ShownPicture, ...]) -> dict[str, Any]:
    """Return what the part of a page needs that shows a version, stored or not."""
    return {
        "guidelines": shown,
        "guidelines_shown": guidelines_html(shown.text, _("Guidelines"), pictures),
        "examples": [example | {"class": project.classes[example["choice"]]} for example in shown.examples],
    }
