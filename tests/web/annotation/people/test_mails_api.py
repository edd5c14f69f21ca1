import pytest

from annotation.models.history import Action
from annotation.models.letters import MailChoice
from annotation.people.services import letters
from tests.factories import make_user
from tests.programs import Caller

pytestmark = pytest.mark.django_db


def test_what_is_left_out_of_a_choice_stays():
    ann, ben = make_user("ann"), make_user("ben")
    letters.choose_mails(person=ben, language="en", wanted=True)
    program = Caller(ann)
    before = program.get("mails").json()
    assert (before["wanted"], before["address"]) == (True, "")
    chosen = program.patch("mails", {"wanted": False}).json()
    assert not chosen["wanted"]
    again = program.patch("mails", {"language": "de"}).json()
    assert again == chosen | {"language": "de"} == program.get("mails").json()
    kept = MailChoice.objects.get(person=ann)
    assert (kept.wanted, kept.language) == (False, "de")
    assert MailChoice.objects.get(person=ben).wanted
    assert list(Action.objects.values_list("actor", "route", "project")) == [("ann", "api:choose_mails", None)] * 2
