"""Whatever a person presses that has something charged names its price first, and asks once."""

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from django.utils import timezone

from annotation.budget import charges
from annotation.budget.action_words import SENTENCES
from annotation.budget.words import delta_words, epsilon_words
from annotation.data.services import datasets
from annotation.gates import services as gates
from annotation.models import Dataset, Job, WorkState
from annotation.projects.services import opening
from annotation.work.services import attempts
from annotation.work.services.history import UNNOTED
from annotation.work.services.tokens import Scope
from learner.models import Round, TrainingRun
from learner.pools import prices, selectors
from learner.rounds.services import loop
from privacy.accounting.cost import epsilon_to_nano
from privacy.ledger.models import LedgerEntry
from tests import learning
from tests.clients import browser_of, program_of
from tests.factories import make_user, receive_upload
from tests.programs import Program

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("reads_here")]
ROWS = b"text,who\n" + b"".join(b"nobody says this %d,p%d\n" % (n, n) for n in range(13))
# What can be sent and has nothing charged. Answers, limits and settings let a project go on as it was declared; what
# that costs stands where it is declared.
FREE = """
    annotation:add_checks annotation:change_limit annotation:change_questions annotation:comment
    annotation:classes api:add_class annotation:exports api:start_export
    annotation:rename_class api:rename_class
    annotation:merge_class annotation:take_back_merge api:merge_class api:take_back_merge
    annotation:compare_answers annotation:configuration annotation:copy_project annotation:correct_answer
    annotation:crowd_done annotation:crowd_links
    prolific:change_study prolific:connect_platform prolific:give_bonuses prolific:judge_submission
    prolific:settle_bonuses prolific:studies
    annotation:add_guideline_picture annotation:drop_guideline_picture
    api:add_guideline_picture api:delete_guideline_picture
    api:change_questions
    annotation:write_back api:comment_on_assignment api:mark_comments_read api:reply_to_report
    annotation:crowd_start annotation:decide annotation:decide_limit
    annotation:decide_population annotation:flag annotation:from_file annotation:gate
    annotation:give_group_role annotation:guidelines
    annotation:invitations annotation:join annotation:join_population annotation:label
    annotation:label_budget annotation:labelling annotation:mails annotation:new_population annotation:new_project
    annotation:people annotation:population_limit annotation:population_managers
    annotation:quality annotation:read_guidelines annotation:remove_member
    annotation:resolve annotation:retention annotation:retire_check
    annotation:revoke_crowd_link annotation:revoke_invitation
    annotation:revoke_token annotation:second_manager annotation:set_pause annotation:settings annotation:settle
    annotation:skip annotation:submit annotation:survey annotation:take_group_role annotation:tokens annotation:undo
    annotation:review annotation:undo_review api:claim_review api:decide_review api:undo_review
    language_models:draft_for_opening language_models:draft_for_project language_models:words_draft api:draft_words
    api:discard_draft api:draft_project api:connect_platform api:disconnect_platform api:open_study api:change_study
    api:decide_participation api:give_bonuses api:settle_bonuses
    api:add_member api:ask_for_population_manager api:decide_wish api:give_group_role api:make_crowd_link
    api:make_invitation api:remove_member api:revoke_crowd_link api:revoke_invitation api:take_group_role
    api:add_checks api:choose_gate api:compare_answers api:decide_set_aside api:pause_member api:read_guidelines
    api:resolve_report api:resume_member api:retire_check api:survey_dataset api:write_guidelines
    api:correct_answer api:flag_assignment api:undo_last
    api:answer_batch api:change_common_limit api:change_configuration api:claim_assignment api:claim_batch
    api:forget_contributor
    api:join_population api:label_assignment api:open_population api:open_project api:openapi-json api:openapi-view
    api:move_channel api:predict api:preview_forgetting_of api:retire_model api:roll_back_channel api:skip_assignment
    learner:cancel_work learner:channels learner:check_again
    learner:delete_project learner:draft_plan learner:endorse learner:forget_now
    learner:plan api:simulate_plan
    learner:preview_forget webhooks:remove_webhook learner:retire webhooks:send_webhook_again
    learner:set_archived webhooks:webhooks
    api:change_description api:change_retention api:set_archived api:delete_project
    api:change_limit api:decide_limit api:set_second_manager
    api:cancel_work api:check_again api:endorse_model
    api:add_webhook api:remove_webhook api:send_webhook_again
    webhooks:change_webhook webhooks:rotate_webhook_secret api:change_webhook api:rotate_webhook_secret
    api:choose_mails api:send_work_again api:stop_work
"""


