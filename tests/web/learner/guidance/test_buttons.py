import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db.models import F
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from annotation.budget.words import epsilon_words
from annotation.data.services import datasets, streams
from annotation.models import Assignment, Dataset, GateRun, Membership, Project, Query, QueryState, Role, WorkState
from annotation.people.services import limits, members
from annotation.projects.services import configuring, lifecycle, opening
from annotation.questions.services import checks as gold
from annotation.questions.services import flags, labels, queue
from annotation.review import services
from annotation.work.services import attempts
from learner.dashboard.guidance import Act, ActKind, Blocker, Guidance, button_of, guidance_for, next_step_context
from learner.models import ModelRelease, Round, TrainingRun
from learner.rounds.next_step import Step
from learner.rounds.services import loop
from privacy.ledger.selectors import guarantee
from tests import learning, streaming
from tests.clients import browser_of
from tests.factories import bring_file, make_opener, make_user, receive_upload
from tests.owning import without_rules

pytestmark = pytest.mark.django_db(transaction=True)
# Shows something and changes nothing; it stands beside what does, or where nothing has to change.
LOOKS = {
    ActKind.LOOK_AT_WORK,
    ActKind.SEE_WHAT_PASSES,
    ActKind.SEE_UPLOAD,
    ActKind.SEE_RELEASE,
    ActKind.SEE_POPULATION,
    ActKind.SEE_VERSION_0,
    ActKind.SEE_SET_ASIDE,
    ActKind.BEGIN_WITH_EXPERTS,
}


@dataclass
class Scene:
    project: Project
    manager: object
    annotator: object = None

    @property
    def browser(self) -> Client:
        return browser_of(self.manager)

    def way(self) -> Guidance:
        return guidance_for(Project.objects.get(pk=self.project.pk))


def trusted(**settings) -> Scene:
    manager = make_user()
    project = learning.open_trusted(manager, **({"selection": "random"} | settings))
    return Scene(project, manager)


def asked(people: int = 1, number: int = 14, **settings) -> Scene:
    scene = trusted(**settings)
    learning.fill_trusted(scene.project, number=number)
    for _ in range(people):
        scene.annotator = make_user()
        members.add_member(project=scene.project, user=scene.annotator, role=Role.ANNOTATOR)
    learning.work_off(scene.project)
    return scene


def secret(**settings) -> Scene:
    manager = make_user()
    scene = Scene(learning.open_secret(manager, **settings), manager, make_user())
    learning.fill_trusted(scene.project)
    members.add_member(project=scene.project, user=scene.annotator, role=Role.ANNOTATOR)
    learning.work_off(scene.project)
    return scene


def no_pool():
    return trusted()


def unread():
    scene = trusted()
    receive_upload(project=scene.project, file=learning_file(), name="pool.csv", mapping={"text": "text"}, send=False)
    members.add_member(project=scene.project, user=make_user(), role=Role.ANNOTATOR)
    return scene


def refused():
    scene = trusted()
    dataset = bring_file(
        scene.project,
        b'text\nhello\n""\n',
        name="pool.csv",
        mapping={"text": "text"},
        bad_rows="refuse_all",
        send=False,
    )
    datasets.import_dataset(job_id=dataset.job_id)
    assert Dataset.objects.get().state == "refused"
    return scene


def nobody():
    return asked(people=0)


def nobody_before_the_first_round():
    scene = trusted()
    learning.fill_trusted(scene.project, number=14)
    return scene


def everybody_paused():
    scene = asked()
    for membership in Membership.objects.filter(role=Role.ANNOTATOR):
        gold.pause_member(membership=membership, reason="manager")
    return scene


def quiet_hours():
    now = timezone.localtime(timezone=timezone.get_default_timezone())
    hours = {"quiet_from": (now - timedelta(hours=2)).time(), "quiet_until": (now + timedelta(hours=2)).time()}
    scene = asked()
    configuring.configure_project(project=scene.project, changes=hours, actor=scene.manager)
    return scene


def limit_of_each_person():
    scene = asked(answers_per_person=3)
    learning.label_everything(scene.project, scene.annotator)
    return scene


def limit_of_the_day():
    scene = asked(answers_per_day=3)
    learning.label_everything(scene.project, scene.annotator)
    return scene


