import contextlib
from secrets import token_hex

import pytest
from django.db import ProgrammingError, connection, transaction
from django.test import Client
from django.urls import get_resolver, reverse
from psycopg import sql

from annotation.models import Assignment, AssignmentState, Encounter, Label, Membership, Query, Record, Report
from annotation.models import joining as joining_models
from annotation.models.configurations import KNOWN
from annotation.projects.services.configuring import configure_project
from annotation.questions.services import checks as gold
from annotation.questions.services import correcting, flags, labelling
from annotation.work.services.tokens import secret_digest
from dpal_site.operations import label_pages, roles
from dpal_site.operations.roles import RoleAddress
from tests.clients import browser_of
from tests.factories import (
    add_members,
    make_annotators,
    make_candidates,
    make_project,
    make_records,
    open_preset,
    open_records,
)
from tests.factories import make_user as make_person
from tests.owning import as_owner
from tests.permission_scene import named_patterns

pytestmark = pytest.mark.django_db
PATTERNS = {name: str(pattern.pattern) for name, pattern in named_patterns(get_resolver().url_patterns)}


@pytest.fixture
def role(settings):
    made = RoleAddress(f"label_{token_hex(6)}", token_hex(16))
    with as_owner():
        roles.grant_label_role(made)

    @contextlib.contextmanager
    def acting():
        with connection.cursor() as cursor:
            cursor.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(made.name)))
            settings.SERVES_LABELS_ALONE = True
            yield
            settings.SERVES_LABELS_ALONE = False
            cursor.execute("RESET ROLE")

    return acting


@pytest.fixture
def label_part(settings):
    settings.SITE_PART, settings.WEB_URL, settings.LABEL_URL = "label", "http://web.test", "http://testserver"


def held():
    return Assignment.objects.get(state=AssignmentState.LEASED)