# What each of these charges is set going by.
RESERVING = {
    "annotation/gates/services.py": (
        "annotation:preview annotation:opening annotation:start_gate learner:retry_work api:start_gate"
        " api:upload_dataset annotation:register_table api:register_table"
    ),
    "learner/pools/attempts.py": "a round or a training, below",
    "learner/pools/starts.py": "annotation:preview, with a limit of its own on the button",
    "learner/rounds/services/randomization.py": "by itself, once for all answers, as declared",
    "learner/rounds/services/loop.py": "by itself as declared; learner:retry_work",
    "learner/rounds/services/selection.py": "by itself as declared; learner:retry_work",
    "learner/rounds/services/streams.py": "api:post_records",
    "learner/shares/services.py": "learner:shares api:ask_shares",
    "learner/rounds/services/training.py": "by itself as declared; train_on_few, close_block, retry_work, set_state",
}
RESERVES = r"(ledger\.reserve|attempts\.(reserve_attempt|pay_whole)|selection\.reserve_choice)\("
ROOT = Path(charges.__file__).parents[2]


def csv_file(body):
    return SimpleUploadedFile("rows.csv", body)


@pytest.fixture
def crowd(owner):
    return learning.open_crowd(owner, privacy_unit="contributor", texts_per_contributor=1)


@pytest.fixture
def web(owner):
    return browser_of(owner)


def words(cost):
    return f"ε {epsilon_words(cost.epsilon)}, δ {delta_words(cost.delta)}"


def buttons(response):
    found = re.findall(r"<button[^>]*>(.*?)</button>", response.content.decode(), re.S)
    return [" ".join(re.sub(r"<[^>]*>", "", text).split()) for text in found]


def send(web, project, **values):
    address = reverse("annotation:data", args=[project.slug])
    fields = {"role": "pool", "bad_rows": "keep_good", "has_header": "on", "file": csv_file(ROWS)}
    return web.post(address, fields | values)


def public_start(project):
    rows = [[text, learning.CLASSES[learning.truth_of(text)]] for text in learning.sentences(40, seed=9)]
    learning.upload(project, rows, ["text", "label"], role="public_start")


def look_of(web, project, **values):
    answer = send(web, project, **values)
    assert answer.status_code == 302
    return answer.url, web.get(answer.url)


MAPPING = {"has_header": "on", "quoting": "on", "delimiter": ",", "text": "text", "contributor": "who"}