def needs_another_person():
    scene = asked(overlap=2)
    learning.label_everything(scene.project, scene.annotator)
    return scene


def skipped_by_the_only_one():
    scene = asked(people=2, skips_to_set_aside=5)
    other = Membership.objects.filter(role=Role.ANNOTATOR).exclude(user=scene.annotator).get()
    while (held := queue.claim_next(project=scene.project, user=scene.annotator)) is not None:
        labels.skip_assignment(assignment=held, reason="")
    members.remove_member(project=scene.project, user=other.user, role=Role.ANNOTATOR)
    return scene


def set_aside_without_a_label():
    scene = asked()
    for _question in range(3):
        held = queue.claim_next(project=scene.project, user=scene.annotator)
        labels.skip_assignment(assignment=held, reason="")
    return scene


def held_by_somebody():
    scene = asked()
    last = learning.label_everything(scene.project, scene.annotator, at_most=11)
    assert last == 11
    assert queue.claim_next(project=scene.project, user=scene.annotator) is not None
    return scene


def assigned_to_somebody_at_a_limit():
    scene = asked(people=2, answers_per_person=3)
    last = Query.objects.filter(state=QueryState.OPEN).order_by("-priority").first()
    learning.label_everything(scene.project, scene.annotator)
    Query.objects.filter(pk=last.pk).update(assigned_to=scene.annotator)
    other = Membership.objects.filter(role=Role.ANNOTATOR).exclude(user=scene.annotator).get()
    configuring.configure_project(project=scene.project, changes={"answers_per_person": 3}, actor=scene.manager)
    Query.objects.filter(state=QueryState.OPEN).exclude(pk=last.pk).update(state=QueryState.WITHDRAWN, open_slots=0)
    assert queue.claim_next(project=scene.project, user=other.user) is None
    return scene


def waits_for_answers():
    return asked()


def open_block():
    return secret()


def block_answered():
    scene = secret()
    learning.label_everything(scene.project, scene.annotator)
    return scene


def few_labels():
    scene = asked(round_size=50, labels_per_release=50)
    learning.label_everything(scene.project, scene.annotator)
    return scene


def answers_spent():
    scene = asked(labels_limit=12)
    learning.label_everything(scene.project, scene.annotator)
    learning.work_off(scene.project)
    return scene


def cannot_pay():
    scene = trusted(pool_epsilon=1.0)
    learning.fill_trusted(scene.project)
    members.add_member(project=scene.project, user=make_user(), role=Role.ANNOTATOR)
    return scene


def paused():
    scene = asked()
    opening.pause_project(project=scene.project)
    return scene


def archived():
    scene = asked()
    lifecycle.archive_project(project=scene.project)
    return scene


def cancelled_round():
    scene = trusted()
    learning.fill_trusted(scene.project)
    members.add_member(project=scene.project, user=make_user(), role=Role.ANNOTATOR)
    loop.advance_project(project_id=scene.project.pk)
    assert attempts.cancel_work(row=Round.objects.get(), by="ada")
    return scene


def fail_training() -> None:
    waiting = TrainingRun.objects.filter(state=WorkState.WAITING)
    assert waiting.update(state=WorkState.FAILED, error="It did not end well.", finished_at=timezone.now()) == 1


def failed_training():
    scene = asked(number=40)
    learning.label_everything(scene.project, scene.annotator)
    loop.advance_project(project_id=scene.project.pk)
    fail_training()
    learning.work_off(scene.project)
    return scene


def failing_trainings():
    scene = asked(number=60)
    for _ in range(3):
        learning.work_off(scene.project)
        learning.label_everything(scene.project, scene.annotator)
        loop.advance_project(project_id=scene.project.pk)
        fail_training()
    learning.work_off(scene.project)
    learning.label_everything(scene.project, scene.annotator)
    return scene


def cancelled_import():
    scene = trusted()
    dataset = receive_upload(
        project=scene.project, file=learning_file(), name="pool.csv", mapping={"text": "text"}, send=False
    )
    assert attempts.cancel_work(row=dataset.job, by="ada")
    members.add_member(project=scene.project, user=make_user(), role=Role.ANNOTATOR)
    return scene


def learning_file():
    lines = "\n".join(learning.sentences(14))
    return SimpleUploadedFile("pool.csv", f"text\n{lines}\n".encode())


