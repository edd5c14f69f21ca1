import pytest
from django.urls import reverse

from annotation.models import Query, Role
from annotation.people.services import members
from dpal_site.demo import voice_log
from dpal_site.demo.annotators import LabelPage
from dpal_site.demo.plans import TextReader
from tests import learning
from tests.clients import browser_of
from tests.factories import make_user

pytestmark = pytest.mark.django_db


def test_the_text_is_read_as_it_stands():
    project = learning.open_trusted(make_user())
    learning.fill_trusted(project)
    learning.work_off(project)
    annotator = make_user()
    members.add_member(project=project, user=annotator, role=Role.ANNOTATOR)
    client = browser_of(annotator)
    page = LabelPage("http://site/", client.get(reverse("annotation:label", args=[project.slug])).content.decode())
    assert page.question in {query.record.text for query in Query.objects.filter(project=project)}
    assert page.forms["answer"].choices == ["0", "1"]


@pytest.mark.parametrize("label", [0, 1])
def test_a_known_sentence_is_answered_by_its_class(label):
    known = voice_log.known_sentences()
    text = next(text for text, of_class in known.items() if of_class == label)
    kept = '<template><div id="question">somebody else is here <p>now</p></div></template>'
    page = LabelPage("http://site/", f'<div id="question">{text}</div>{kept}')
    assert TextReader(known)(page, None) == label
