import threading

import pytest
from django.db import connection

from annotation.models import Consensus, Record
from annotation.models.quality import Opinion, QualityReport
from annotation.questions.services import labelling
from annotation.review import selectors
from annotation.review import services as comparing
from annotation.work.services import attempts
from dpal_site.embedded import host
from tests.factories import make_disputed, make_project, make_user
from tests.owning import waits_for_a_lock

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def disputed():
    return make_disputed()


class TestComparing:
    @pytest.mark.one_in(3)
    @pytest.mark.parametrize("method", ["majority", "dawid_skene", "mace"])
    def test_a_report_never_touches_what_trainings_read(self, disputed, method):
        project = disputed.project
        labelling.set_quality(project=project, aggregation=method)
        report = comparing.start_report(project=project, owner=make_user())
        comparing.make_report(job_id=str(report.job_id))
        report.refresh_from_db()
        assert (report.answers, report.questions, report.method) == (2, 1, method)
        assert report.job.state == "done"
        assert Opinion.objects.get().query == disputed
        assert not Consensus.objects.exists()
        again = comparing.start_report(project=project, owner=make_user())
        comparing.make_report(job_id=str(again.job_id))
        assert QualityReport.objects.count() == Opinion.objects.count() == 1

    def test_what_it_takes_a_question_for_stands_beside_the_owners_id(self, disputed):
        Record.objects.filter(pk=disputed.record_id).update(metadata={"id": "=order 7", "columns": []})
        report = comparing.start_report(project=disputed.project, owner=make_user())
        comparing.make_report(job_id=str(report.job_id))
        head, line = selectors.opinions_csv(disputed.project)
        assert head.strip() == "question,owner_id,class,probability,method"
        # No spreadsheet takes it for a formula.
        assert line.strip().startswith(f"{disputed.pk},'=order 7,")

    def test_nothing_to_compare_says_so(self):
        project = make_project()
        report = comparing.start_report(project=project, owner=make_user())
        comparing.make_report(job_id=str(report.job_id))
        report.job.refresh_from_db()
        assert (report.job.state, report.job.error) == ("failed", "Nobody has answered anything yet.")

    def test_one_asked_for_while_another_is_stored_takes_its_place(self, disputed, monkeypatch):
        project, owner, newer = disputed.project, make_user(), []
        report = comparing.start_report(project=project, owner=owner)
        finish_work = attempts.finish_work

        def asked_anew():
            newer.append(comparing.start_report(project=project, owner=owner))
            connection.close()

        def finish_once_the_other_waits(**fields):
            asking.start()
            assert host.wait_until(waits_for_a_lock, 30)
            finish_work(**fields)

        asking = threading.Thread(target=asked_anew)
        monkeypatch.setattr(attempts, "finish_work", finish_once_the_other_waits)
        comparing.make_report(job_id=str(report.job_id))
        asking.join()
        assert [each.pk for each in QualityReport.objects.all()] == [newer[0].pk]
        assert not Opinion.objects.exists()
