"""Validator that refuses passwords made of a common one or of the site's own words."""

import re
from functools import cache

from django.contrib.auth.models import AbstractBaseUser
from django.contrib.auth.password_validation import CommonPasswordValidator
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

# What somebody who has seen the site would try first; PASSWORD_WORDS adds an organisation's own.
OWN_WORDS = frozenset(
    {"dpal", "annotation", "annotator", "label", "labels", "labeller", "labelling", "epsilon", "privacy", "private"}
    | {"manager", "engineer", "administrator", "admin", "password", "passwort", "project", "projekt", "oracle"}
)
SHORTEST_STEM = 4
ENDS = re.compile(r"^[\W\d_]+|[\W\d_]+$")
PARTS = re.compile(r"[\W\d_]+")


@cache
def _common() -> frozenset[str]:
    return frozenset(CommonPasswordValidator().passwords)


def once(text: str) -> str:
    for length in range(1, len(text) // 2 + 1):
        if len(text) % length == 0 and text[:length] * (len(text) // length) == text:
            return text[:length]
    return text


class EasyPasswordValidator:
    """Refuse a common password with digits and signs around it, or repeated, and what only joins the site's words."""

    def __init__(self, words: tuple[str, ...] = ()) -> None:
        self.words = OWN_WORDS | {word.strip().lower() for word in words if word.strip()}

    def validate(self, password: str, user: AbstractBaseUser | None = None) -> None:
        said = once(password.lower().strip())
        stem = once(ENDS.sub("", said))
        common = {said, stem} & _common()
        parts = [part for part in PARTS.split(said) if part]
        if (common and len(stem or said) >= SHORTEST_STEM) or (parts and all(map(self._joined, parts))):
            raise ValidationError(
                _("Too easy to guess: a common word or a word of this site."),
                code="password_too_easy",
            )

    def get_help_text(self) -> str:
        return _("Not a common word or a word of this site with digits or signs.")

    def _joined(self, part: str) -> bool:
        reached = {0}
        for end in range(1, len(part) + 1):
            if any(begin in reached and part[begin:end] in self.words for begin in range(end)):
                reached.add(end)
        return len(part) in reached
