import pytest
from django.db import IntegrityError, transaction

from annotation.errors import InvalidConfiguration
from annotation.models import Consensus
from annotation.models.quality import GoldQuery
from annotation.questions.services import correcting, labelling
from annotation.review.services import reviewing
from tests.factories import answer_next, make_annotators, make_disputed, make_project, make_user, open_records

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def disputed():
    return make_disputed()


class TestReview:
    def test_a_manager_settles_for_a_class_nobody_named(self, disputed):
        manager = make_user()
        reviewing.settle(project=disputed.project, query_id=disputed.pk, choice=2, person=manager)
        consensus = Consensus.objects.get()
        assert (consensus.choice, consensus.votes, consensus.agreeing) == (2, 2, 0)
        assert consensus.settled_by == manager
        with pytest.raises(InvalidConfiguration):
            reviewing.settle(project=disputed.project, query_id=disputed.pk, choice=1, person=manager)
        with pytest.raises(IntegrityError, match="annotation_consensus_majority"), transaction.atomic():
            Consensus.objects.update(settled_by=None)

    def test_a_settled_question_may_become_a_check(self, disputed):
        project = disputed.project
        reviewing.settle(project=project, query_id=disputed.pk, choice=0, person=make_user(), keep_as_check=True)
        assert GoldQuery.objects.get().source == "asked"
        open_records(project, 1)
        labelling.set_quality(project=project, gold_share=1.0)
        (eve,) = make_annotators(project, 1)
        assert answer_next(project, eve, 0).query == disputed
        correcting.undo_label(project=project, user=eve)
        assert Consensus.objects.filter(query=disputed).exists()

    def test_one_more_person_or_nobody(self, disputed):
        reviewing.ask_beyond_overlap(project=disputed.project, query_id=disputed.pk)
        (eve,) = make_annotators(disputed.project, 1)
        answer_next(disputed.project, eve, 1)
        assert Consensus.objects.get().choice == 1
        other = make_project(overlap=2)
        with pytest.raises(InvalidConfiguration):
            reviewing.leave_out_disputed(project=other, query_id=disputed.pk)

    def test_left_out(self, disputed):
        reviewing.leave_out_disputed(project=disputed.project, query_id=disputed.pk)
        disputed.refresh_from_db()
        assert disputed.state == "withdrawn"
