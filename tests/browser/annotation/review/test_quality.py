import pytest
from django.urls import reverse

from annotation.models import Membership, Query, Role
from annotation.models.quality import QualityReport
from annotation.questions.services import checks as gold
from annotation.questions.services import labels, queue
from annotation.review import services as comparing
from tests import axe
from tests.clients import come_in
from tests.factories import add_members, make_annotators, make_project, make_user, open_records

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
SIZES = {"desk": {"width": 1280, "height": 800}, "phone": {"width": 320, "height": 640}}


def log_in(page, live_server, user):
    come_in(page.context, user, live_server.url)


def problems(page):
    violations = axe.violations(page)
    found = [f"{item['id']}: {item['nodes'][0]['html'][:150]}" for item in violations]
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return [*found, f"{wide} px too wide"] if wide else found


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("size", "scheme"), [("desk", "light"), ("phone", "dark")])
def test_quality_pages_are_clean(page, live_server, size, scheme):
    manager = make_user("manager")
    project = make_project(owner=manager, overlap=2, price_per_label="0.05", currency="EUR", review_share=1.0)
    add_members(project, manager, role=Role.MANAGER)
    ann, bob = make_annotators(project, 2)
    open_records(project, 4)
    # The first question is disputed, the second waits for a reviewer by chance.
    for choices in ((0, 1), (1, 1)):
        for choice, person in zip(choices, (ann, bob), strict=True):
            labels.submit_label(assignment=queue.claim_next(project=project, user=person), choice=choice)
    (check, *_) = Query.objects.filter(state="open").order_by("pk")
    gold.keep_as_check(query=check, choice=0, owner=manager, answered=0)
    gold.pause_member(membership=Membership.objects.get(user=ann), reason="checks")
    comparing.make_report(job_id=str(comparing.start_report(project=project, owner=manager).job_id))
    assert QualityReport.objects.get().made_at is not None
    page.set_viewport_size(SIZES[size])
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    found = {}
    for person, names in ((manager, ("quality", "checks", "review")), (ann, ("own_statistics", "label"))):
        log_in(page, live_server, person)
        for name in names:
            assert page.goto(live_server.url + reverse(f"annotation:{name}", args=[project.slug])).status == 200
            if wrong := problems(page):
                found[name] = wrong
    assert found == {}
