import re

import pytest
from django.urls import reverse

from tests.factories import write_settings

pytestmark = pytest.mark.django_db
SETTINGS = {"skips_to_set_aside": 2, "answers_per_person": "", "answers_per_day": 5, "encounter_limit": ""}


class TestSettings:
    def test_they_are_stored(self, project, web):
        address = reverse("annotation:labelling", args=(project.slug,))
        sent = SETTINGS | {"confirm_answers": "on", "quiet_from": "22:00", "quiet_until": "06:30"}
        assert web.post(address, sent).status_code == 302
        project.refresh_from_db()
        assert (project.confirm_answers, project.skips_to_set_aside, project.answers_per_day) == (True, 2, 5)
        assert (project.answers_per_person, project.quiet_until.hour) == (None, 6)
        assert 'value="22:00"' in web.get(address).content.decode()

    @pytest.mark.parametrize(
        "wrong",
        [
            {"quiet_from": "22:00"},
            {"quiet_from": "22:00", "quiet_until": "22:00"},
            {"skips_to_set_aside": 0},
            {"answers_per_day": -1},
            {"encounter_limit": 0},
        ],
    )
    def test_what_makes_no_sense_is_refused(self, project, web, wrong):
        response = web.post(reverse("annotation:labelling", args=(project.slug,)), SETTINGS | wrong)
        assert response.status_code == 422
        project.refresh_from_db()
        assert project.answers_per_day is None

    def test_a_secret_choice_has_no_limits_on_a_person(self, project, web):
        write_settings(project, selection="secret_sample", selection_rate=0.1)
        address = reverse("annotation:labelling", args=(project.slug,))
        html = web.get(address).content.decode()
        for name in ("answers_per_person", "answers_per_day", "encounter_limit"):
            assert re.search(rf'name="{name}"[^>]*disabled', html)
        assert "one record could delay another" in html
        assert web.post(address, SETTINGS | {"answers_per_person": 1, "encounter_limit": 1}).status_code == 302
        project.refresh_from_db()
        assert (project.skips_to_set_aside, project.answers_per_day) == (2, None)
        assert (project.answers_per_person, project.encounter_limit) == (None, None)