def held_back():
    scene = asked()
    learning.run_to_release(scene.project, scene.annotator, version=1)
    with without_rules("learner_modelrelease"):
        ModelRelease.objects.update(state="candidate", released_at=None, held_back="A digest is another one.")
    return scene


def last_version():
    scene = asked(maximum_releases=1)
    release = learning.run_to_release(scene.project, scene.annotator, version=1)
    with without_rules("learner_evaluation"):
        release.evaluations.update(correct=F("examples"), constant_correct=0)
    return scene


def beaten():
    scene = asked(maximum_releases=1)
    release = learning.run_to_release(scene.project, scene.annotator, version=1)
    with without_rules("learner_evaluation"):
        release.evaluations.update(correct=F("constant_correct"))
    return scene


def nothing_passed():
    manager = make_user()
    scene = Scene(learning.open_crowd(manager), manager)
    members.add_member(project=scene.project, user=make_user(), role=Role.ANNOTATOR)
    learning.upload(scene.project, [[f"said once {n}", f"p{n}"] for n in range(9)], ["text", "contributor"])
    assert GateRun.objects.get().passed_count == 0
    return scene


def too_few_passed():
    manager = make_opener()
    scene = Scene(learning.open_crowd(manager, pool_epsilon=1.0, features="static_encoder"), manager)
    members.add_member(project=scene.project, user=make_user(), role=Role.ANNOTATOR)
    learning.upload(scene.project, [["said often", f"p{n}"] for n in range(99)], ["text", "contributor"])
    assert GateRun.objects.get().passed_count == 1
    learning.work_off(scene.project)
    learning.label_everything(scene.project, Membership.objects.get(role=Role.ANNOTATOR).user)
    return scene


def gate_failed():
    manager = make_user()
    scene = Scene(learning.open_crowd(manager), manager)
    members.add_member(project=scene.project, user=make_user(), role=Role.ANNOTATOR)
    dataset = bring_file(
        scene.project,
        b"text,who\nplay jazz,a\nplay jazz,b\n",
        name="pool.csv",
        mapping={"text": "text", "contributor": "who"},
        send=False,
    )
    datasets.import_dataset(job_id=dataset.job_id)
    dataset.refresh_from_db()
    assert attempts.cancel_work(row=dataset.gate_job, by="ada")
    return scene


def empty_stream():
    manager = make_user()
    return Scene(streaming.open_stream(manager), manager)


def no_worker():
    scene = trusted()
    learning.fill_trusted(scene.project)
    members.add_member(project=scene.project, user=make_user(), role=Role.ANNOTATOR)
    loop.advance_project(project_id=scene.project.pk)
    Round.objects.update(created_at=timezone.now() - timedelta(minutes=5))
    return scene