class TestTheRoleIsEnough:
    @pytest.fixture
    def ann(self):
        return make_person("ann")

    @pytest.fixture
    def web(self, ann):
        return browser_of(ann)

    def all_pages(self, project, web, role, *, part):
        page = reverse("annotation:label", args=[project.slug])

        def post(name, fields=None, *, of=None):
            where = reverse(f"annotation:{name}", args=[of or held().pk])
            with role():
                answer = web.post(where, fields or {}, **part)
            assert answer.status_code in (200, 303), (name, answer.status_code)
            return answer

        with role():
            assert web.get(page).status_code == 200
        post("submit", {"choice": 1})
        with role():
            web.get(page)
        post("undo", of=project.slug)
        post("submit", {"choice": 0})
        with role():
            web.get(page)
        post("comment", {"comment": "unclear"})
        post("skip", {"reason": "unsure"})
        with role():
            web.get(page)
        post("flag", {"kind": "broken"})
        with role():
            web.get(page)
        post("flag", {"kind": "sensitive"})
        post("read_guidelines", of=project.slug)
        with role():
            for name in ("why", "own_statistics", "own_answers"):
                assert web.get(reverse(f"annotation:{name}", args=[project.slug])).status_code == 200
            given = Label.objects.filter(superseded_at=None).latest("pk")
            change = reverse("annotation:correct_answer", args=[project.slug, given.query_id])
            assert web.post(change, {"choice": 1 - given.choice}).status_code == 302
        assert Label.objects.filter(superseded_at=None).latest("pk").supersedes_id == given.pk
        # Until nothing is left, and the page says why.
        for _ in range(40):
            with role():
                web.get(page)
            if not Assignment.objects.filter(state=AssignmentState.LEASED).exists():
                break
            post("submit", {"choice": 0})
        with role():
            assert web.get(page).status_code == 200
        assert Label.objects.filter(superseded_at=None).count() > 2
        assert Report.objects.count() == 3

    @pytest.mark.one_in(2)
    @pytest.mark.parametrize("part", [{}, {"HTTP_HX_REQUEST": "true"}], ids=["page", "part"])
    def test_in_a_trusted_project_with_limits_and_checks(self, ann, web, role, part):
        project = make_project(encounter_limit=50, overlap=2, overlap_limit=3, gold_share=0.5, gold_pause_below=0.9)
        add_members(project, ann, *make_annotators(project, 2)[:0])
        open_records(project, 8)
        Record.objects.update(contributor=b"c" * 16)
        examples = make_records(project, ["public"] * 6, role="public_test")
        Record.objects.filter(pk__in=[each.pk for each in examples]).update(label=1)
        gold.add_public_checks(project=project, dataset=examples[0].dataset, owner=project.created_by, most=6)
        self.all_pages(project, web, role, part=part)
        assert bytes(b"c" * 16) in {bytes(met.contributor) for met in Encounter.objects.all()}

    def test_in_a_crowd_project_up_to_the_completion_code(self, ann, role, web):
        project = make_project(oracle="crowd")
        queries = make_candidates(project, [f"text {number}" for number in range(8)])
        Query.objects.filter(pk__in=[query.pk for query in queries]).update(state="open", round_number=1, open_slots=1)
        add_members(project, ann)
        self.all_pages(project, web, role, part={})
        joining_models.CrowdLink.objects.create(
            project=project,
            digest=secret_digest("t" * 43),
            platform="prolific",
            answers_wanted=1,
            completion_code="CODECODE",
            maximum_participants=5,
            expires_at="2100-01-01T00:00Z",
            created_by=project.created_by,
        )
        client = Client()
        started = client.post(f"/crowd/{'t' * 43}/", {"PROLIFIC_PID": "a" * 24, "STUDY_ID": "b", "SESSION_ID": "c"})
        assert started.status_code == 302
        participant = joining_models.CrowdParticipant.objects.get()
        with role():
            done = client.get(reverse("annotation:crowd_done", args=[project.slug]))
        assert done.status_code == 200
        assert labelling.complete(participant=participant) == ("CODECODE" in done.content.decode())

    def test_for_people_who_may_meet_nobody_new(self, ann, web, role):
        project = make_project(encounter_limit=1, overlap=1)
        add_members(project, ann)
        open_records(project, 3)
        Record.objects.update(contributor=b"c" * 16)
        with role():
            for _ in range(3):
                web.get(reverse("annotation:label", args=[project.slug]))
                web.post(reverse("annotation:submit", args=[held().pk]), {"choice": 0})
        assert Label.objects.count() == 3
        assert Encounter.objects.count() == 1

    def test_words_about_classes_are_shown_and_what_came_back_is_settled(self, ann, web, role):
        project = open_preset(make_person(), "pool-experts")
        words = {"class_descriptions": ["yes: it agrees"]}
        configure_project(project=project, changes=words, actor=project.created_by)
        add_members(project, ann)
        open_records(project, 2)
        KNOWN.clear()
        with role():
            page = web.get(reverse("annotation:label", args=[project.slug]))
            assert "it agrees" in page.content.decode()
            web.post(reverse("annotation:submit", args=[held().pk]), {"choice": 0})
        asked = Label.objects.get().query_id
        assert correcting.send_back(project=project, query_ids=[asked], comment="sure?") == [asked]
        with role():
            assert "sure?" in web.get(reverse("annotation:own_answers", args=[project.slug])).content.decode()
            web.post(reverse("annotation:correct_answer", args=[project.slug, asked]), {"choice": 1})
        assert Report.objects.get().resolved_by_id == ann.pk

    def test_what_a_manager_wrote_is_read_and_answered_under_the_role(self, ann, web, role):
        project = open_preset(make_person(), "pool-experts")
        add_members(project, ann)
        open_records(project, 2)
        KNOWN.clear()
        with role():
            web.get(reverse("annotation:label", args=[project.slug]))
            web.post(reverse("annotation:submit", args=[held().pk]), {"choice": 0})
        turn = Assignment.objects.get(state=AssignmentState.LABELLED)
        back = reverse("annotation:write_back", args=[project.slug, turn.query_id])
        with role():
            assert web.post(back, {"comment": "is it?"}).status_code == 302
        report = Report.objects.get()
        flags.reply(project=project, report_id=report.pk, text="sure?", author=project.created_by)
        with role():
            assert "sure?" in web.get(reverse("annotation:own_answers", args=[project.slug])).content.decode()
            assert web.post(back, {"read": "1"}).status_code == 302
        report.refresh_from_db()
        assert (report.comment, report.read_at is None) == ("is it?", False)
        with role(), pytest.raises(ProgrammingError, match="permission denied"), transaction.atomic():
            Report.objects.update(comment="never said")

    def test_an_image_is_shown_and_logging_out_works(self, ann, web, role, tmp_path, settings):
        from io import BytesIO  # noqa: PLC0415

        import numpy as np  # noqa: PLC0415 - slow import
        from django.core.files.base import ContentFile  # noqa: PLC0415

        project = make_project(data_kind="image", image_height=2, image_width=2)
        add_members(project, ann)
        records = make_records(project, rows=1)
        pixels = BytesIO()
        np.save(pixels, np.zeros((1, 2, 2), dtype=np.uint8))
        records[0].dataset.pixels.save("pixels.npy", ContentFile(pixels.getvalue()))
        Query.objects.create(project=project, record=records[0], state="open", round_number=1, open_slots=1)
        with role():
            web.get(reverse("annotation:label", args=[project.slug]))
            shown = web.get(reverse("annotation:question_image", args=[held().pk]))
            assert shown["Content-Type"] == "image/png"
            assert web.post(reverse("logout")).status_code == 302

    @pytest.mark.parametrize("method", ["post", "put", "delete"])
    def test_whatever_is_sent_to_it_is_answered(self, ann, web, role, method, label_part):
        """Nothing the role may not write is written for a request that does nothing."""
        project = make_project()
        add_members(project, ann)
        open_records(project, 1)
        with role():
            web.get(reverse("annotation:label", args=[project.slug]))
            lease = held()
            for name in sorted(label_pages.LABEL_PAGES):
                values = [project.slug] if "projects/" in PATTERNS[name] else [lease.pk]
                values += [lease.query_id] * ("query_id" in PATTERNS[name])
                values += ["0" * 64] * ("digest" in PATTERNS[name])
                answer = getattr(web, method)(reverse(name, args=values))
                assert answer.status_code < 500, (name, answer.status_code)

    def test_and_no_more_than_enough(self, web, role):
        with role(), pytest.raises(ProgrammingError, match="permission denied"), transaction.atomic():
            web.get(reverse("annotation:tokens"))

    def test_a_pause_by_checks_is_stored(self, ann, role):
        project = make_project(gold_pause_below=0.9, gold_minimum=1)
        add_members(project, ann)
        member = Membership.objects.get(user=ann)
        with role():
            gold.pause_member(membership=member, reason="checks")
        assert Membership.objects.get(user=ann).paused_at is not None


