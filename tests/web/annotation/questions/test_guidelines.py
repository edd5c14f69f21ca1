import pytest
from django.urls import reverse

from annotation.models import Guidelines

pytestmark = pytest.mark.django_db


def test_a_change_is_a_new_version_and_the_old_one_stays(project, web):
    address = reverse("annotation:guidelines", args=(project.slug,))
    sent = {"text": "As it will be.", "examples": "rain? | music | no, a song\n\ngoal | sport"}
    assert web.post(address, sent).status_code == 302
    html = web.get(address).content.decode()
    assert "Version 2." in html
    assert "rain? | music | no, a song" in html
    assert "As it is." in html
    assert Guidelines.objects.get(version=2).examples == [
        {"text": "rain?", "choice": 1, "reason": "no, a song"},
        {"text": "goal", "choice": 0, "reason": ""},
    ]


def test_a_preview_shows_them_and_stores_nothing(project, web):
    address = reverse("annotation:guidelines", args=(project.slug,))
    sent = {"text": "# Songs\n\n- *all* of them <b>", "examples": "rain? | music | no, a song", "preview": "1"}
    html = web.post(address, sent).content.decode()
    assert '<h2 dir="auto">Songs</h2>' in html
    assert "<em>all</em> of them &lt;b&gt;" in html
    assert "no, a song</span>" in html
    assert not Guidelines.objects.exists()


@pytest.mark.parametrize("examples", ["rain?", "rain? | weather", "| music"])
def test_an_example_that_cannot_be_read_is_named(project, web, examples):
    address = reverse("annotation:guidelines", args=(project.slug,))
    response = web.post(address, {"text": "New.", "examples": "goal | sport\n" + examples})
    assert response.status_code == 422
    assert "Line 2" in response.content.decode()
    assert not Guidelines.objects.exists()