# What each scene waits for, and what is offered, the first first.
SCENES: dict[Callable[[], Scene], tuple[Blocker, list[ActKind]]] = {
    no_pool: (Blocker.POOL, [ActKind.UPLOAD]),
    unread: (Blocker.READING, []),
    refused: (Blocker.REFUSED, [ActKind.UPLOAD, ActKind.SEE_UPLOAD]),
    cancelled_import: (Blocker.FAILED, [ActKind.START_ANEW]),
    nothing_passed: (Blocker.NOTHING_PASSED, [ActKind.UPLOAD, ActKind.SEE_WHAT_PASSES]),
    too_few_passed: (
        Blocker.TOO_FEW_PASSED,
        [ActKind.SEE_VERSION_0, ActKind.RAISE_LIMIT, ActKind.BEGIN_WITH_EXPERTS, ActKind.TRAIN_ON_FEW],
    ),
    gate_failed: (Blocker.GATE_FAILED, [ActKind.GATE_AGAIN]),
    empty_stream: (Blocker.RECORDS, [ActKind.POST_RECORDS]),
    nobody: (Blocker.NOBODY, [ActKind.ANSWER_MYSELF, ActKind.ADD_PEOPLE]),
    nobody_before_the_first_round: (Blocker.NOBODY, [ActKind.ANSWER_MYSELF, ActKind.ADD_PEOPLE]),
    everybody_paused: (Blocker.PEOPLE_PAUSED, [ActKind.LET_PEOPLE_GO_ON, ActKind.ADD_PEOPLE]),
    quiet_hours: (Blocker.QUIET, [ActKind.CHANGE_HOURS]),
    limit_of_each_person: (Blocker.LIMITS, [ActKind.CHANGE_LIMITS, ActKind.ADD_PEOPLE]),
    limit_of_the_day: (Blocker.LIMITS, [ActKind.CHANGE_LIMITS, ActKind.ADD_PEOPLE]),
    needs_another_person: (Blocker.ANOTHER, [ActKind.ADD_PEOPLE, ActKind.SET_ASIDE]),
    skipped_by_the_only_one: (Blocker.ANOTHER, [ActKind.ADD_PEOPLE, ActKind.SET_ASIDE]),
    set_aside_without_a_label: (Blocker.ANSWERS, [ActKind.LABEL, ActKind.SEE_SET_ASIDE, ActKind.PAUSE]),
    held_by_somebody: (Blocker.HELD, [ActKind.LABEL]),
    assigned_to_somebody_at_a_limit: (Blocker.ASSIGNED, [ActKind.ASSIGN_ANEW, ActKind.CHANGE_LIMITS]),
    waits_for_answers: (Blocker.ANSWERS, [ActKind.LABEL]),
    open_block: (Blocker.ANSWERS, [ActKind.LABEL, ActKind.CLOSE_BLOCK]),
    block_answered: (Blocker.BLOCK, [ActKind.CLOSE_BLOCK]),
    few_labels: (Blocker.FEW_LABELS, [ActKind.TRAIN_ON_FEW, ActKind.UPLOAD]),
    answers_spent: (Blocker.LABELS_SPENT, [ActKind.RAISE_ANSWERS]),
    cannot_pay: (Blocker.BUDGET, [ActKind.RAISE_LIMIT]),
    paused: (Blocker.PAUSED, [ActKind.RESUME]),
    archived: (Blocker.ARCHIVED, [ActKind.TAKE_OUT_OF_ARCHIVE]),
    cancelled_round: (Blocker.FAILED, [ActKind.START_ANEW]),
    failed_training: (Blocker.FAILED, [ActKind.START_ANEW, ActKind.LABEL]),
    failing_trainings: (Blocker.FAILED, [ActKind.START_ANEW]),
    held_back: (Blocker.HELD_BACK, [ActKind.CHECK_AGAIN]),
    no_worker: (Blocker.NO_WORKER, [ActKind.LOOK_AT_WORK]),
    last_version: (Blocker.VERSIONS, [ActKind.SEE_RELEASE, ActKind.PLAN_MORE_VERSIONS]),
    beaten: (Blocker.BEATEN, [ActKind.SEE_RELEASE]),
}
PAIRS = [(scene, kind) for scene, (_blocker, kinds) in SCENES.items() for kind in kinds]


def configure(**changes):
    def do(scene: Scene, _act: Act) -> None:
        configuring.configure_project(project=scene.project, changes=changes, actor=scene.manager)

    return do


def add_people(scene: Scene, _act: Act) -> None:
    members.add_member(project=scene.project, user=make_user(), role=Role.ANNOTATOR)


def upload(scene: Scene, _act: Act) -> None:
    if scene.project.oracle == "crowd":
        learning.fill_crowd(scene.project, texts=10)
    else:
        learning.upload(scene.project, [[text] for text in learning.sentences(60, seed=7)], ["text"])


def let_people_go_on(scene: Scene, _act: Act) -> None:
    for membership in Membership.objects.filter(project=scene.project, role=Role.ANNOTATOR):
        address = reverse("annotation:set_pause", args=[scene.project.slug, membership.pk])
        assert scene.browser.post(address, {"state": "active"}).status_code == 302


def answer(scene: Scene, _act: Act) -> None:
    for membership in Membership.objects.filter(project=scene.project, role=Role.ANNOTATOR):
        learning.label_everything(scene.project, membership.user)


def close_block(scene: Scene, _act: Act) -> None:
    assert scene.browser.post(reverse("learner:close_block", args=[scene.project.slug])).status_code == 302


def assign_anew(scene: Scene, _act: Act) -> None:
    free = services.assignable_annotators(scene.project).exclude(user=scene.annotator).get()
    waiting = Query.objects.filter(project=scene.project, state=QueryState.OPEN).values_list("pk", flat=True)
    assert services.assign_chosen(project=scene.project, query_ids=list(waiting), person_id=free.user_id)