class TestEachPartServesItsOwn:
    def test_the_names_of_the_label_pages_exist(self):
        names = {f"annotation:{name}" for name in get_resolver("annotation.urls").reverse_dict if isinstance(name, str)}
        assert names >= label_pages.LABEL_PAGES

    def test_the_label_process_sends_everything_else_to_the_other(self, client, label_part):
        for path in ("/", "/login/?next=/a", "/admin/", "/api/v1/projects", "/metrics", "/projects/x/data/"):
            answer = client.get(path)
            assert (answer.status_code, answer["Location"]) == (307, f"http://web.test{path}"), path

    def test_the_other_sends_label_pages_to_the_label_process(self, client, settings):
        settings.SITE_PART, settings.LABEL_URL = "web", "http://label.test/"
        answer = client.get("/projects/x/label/?guidelines=open")
        assert answer["Location"] == "http://label.test/projects/x/label/?guidelines=open"
        assert client.get("/login/").status_code == 200

    @pytest.mark.parametrize("origin", ["", "http://testserver"])
    def test_a_proxy_that_leads_to_the_wrong_process_is_told(self, client, settings, origin):
        settings.SITE_PART, settings.LABEL_URL = "web", origin
        answer = client.get("/projects/x/label/")
        assert answer.status_code == 421
        assert "misconfigured" in answer.content.decode()

    def test_health_is_answered_by_each(self, client, label_part):
        assert client.get("/healthz").status_code == 200
        assert client.get("/readyz?check=database").status_code == 200

    def test_one_process_serves_all_where_nothing_is_said(self, client):
        assert client.get("/projects/x/label/").status_code == 302
        assert client.get("/login/").status_code == 200
