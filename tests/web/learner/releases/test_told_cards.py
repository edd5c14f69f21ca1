import re

import pytest
from django.test import Client
from django.urls import reverse
from django.utils.translation import override

from annotation.models import Role
from learner.releases import storage
from learner.releases.told_cards import shown_card, without_front_matter
from tests import learning
from tests.factories import add_members, make_user
from tests.markup import tight

pytestmark = pytest.mark.django_db(transaction=True)
KINDS = {
    "experts": lambda: learning.released_experts(1),
    "crowd": lambda: _released(learning.open_crowd(make_user()), learning.fill_crowd),
    "secret": lambda: _released(learning.open_secret(make_user()), learning.fill_trusted),
}
# Words of an English card that no German one has; names of files, mechanisms and accounts are the same in both.
ENGLISH = re.compile(
    r"\b(?:the|which|that|trained|released|covered|neighbours|whoever|always|uses|of|with|over|and|for)\b",
    re.IGNORECASE,
)


def _released(project, fill):
    fill(project)
    learning.run_to_release(project, make_user(), version=1)
    return project


def page_of(project, address: str, language: str) -> str:
    person, client = make_user(), Client()
    add_members(project, person, role=Role.MANAGER)
    client.force_login(person)
    answer = client.get(address, headers={"accept-language": language})
    assert answer.status_code == 200
    return tight(answer.content.decode())


def card_on(page: str) -> tuple[str, str]:
    attributes, body = re.search(r'<section class="card document"([^>]*)>(.*?)</section>', page, re.DOTALL).groups()
    return attributes.strip(), re.sub(r"<[^>]+>", " ", re.sub(r"<(pre|code)>.*?</\1>", " ", body, flags=re.DOTALL))


@pytest.mark.parametrize("kind", KINDS)
def test_a_german_reads_the_card_in_german_and_downloads_it_in_english(kind):
    project = KINDS[kind]()
    release = project.releases.get()
    address = reverse("learner:release", args=(project.slug, 1))
    english, german = (page_of(project, address, language) for language in ("en", "de"))
    assert card_on(english)[0] == 'lang="en"'
    assert "Not covered:" in english
    attributes, said = card_on(german)
    assert attributes == ""
    assert "Nicht abgedeckt:" in said
    for mine in (project.name, project.question):
        said = said.replace(mine, "")
    assert not ENGLISH.findall(said)
    with override("de"):
        assert shown_card(release).told
    # The file is what was signed, in whatever language it is asked for.
    file = storage.card_of(release=release)
    assert "Not covered:" in without_front_matter(file)


def test_facts_that_changed_since_are_told_to_nobody_as_the_card(settings):
    project = learning.released_experts(1)
    type(project).objects.filter(pk=project.pk).update(question="Which of the two is it, really?")
    attributes, said = card_on(page_of(project, reverse("learner:release", args=(project.slug, 1)), "de"))
    assert attributes == 'lang="en"'
    assert "really" not in said