def set_aside(scene: Scene, _act: Act) -> None:
    waiting = Query.objects.filter(project=scene.project, state=QueryState.OPEN).values_list("pk", flat=True)
    assert flags.set_aside_chosen(project=scene.project, query_ids=list(waiting))


def raise_limit(scene: Scene, act: Act) -> None:
    account = scene.project.pool_account
    assert act.subject == str(account.pk)
    limits.change_limit(
        project=scene.project,
        account=account,
        epsilon_limit=50.0,
        delta_limit=guarantee(account).delta_limit,
        reason="more is worth it",
        actor=scene.manager,
    )


def post_records(scene: Scene, _act: Act) -> None:
    streams.post_records(project=scene.project, records=streaming.rows(4))


# Links lead to a page; this is what is done there.
ON_THE_PAGE: dict[ActKind, Callable[[Scene, Act], None]] = {
    ActKind.UPLOAD: upload,
    ActKind.POST_RECORDS: post_records,
    ActKind.ADD_PEOPLE: add_people,
    ActKind.LET_PEOPLE_GO_ON: let_people_go_on,
    ActKind.CHANGE_LIMITS: configure(answers_per_person=100, answers_per_day=100),
    ActKind.CHANGE_HOURS: configure(quiet_from=None, quiet_until=None),
    ActKind.ASSIGN_ANEW: assign_anew,
    ActKind.SET_ASIDE: set_aside,
    ActKind.LABEL: answer,
    ActKind.CLOSE_BLOCK: close_block,
    ActKind.RAISE_ANSWERS: configure(labels_limit=1000),
    ActKind.RAISE_LIMIT: raise_limit,
    ActKind.PLAN_MORE_VERSIONS: configure(maximum_releases=5),
}


def take(scene: Scene, act: Act) -> None:
    scene.project.refresh_from_db()
    button = button_of(scene.project, act, scene.manager)
    if button.sends:
        assert scene.browser.post(button.address, button.fields).status_code == 302
        return
    if act.kind != ActKind.LABEL:
        # Whoever is no annotator is not led to the label page.
        assert scene.browser.get(button.address).status_code == 200, button.address
    if act.kind not in LOOKS:
        ON_THE_PAGE[act.kind](scene, act)


def told(way: Guidance) -> tuple[str, ...]:
    return (way.status.step, way.blocker, way.status.sentence, *(act.kind for act in way.acts))


@pytest.mark.one_in(4)
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_what_a_project_waits_for(scene):
    blocker, kinds = SCENES[scene]
    way = scene().way()
    assert (way.blocker, [act.kind for act in way.acts]) == (blocker, kinds)


@pytest.mark.one_in(9)
@pytest.mark.one_in(5)
@pytest.mark.parametrize(("scene", "kind"), PAIRS, ids=lambda value: getattr(value, "__name__", str(value)))
def test_taking_the_step_moves_the_project_on(scene, kind):
    before = scene()
    way = before.way()
    act = next(act for act in way.acts if act.kind == kind)
    take(before, act)
    if kind not in LOOKS:
        assert told(before.way()) != told(way)


def test_every_act_has_a_page_or_a_button_and_most_a_scene():
    assert {kind for _scene, kind in PAIRS} | {ActKind.SEE_POPULATION} == set(ActKind)
    waited_for = {blocker for blocker, _kinds in SCENES.values()}
    # The rest waits for a machine or for nothing, and names no act but a look.
    rest = {"deleted", "worker", "busy", "window", "blocks_used", "all_asked"}
    assert waited_for == {each for each in Blocker if each not in rest}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("seed", range(4))
def test_who_follows_the_steps_gets_to_the_last_version(seed):
    """Any of the steps named, in any order, with setbacks between: the project ends with its versions made."""
    chance = random.Random(seed)
    manager = make_user()
    opened = learning.open_secret if seed % 2 else learning.open_trusted
    settings = {} if seed % 2 else {"selection": "random", "labels_per_release": 10, "round_size": 10}
    scene = Scene(opened(manager, maximum_releases=2, **settings), manager)
    seen = []
    for _ in range(60):
        learning.work_off(scene.project)
        way = scene.way()
        seen.append(way.blocker)
        if way.status.step == Step.FINISHED:
            break
        acts = [act for act in way.acts if act.kind not in LOOKS]
        assert acts, (way, seen)
        take(scene, chance.choice(acts))
        _set_back(scene, chance)
    assert way.status.step == Step.FINISHED, seen
    assert ModelRelease.objects.filter(project=scene.project).count() == 2


