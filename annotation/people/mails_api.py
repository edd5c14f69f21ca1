"""REST routes of what the token's own person is told by mail."""

import zoneinfo
from typing import Any, Literal

from django.http import HttpRequest
from ninja import Field, Schema

from annotation.errors import InvalidConfiguration
from annotation.models.letters import MailChoice, MailKind
from annotation.people.forms.mails import MailForm
from annotation.people.identity import person_of
from annotation.people.services import letters, mail_choices
from annotation.work.rest import RoomRouter, checked, require_scope
from annotation.work.services.tokens import Scope
from privacy.wording import as_message

router = RoomRouter()


class MailsOut(Schema):
    """What comes by mail, how often, in which language, and by which clock the morning comes."""

    wanted: list[MailKind]
    often: Literal["now", "daily"]
    language: str
    zone: str
    address: str = Field(description="The confirmed address that mail goes to; empty where there is none.")
    leaves_the_site: bool = Field(description="Whether this site sends mail at all.")


class MailsIn(Schema):
    """What is to change of it; what is left out stays."""

    wanted: list[MailKind] | None = None
    often: Literal["now", "daily"] | None = None
    language: str | None = Field(None, max_length=5)
    zone: str | None = Field(None, max_length=64, description="A name like Europe/Berlin.")


@router.get("mails", response=MailsOut, summary="What the caller is told by mail")
def get_mails(request: HttpRequest) -> Any:
    require_scope(request, Scope.MAILS_WRITE)
    return _mails(request, mail_choices.choice_of(person_of(request)))


@router.write(
    "mails",
    response=MailsOut,
    summary="Choose what the caller is told by mail; the next mails follow it",
    problems=(),
    method="PATCH",
)
def choose_mails(request: HttpRequest, body: MailsIn) -> Any:
    require_scope(request, Scope.MAILS_WRITE)
    person = person_of(request)
    choice = mail_choices.choice_of(person)
    zone = choice.zone if body.zone is None else body.zone
    if body.zone is not None and zone not in zoneinfo.available_timezones():
        raise InvalidConfiguration(as_message("This is no time zone: write a name like Europe/Berlin."))
    sent = _as_sent(choice) | body.dict(include={"wanted", "often", "language"}, exclude_none=True)
    form = MailForm(sent, choice=choice)
    checked(form)
    return _mails(request, mail_choices.choose_mails(person=person, zone=zone, **form.values()))


def _as_sent(choice: MailChoice) -> dict[str, Any]:
    wanted = [kind for kind in MailKind.values if kind not in choice.declined]
    return {"wanted": wanted, "often": "daily" if choice.daily else "now", "language": choice.language}


def _mails(request: HttpRequest, choice: MailChoice) -> dict[str, Any]:
    address = mail_choices.mail_address(person_of(request))
    return _as_sent(choice) | {"zone": choice.zone, "address": address, "leaves_the_site": letters.leaves_the_site()}
