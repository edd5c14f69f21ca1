"""Figures of the language models that answer."""

from collections import Counter
from dataclasses import dataclass

from addons.language_models.models import MachineAnnotator
from annotation.intervals import wilson_interval
from annotation.models import Label, Project, QueryState
from privacy.choices import Kind


@dataclass(frozen=True, slots=True)
class MachineSheet:
    work: MachineAnnotator
    endpoint: str
    most_requests: int | None
    compared: int
    agreeing: int

    @property
    def percent(self) -> float:
        return 100 * self.agreeing / self.compared if self.compared else 0.0

    @property
    def percent_low(self) -> float:
        return 100 * wilson_interval(self.agreeing, self.compared)[0]

    @property
    def percent_high(self) -> float:
        return 100 * wilson_interval(self.agreeing, self.compared)[1]


def machine_sheet(project: Project) -> MachineSheet | None:
    work = MachineAnnotator.objects.select_related("machine__user").filter(machine__project=project).first()
    if work is None:
        return None
    compared, agreeing = _compared_with_people(project, work.machine.user_id)
    is_on = bool(project.settings.get(Kind.MACHINE.key))
    return MachineSheet(
        work=work,
        endpoint=project.settings.get("machine_endpoint", "") if is_on else "",
        most_requests=project.settings.get("machine_requests") if is_on else None,
        compared=compared,
        agreeing=agreeing,
    )


def _compared_with_people(project: Project, machine_id: int) -> tuple[int, int]:
    given = Label.objects.filter(query__project=project, superseded_at=None, choice__isnull=False)
    mine = given.filter(annotator=machine_id).exclude(query__state=QueryState.GOLD)
    votes: dict[int, Counter[int]] = {}
    people = given.filter(query__in=mine.values("query")).exclude(annotator=machine_id)
    for query_id, choice in people.values_list("query", "choice").iterator():
        votes.setdefault(query_id, Counter())[choice or 0] += 1
    leading = {query_id: found.most_common(2) for query_id, found in votes.items()}
    clear = {key: best[0][0] for key, best in leading.items() if len(best) == 1 or best[0][1] > best[1][1]}
    own = dict(mine.values_list("query", "choice"))
    return len(clear), sum(own[query_id] == choice for query_id, choice in clear.items())


def machine_facts(project: Project) -> object:
    found = MachineAnnotator.objects.filter(machine__project=project)
    return list(found.values_list("requests", "unusable", "tokens", "faults"))
