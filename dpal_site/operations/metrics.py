"""`/metrics`: what the processes counted, and what the database says of queues, work and budgets at this moment."""

import os
import secrets
from collections.abc import Iterator

from django.conf import settings
from django.db.models import Count, DurationField, ExpressionWrapper, F, Max, Model, Q, Sum
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, Metric, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from annotation.budget.presenters import start_accounts
from annotation.choices.catalogue import CATALOGUE
from annotation.choices.policies import PolicyChoice
from annotation.choices.selections import AsksInBlocks
from annotation.models import UNFINISHED, Assignment, AssignmentState, Job, Project, Query
from annotation.work.services import broker
from dpal_site.operations import checks
from learner.models import Round, TrainingRun
from privacy.choices import Kind
from privacy.ledger.models import BudgetAccount
from privacy.ledger.selectors import guarantee

WORK: dict[str, type[Model]] = {"job": Job, "round": Round, "training": TrainingRun}


class SiteCollector(Collector):
    def collect(self) -> Iterator[Metric]:
        yield from self._queues()
        yield from self._work()
        yield from self._budgets()
        yield self._heartbeats()

    def _queues(self) -> Iterator[Metric]:
        depth = GaugeMetricFamily("dpal_queue_depth", "Answers still wanted from annotators.", labels=["project"])
        # Where a guarantee needs how many are asked to stay inside, it stays off dashboards that others may see.
        shown = Q()
        for kind in (Kind.STRATEGY, Kind.POLICY):
            secret = [
                choice.name
                for choice in CATALOGUE.of_kind(kind)
                if isinstance(choice, AsksInBlocks) or (issubclass(choice, PolicyChoice) and choice.hides_selection)
            ]
            shown &= ~Q(**{f"project__configuration__document__{kind.section}__{kind.key}__in": secret})
        wanted = Query.objects.filter(shown, state="open", open_slots__gt=0)
        for slug, slots in wanted.values_list("project__slug").annotate(slots=Sum("open_slots")).order_by():
            depth.add_metric([slug], slots)
        yield depth
        leases = GaugeMetricFamily("dpal_leases", "Questions in front of somebody.", labels=["project"])
        oldest = GaugeMetricFamily("dpal_lease_age_seconds", "Age of a project's oldest lease.", labels=["project"])
        age = ExpressionWrapper(Now() - F("created_at"), output_field=DurationField())
        held = Assignment.objects.filter(shown, state=AssignmentState.LEASED).values_list("project__slug")
        for slug, count, seconds in held.annotate(count=Count("pk"), age=Max(age)).order_by():
            leases.add_metric([slug], count)
            oldest.add_metric([slug], seconds.total_seconds())
        yield leases
        yield oldest
        waiting = GaugeMetricFamily("dpal_broker_messages", "Tasks that wait in the broker.", labels=["queue"])
        for queue, count in broker.depths().items():
            waiting.add_metric([queue], count)
        yield waiting

    def _work(self) -> Iterator[Metric]:
        count = GaugeMetricFamily("dpal_work", "Long work by kind and state.", labels=["kind", "state"])
        oldest = GaugeMetricFamily(
            "dpal_work_age_seconds", "Age of the oldest unfinished work.", labels=["kind", "state"]
        )
        longest = GaugeMetricFamily(
            "dpal_work_seconds", "Longest time from creation to end, over the last hour.", labels=["kind"]
        )
        age = ExpressionWrapper(Now() - F("created_at"), output_field=DurationField())
        took = ExpressionWrapper(F("finished_at") - F("created_at"), output_field=DurationField())
        hour = ExpressionWrapper(Now() - F("finished_at"), output_field=DurationField())
        for kind, model in WORK.items():
            rows = model._default_manager.all()
            for state, number, seconds in rows.values_list("state").annotate(n=Count("pk"), age=Max(age)).order_by():
                count.add_metric([kind, state], number)
                if state in UNFINISHED:
                    oldest.add_metric([kind, state], seconds.total_seconds())
            recent = rows.annotate(since=hour).filter(Q(finished_at__isnull=False) & Q(since__lt="1 hour"))
            if (slowest := recent.aggregate(took=Max(took))["took"]) is not None:
                longest.add_metric([kind], slowest.total_seconds())
        yield from (count, oldest, longest)

    def _budgets(self) -> Iterator[Metric]:
        families = {
            name: GaugeMetricFamily(f"dpal_budget_{name}", text, labels=["project", "account"])
            for name, text in (
                ("epsilon_limit", "Epsilon the account promises to keep."),
                ("epsilon_left", "Epsilon not spent or reserved."),
                ("delta_left", "Delta not spent or reserved."),
                ("open_reservations", "Reservations nobody has settled yet."),
            )
        }
        projects = Project.objects.values_list("pk", "slug", "pool_account_id", "labels_account_id").order_by("slug")
        accounts = BudgetAccount.objects.in_bulk()
        starts = start_accounts()
        for project, slug, pool, labels in projects:
            for name, key in (("pool", pool), ("labels", labels), ("start", starts.get(project))):
                if key is not None:
                    found = guarantee(accounts[key])
                    families["epsilon_limit"].add_metric([slug, name], found.epsilon_limit)
                    families["epsilon_left"].add_metric([slug, name], found.epsilon_left)
                    families["delta_left"].add_metric([slug, name], found.delta_left)
                    families["open_reservations"].add_metric([slug, name], found.open_reservations)
        yield from families.values()

    def _heartbeats(self) -> Metric:
        family = GaugeMetricFamily(
            "dpal_heartbeat_age_seconds", "Time since a worker of the queue was heard of.", labels=["queue"]
        )
        for queue, age in checks.ages().items():
            if age is not None:
                family.add_metric([queue], age.total_seconds())
        return family


def metrics(request: HttpRequest) -> HttpResponse:
    if not _may_read(request):
        return HttpResponse("not for you\n", status=403, content_type="text/plain; charset=utf-8")
    registry = CollectorRegistry()
    registry.register(SiteCollector())
    counted: CollectorRegistry = REGISTRY
    if os.environ.get("PROMETHEUS_MULTIPROC_DIR"):  # the sum over the web server's processes
        counted = CollectorRegistry()
        MultiProcessCollector(counted)  # type: ignore[no-untyped-call]
    return HttpResponse(generate_latest(counted) + generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


def _may_read(request: HttpRequest) -> bool:
    if settings.METRICS_TOKEN:
        sent = request.headers.get("Authorization", "").removeprefix("Bearer ")
        return secrets.compare_digest(sent.encode(), settings.METRICS_TOKEN.encode())
    # A proxy on this machine passes strangers on, and says so in this header.
    local = request.META.get("REMOTE_ADDR") in {"127.0.0.1", "::1"}
    return local and "X-Forwarded-For" not in request.headers