class TestUploads:
    def test_a_pool_that_pays_for_a_gate_is_uploaded_by_a_button_with_the_price(self, web, crowd):
        """The attack: one press of a button without a price charged epsilon 1 of 3."""
        price = charges.gate_charge(crowd)
        page = web.get(reverse("annotation:data", args=[crowd.slug]))
        assert f"Upload (a pool: {words(price)})" in buttons(page)
        address, page = look_of(web, crowd)
        assert f"Upload for {words(price)}" in buttons(page)
        assert not Dataset.objects.exists()
        assert not LedgerEntry.objects.filter(kind="reserve").exists()
        agreed = page.context["agreed"]
        for sent in ({}, {"agreed": "0.0;0.0"}):
            answer = web.post(address, MAPPING | {"upload": "1"} | sent)
            assert answer.status_code == 422
            assert "This is charged; the price" in answer.content.decode()
            assert not Dataset.objects.exists()
        assert web.post(address, MAPPING | {"upload": "1", "agreed": agreed, "confirm_few": "1"}).status_code == 302
        assert Dataset.objects.get().role == "pool"

    def test_the_gate_stays_what_it_was_agreed_to_be(self, web, crowd):
        address, page = look_of(web, crowd)
        web.post(address, MAPPING | {"upload": "1", "agreed": page.context["agreed"], "confirm_few": "1"})
        other = {"gate_kind": "k_anonymity", "gate_epsilon": 0.7, "gate_k": 30, "gate_sampling_rate": 0.3}
        answer = web.post(reverse("annotation:gate", args=[crowd.slug]), other, follow=True)
        assert "gate is in use" in answer.content.decode()

    def test_what_is_not_charged_is_not_asked(self, web, crowd, owner):
        answer = send(web, crowd, role="public_test", file=csv_file(b"text,label\nsome,fruit\n"))
        assert answer.url == reverse("annotation:data", args=[crowd.slug])
        experts = learning.open_trusted(owner)
        page = web.get(reverse("annotation:data", args=[experts.slug]))
        assert "Upload" in buttons(page)
        assert words(selectors.training_price(experts)) in " ".join(page.content.decode().split())
        assert send(web, experts).url == reverse("annotation:data", args=[experts.slug])

    def test_a_private_start_names_its_limit(self, web, owner):
        experts = learning.open_trusted(owner)
        rows = csv_file(b"text,label\nsome,fruit\n")
        _, page = look_of(web, experts, role="charged_start", start_epsilon="2.5", look="1", file=rows)
        delta = delta_words(int(2.5 / experts.settings["training_epsilon"]) * (experts.training_delta or 0))
        assert f"Upload for at most ε 2.500, δ {delta}" in buttons(page)

    def test_public_examples_that_come_before_any_pool(self, web, owner):
        """The flaw: the pages asked what choosing from nothing costs, and failed."""
        experts = learning.open_trusted(owner)
        public_start(experts)
        most = words(prices.round_price(experts, before_upload=True))
        rows = csv_file(b"text\n" + b"".join(b"sentence %d\n" % n for n in range(experts.round_size)))
        _, page = look_of(web, experts, look="1", file=rows)
        for shown in (web.get(reverse("annotation:data", args=[experts.slug])), page):
            assert f"choosing questions next at most {most};" in " ".join(shown.content.decode().split())
        learning.upload(experts, [[text] for text in learning.sentences(experts.round_size)], ["text"])
        assert words(prices.round_price(experts)) == most

    def test_a_program_is_told_and_may_name_its_most(self, crowd, owner):
        program = program_of(owner, Scope.DATASETS_WRITE)
        price = charges.gate_charge(crowd)
        address = reverse("api:upload_dataset", args=[crowd.slug])
        fields = {"role": "pool", "text_column": "text", "contributor_column": "who", "confirm_few": "true"}
        least = price.epsilon / 2
        refused = program.post(address, fields | {"file": csv_file(ROWS), "most_epsilon": least})
        assert refused.status_code == 422
        assert "most_epsilon" in refused.content.decode()
        assert not Dataset.objects.exists()
        taken = program.post(address, fields | {"file": csv_file(ROWS), "most_epsilon": price.epsilon})
        assert taken.status_code == 202
        assert taken.json()["charge"] == {"epsilon": price.epsilon, "delta": price.delta}


class TestUploadsTogether:
    @pytest.fixture
    def running_on(self, owner):
        return learning.open_crowd(
            owner, privacy_unit="record", texts_per_contributor=None, gate_epsilon=0.5, gate_window=3
        )

    def test_the_first_upload_pays_for_all(self, web, running_on):
        page = web.get(reverse("annotation:data", args=[running_on.slug]))
        assert f"Upload (a pool: {words(charges.gate_charge(running_on))})" in buttons(page)
        assert 0.5 < charges.gate_charge(running_on).epsilon < 0.6
        learning.upload(running_on, [[text] for text in ["play jazz"] * 90], ["text"])
        learning.work_off(running_on)
        page = web.get(reverse("annotation:data", args=[running_on.slug]))
        assert "Upload (a pool: ε 0.000, δ 0)" in buttons(page)
        statement = web.get(reverse("annotation:statement", args=[running_on.slug]))
        assert "at most 3 uploads together; the first run pays for all" in statement.content.decode()

    def test_a_run_that_failed_pays_once_more(self, web, running_on):
        learning.upload(running_on, [[text] for text in ["play jazz"] * 90], ["text"])
        learning.work_off(running_on)
        end_jobs(WorkState.FAILED, kind="gate")
        page = web.get(reverse("annotation:data", args=[running_on.slug]))
        (price,) = [text for text in buttons(page) if text.startswith("Run the gate again")]
        assert price.startswith("Run the gate again for ε 0.500")


