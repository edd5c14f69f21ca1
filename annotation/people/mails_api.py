"""REST routes of the caller's choice of mail."""

from typing import Any

from django.http import HttpRequest
from ninja import Field, Schema

from annotation.models.letters import MailChoice
from annotation.people.forms.mails import MailForm
from annotation.people.identity import person_of
from annotation.people.services import letters, mail_choices
from annotation.work.reads import Answer, Reads
from annotation.work.rest import RoomRouter, checked, require_scope
from annotation.work.services.tokens import Scope

router = RoomRouter()


class MailsOut(Answer, reads=Reads.OWN):
    """The choice of mail."""

    wanted: bool
    language: str
    address: str = Field(description="The confirmed address that mail goes to; empty where there is none.")
    leaves_the_site: bool = Field(description="Whether this site sends mail at all.")


class MailsIn(Schema):
    """Changes of the choice; omitted fields stay."""

    wanted: bool | None = None
    language: str | None = Field(None, max_length=5)


@router.get("mails", response=MailsOut, summary="The caller's choice of mail")
def get_mails(request: HttpRequest) -> Any:
    require_scope(request, Scope.MAILS_WRITE)
    return _mails(request, mail_choices.choice_of(person_of(request)))


@router.write("mails", response=MailsOut, summary="Turn the caller's mail on or off", problems=(), method="PATCH")
def choose_mails(request: HttpRequest, body: MailsIn) -> Any:
    require_scope(request, Scope.MAILS_WRITE)
    person = person_of(request)
    choice = mail_choices.choice_of(person)
    sent = {"wanted": choice.wanted, "language": choice.language} | body.dict(exclude_none=True)
    return _mails(request, mail_choices.choose_mails(person=person, **checked(MailForm(sent))))


def _mails(request: HttpRequest, choice: MailChoice) -> dict[str, Any]:
    return {
        "wanted": choice.wanted,
        "language": choice.language,
        "address": mail_choices.mail_address(person_of(request)),
        "leaves_the_site": letters.leaves_the_site(),
    }
