"""Texts of letters, one source for plain text and HTML; none holds a record or an answer."""

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from annotation.models import Role
from annotation.models.joining import Invitation
from annotation.models.letters import MailKind, Notice


@dataclass(frozen=True, slots=True)
class Item:
    headline: str
    link: str
    sentence: str = ""


@dataclass(frozen=True, slots=True)
class WrittenLetter:
    subject: str
    item: Item
    small_print: str
    choose: str = ""

    def as_text(self) -> str:
        item = self.item
        told = "\n\n".join(part for part in (item.headline, item.sentence, item.link) if part)
        return f"{told}\n\n-- \nDPAL\n{self.small_print}\n{self.choose}".rstrip() + "\n"

    def as_html(self) -> str:
        return render_to_string("annotation/people/letter.html", {"letter": self})


def page_address(name: str, *arguments: object) -> str:
    return settings.SITE_URL.rstrip("/") + reverse(name, args=arguments)


def letter_about(notice: Notice) -> WrittenLetter:
    item = _ITEMS[MailKind(notice.kind)](notice.project.name, notice.project.slug, notice.facts)
    return WrittenLetter(
        subject=_one_line(item.headline),
        item=item,
        small_print=_("You get this mail as a member. Turn mail off here:"),
        choose=page_address("annotation:mails"),
    )


def invitation_letter(invitation: Invitation, secret: str) -> WrittenLetter:
    who = invitation.created_by.get_username()
    sentence = _("%(who)s invites you to take part as: %(role)s.") % {"who": who, "role": Role(invitation.role).label}
    headline = _("You are invited to %(name)s") % {"name": invitation.project.name}
    ends = date_format(timezone.localtime(invitation.expires_at), "DATETIME_FORMAT")
    return WrittenLetter(
        subject=_one_line(headline),
        item=Item(headline, page_address("annotation:join", secret), sentence),
        small_print=_("Anyone with this link can join until %(ends)s (UTC). Ignore this mail if you did not expect it.")
        % {"ends": ends},
    )


def _returned(name: str, slug: str, facts: dict[str, Any]) -> Item:
    return Item(
        _("%(name)s: look at an answer again") % {"name": name},
        page_address("annotation:own_answers", slug) + "?only=unread",
    )


def _remark(name: str, slug: str, facts: dict[str, Any]) -> Item:
    headline = _("%(name)s: somebody writes to you") % {"name": name}
    if facts.get("to_managers"):
        link = page_address("annotation:reported", slug)
    else:
        link = page_address("annotation:own_answers", slug) + "?only=unread"
    return Item(headline, link)


def _questions(name: str, slug: str, facts: dict[str, Any]) -> Item:
    return Item(
        _("%(name)s: new questions") % {"name": name},
        page_address("annotation:label", slug),
    )


def _review(name: str, slug: str, facts: dict[str, Any]) -> Item:
    return Item(
        _("%(name)s: answers wait for your review") % {"name": name},
        page_address("annotation:review", slug),
    )


def _waiting(name: str, slug: str, facts: dict[str, Any]) -> Item:
    return Item(
        _("%(name)s waits for you") % {"name": name},
        page_address("learner:overview", slug),
    )


def _release(name: str, slug: str, facts: dict[str, Any]) -> Item:
    version = facts["version"]
    return Item(
        _("%(name)s: version %(version)s is released") % {"name": name, "version": version},
        page_address("learner:release", slug, version),
    )


def _budget(name: str, slug: str, facts: dict[str, Any]) -> Item:
    return Item(
        _("%(name)s: 80 percent of a budget is spent") % {"name": name},
        page_address("annotation:budget", slug),
        _("At least 80 %% of the limit ε = %(limit)s is spent.") % {"limit": f"{facts['limit']:.9g}"},
    )


def _export(name: str, slug: str, facts: dict[str, Any]) -> Item:
    return Item(
        _("%(name)s: your file is there") % {"name": name},
        page_address("annotation:exports", slug),
    )


_ITEMS = {
    MailKind.RETURNED: _returned,
    MailKind.REMARK: _remark,
    MailKind.QUESTIONS: _questions,
    MailKind.REVIEW: _review,
    MailKind.WAITING: _waiting,
    MailKind.RELEASE: _release,
    MailKind.BUDGET: _budget,
    MailKind.EXPORT: _export,
}


def _one_line(words: str) -> str:
    return " ".join(words.split())