class TestAgain:
    def test_a_gate_that_failed(self, web, crowd):
        dataset = _gated(crowd, state=WorkState.FAILED)
        page = web.get(reverse("annotation:data", args=[crowd.slug]))
        price = charges.gate_charge(crowd)
        assert f"Run the gate again for {words(price)}" in buttons(page)
        address = reverse("annotation:start_gate", args=[crowd.slug, dataset.pk])
        web.post(address)
        assert Job.objects.filter(kind="gate").count() == 1
        web.post(address, {"agreed": page.context["agreed"]})
        assert Job.objects.filter(kind="gate").count() == 2
        end_jobs(WorkState.FAILED, kind="gate")
        board = web.get(reverse("learner:dashboard", args=[crowd.slug]))
        assert any(text.startswith(f"Restart for {words(price)}") for text in buttons(board))

    def test_a_round(self, web, owner):
        experts = learning.open_trusted(owner)
        learning.fill_trusted(experts)
        loop.advance_project(project_id=experts.pk)
        Round.objects.update(state=WorkState.FAILED, error="It did not end well.", finished_at=timezone.now())
        board = web.get(reverse("learner:dashboard", args=[experts.slug]))
        price = prices.round_price(experts)
        shown = words(price) if price.epsilon or price.delta else ""
        assert any(text.startswith(f"Restart for {shown}" if shown else "Restart") for text in buttons(board))

    def test_a_round_that_is_charged_says_so_and_is_charged_that(self, web, owner):
        project = learning.open_trusted(owner)
        public_start(project)
        learning.fill_trusted(project)
        loop.advance_project(project_id=project.pk)
        assert attempts.cancel_work(row=Round.objects.get(), by="owner")
        price = prices.round_price(project)
        assert price.epsilon > 0.25
        board = web.get(reverse("learner:dashboard", args=[project.slug]))
        assert any(text.startswith(f"Restart for {words(price)}") for text in buttons(board))
        page = " ".join(web.get(reverse("annotation:data", args=[project.slug])).content.decode().split())
        assert f"choosing questions next at most {words(price)};" in page
        ask = Program(owner, project)
        row = next(row for row in ask("GET", "work").json() if row["kind"] == "round")
        path = f"work/round/{row['id']}/retry"
        assert (row["epsilon"], ask("POST", path, {"most_epsilon": 0}).status_code) == (price.epsilon, 422)
        assert ask("POST", path, {"most_epsilon": price.epsilon}).json()["epsilon"] == price.epsilon
        again = Round.objects.get(state=WorkState.WAITING)
        loop.run_round(round_id=again.pk)
        again.refresh_from_db()
        assert again.reservation.epsilon_nano == epsilon_to_nano(price.epsilon)

    def test_a_training(self, web, owner):
        experts = learning.open_trusted(owner)
        learning.fill_trusted(experts)
        learning.work_off(experts)
        learning.label_everything(experts, make_user())
        loop.advance_project(project_id=experts.pk)
        ended = {"state": WorkState.FAILED, "error": "It did not end well.", "finished_at": timezone.now()}
        assert TrainingRun.objects.update(**ended) == 1
        board = web.get(reverse("learner:dashboard", args=[experts.slug]))
        price = selectors.training_price(experts)
        assert any(text.startswith(f"Restart for {words(price)}") for text in buttons(board))

    def test_a_paused_project(self, web, owner):
        experts = learning.open_trusted(owner)
        opening.pause_project(project=experts)
        page = web.get(reverse("learner:overview", args=[experts.slug]))
        price = selectors.training_price(experts)
        assert f"Resume; the next model costs {words(price)}" in buttons(page)


def _gated(project, *, rows=ROWS, state=None):
    dataset = receive_upload(
        project=project,
        file=csv_file(rows),
        name="pool.csv",
        mapping={"text": "text", "contributor": "who"},
        uploaded_by=project.created_by,
        send=False,
    )
    datasets.import_dataset(job_id=dataset.job_id)
    dataset.refresh_from_db()
    if state is None:
        gates.run_gate(job_id=dataset.gate_job_id)
    else:
        end_jobs(state, pk=dataset.gate_job_id)
    return dataset