def _set_back(scene: Scene, chance: random.Random) -> None:
    project = Project.objects.get(pk=scene.project.pk)
    annotators = Membership.objects.filter(project=project, role=Role.ANNOTATOR)
    drawn = chance.random()
    if drawn < 0.1 and project.state == "active":
        opening.pause_project(project=project)
    elif drawn < 0.2 and annotators.exists():
        gold.pause_member(membership=annotators.first(), reason="manager")
    elif drawn < 0.3:
        loop.advance_project(project_id=project.pk)
        for row in Round.objects.filter(project=project, state=WorkState.WAITING):
            attempts.cancel_work(row=row, by="ada")
    elif drawn < 0.35:
        loop.advance_project(project_id=project.pk)
        for run in TrainingRun.objects.filter(project=project, state=WorkState.WAITING):
            attempts.cancel_work(row=run, by="ada")


class TestPages:
    def test_the_same_step_stands_on_every_page_and_on_the_card(self):
        scene = nobody()
        slug = scene.project.slug
        sentence = scene.way().sentence
        for name in ("learner:overview", "learner:next_step", "annotation:data", "annotation:people", "learner:card"):
            page = scene.browser.get(reverse(name, args=[slug])).content.decode()
            assert sentence in page, name

    def test_a_price_stands_on_each_button_that_has_something_charged(self):
        for scene in (few_labels(), paused(), open_block()):
            page = scene.browser.get(reverse("learner:next_step", args=[scene.project.slug])).content.decode()
            for act in scene.way().acts:
                if act.price is not None and act.price.epsilon:
                    assert f"ε {epsilon_words(act.price.epsilon)}" in page, act

    def test_an_annotator_is_led_to_the_label_page_and_who_is_none_is_not(self):
        scene = waits_for_answers()
        shown = next_step_context(scene.project, scene.manager)
        assert [button.kind for button in shown["buttons"]] == []
        shown = next_step_context(scene.project, scene.annotator)
        assert [button.kind for button in shown["buttons"]] == ["label"]

    def test_only_managers_see_what_a_project_waits_for(self):
        scene = waits_for_answers()
        engineer = make_user()
        members.add_member(project=scene.project, user=engineer, role=Role.ENGINEER)
        # The card tells an engineer what was spent and released, as the list of projects does.
        for person, status in ((engineer, 200), (scene.annotator, 404)):
            client = browser_of(person)
            assert client.get(reverse("learner:next_step", args=[scene.project.slug])).status_code == 404
            card = client.get(reverse("learner:card", args=[scene.project.slug]))
            assert card.status_code == status
            assert scene.way().sentence not in card.content.decode()


def test_the_offer_to_close_a_block_does_not_follow_its_answers():
    """When a block is closed shows outside, so the page says the same of it whatever is answered."""
    scene = secret()
    before = [act for act in scene.way().acts if act.kind == ActKind.CLOSE_BLOCK]
    learning.label_everything(scene.project, scene.annotator, at_most=3)
    assert [act for act in scene.way().acts if act.kind == ActKind.CLOSE_BLOCK] == before
    learning.label_everything(scene.project, scene.annotator)
    assert [act for act in scene.way().acts if act.kind == ActKind.CLOSE_BLOCK] == before
    assert Assignment.objects.filter(state="labelled").exists()


def test_a_model_without_a_label_is_announced_and_a_pause_stops_it():
    """Its training starts with the number of questions done, so that its date tells nothing of the answers."""
    scene = set_aside_without_a_label()
    way = scene.way()
    assert "3 questions are set aside." in way.sentence
    assert "the next model has none" in way.sentence
    take(scene, next(act for act in way.acts if act.kind == ActKind.PAUSE))
    while (held := queue.claim_next(project=scene.project, user=scene.annotator)) is not None:
        labels.skip_assignment(assignment=held, reason="")
    learning.work_off(scene.project)
    assert not TrainingRun.objects.filter(project=scene.project).exists()
    assert guarantee(scene.project.pool_account).epsilon_spent == 0