def end_jobs(state, **found):
    Job.objects.filter(**found).update(state=state, finished_at=timezone.now(), error="It did not end well.")


class TestNothingPassed:
    def test_the_page_says_how_often_a_text_must_be_said(self, web, crowd):
        _gated(crowd)
        page = web.get(reverse("annotation:data", args=[crowd.slug])).content.decode()
        section = page[page.index('<section id="nothing-passed"') :]
        section = " ".join(section[: section.index("</section>")].split())
        needed = round(crowd.gate_k / crowd.gate_sampling_rate)
        assert f"A text must be said about {needed} times." in section
        for gate_words in ("noisy threshold", "k = "):
            assert gate_words in section
        assert not re.search(r"\b13\b|nobody", section.replace(crowd.slug, ""))

    def test_it_says_the_same_whatever_the_rows_are(self, web, crowd, owner):
        """No number of it is derived from private rows: two pools in which nothing passes have one page."""
        other = learning.open_crowd(owner, privacy_unit="contributor", texts_per_contributor=1)
        _gated(crowd)
        _gated(other, rows=b"text,who\n" + b"".join(b"something else %d,p%d\n" % (n // 2, n) for n in range(29)))
        sections = []
        for project in (crowd, other):
            page = web.get(reverse("annotation:data", args=[project.slug])).content.decode()
            section = page[page.index('<section id="nothing-passed"') :]
            sections.append(section[: section.index("</section>")].replace(project.slug, "-"))
        assert sections[0] == sections[1]

    def test_public_numbers_say_which_gate_would_have_passed_how_many(self, web, crowd):
        address = reverse("annotation:gate", args=[crowd.slug])
        price = charges.gate_charge(crowd)
        asked = {"source": "numbers", "epsilon": price.epsilon, "delta": 1e-6, "records": 100_000}
        page = web.get(address, asked | {"different_texts": 20_000, "most_frequent": 900})
        assert page.status_code == 200
        assert "Shares of a source with these" in page.content.decode()
        assert max(row["passing"].texts for row in page.context["rows"]) > 5
        assert page.context["private"] is False
        for wrong in ({}, {"different_texts": 200_000, "most_frequent": 3}):
            assert web.get(address, asked | wrong).status_code == 422


class TestTextsThatDoNotRepeat:
    def test_queries_of_which_the_most_frequent_is_said_twice(self, web, crowd):
        """15,000 queries of a public set: nothing passes at any price here, and the page says what helps instead."""
        price = charges.gate_charge(crowd)
        asked = {"source": "numbers", "epsilon": price.epsilon, "delta": 1e-6}
        asked |= {"records": 15_000, "different_texts": 14_900, "most_frequent": 2}
        page = web.get(reverse("annotation:gate", args=[crowd.slug]), asked)
        assert max(row["passing"].texts for row in page.context["rows"]) < 1
        shown = " ".join(page.content.decode().split())
        for help_words in ("a higher level", "more records in one upload", "a project of experts", "version 0 alone"):
            assert help_words in shown
        assert page.context["window"] is None or page.context["window"] > 5


def test_what_can_be_sent_has_a_price_or_is_known_to_be_free():
    """A new page or REST action that takes something is declared as charged or as free, with open eyes."""
    apps = ("annotation", "learner", "api", *settings.ADDONS)
    sent = {name for name in (*SENTENCES, *UNNOTED) if name.partition(":")[0] in apps}
    assert set(charges.PRICED) <= sent
    assert sent - set(charges.PRICED) == set(FREE.split())


def test_whatever_reserves_stands_behind_a_declared_button():
    """What reserves from an account is one of these; another is put behind a button with a price first."""
    found = {
        path.relative_to(ROOT).as_posix()
        for app in ("addons", "annotation", "learner", "privacy", "dpal_site")
        for path in (ROOT / app).rglob("*.py")
        if re.search(RESERVES, path.read_text())
    }
    assert found == set(RESERVING)
