"""How a language model gets on, for managers: how often it agrees with people, what it was sent, what failed."""

from dataclasses import dataclass

from django.db import connection

from annotation.intervals import wilson_interval
from annotation.models import Project
from annotation.models.machines import MachineAnnotator
from privacy.choices import Kind

# Where most people of a question gave one answer, whether that is the machine's; ties say nothing.
COMPARED = """
WITH mine AS (
    SELECT label.query_id, label.choice
    FROM annotation_label label JOIN annotation_query query ON query.id = label.query_id
    WHERE label.annotator_id = %(machine)s AND query.project_id = %(project)s AND query.state <> 'gold'
      AND label.superseded_at IS NULL AND label.choice IS NOT NULL
), votes AS (
    SELECT label.query_id, label.choice, count(*) AS n
    FROM annotation_label label JOIN mine ON mine.query_id = label.query_id
    WHERE label.annotator_id <> %(machine)s AND label.superseded_at IS NULL AND label.choice IS NOT NULL
    GROUP BY label.query_id, label.choice
), most AS (
    SELECT query_id, max(n) AS n FROM votes GROUP BY query_id
), people AS (
    SELECT votes.query_id, min(votes.choice) AS choice FROM votes JOIN most USING (query_id, n)
    GROUP BY votes.query_id HAVING count(*) = 1
)
SELECT count(*), count(*) FILTER (WHERE mine.choice = people.choice) FROM mine JOIN people USING (query_id)
"""


@dataclass(frozen=True, slots=True)
class MachineSheet:
    """One machine and its figures; `compared` are its questions on which people have a most frequent answer."""

    machine: MachineAnnotator
    endpoint: str
    most_requests: int | None
    compared: int
    agreeing: int

    @property
    def percent(self) -> float:
        """Share of the compared questions on which it says what most people say, in percent."""
        return 100 * self.agreeing / self.compared if self.compared else 0.0

    @property
    def percent_low(self) -> float:
        """Lower end of the 95 % interval."""
        return 100 * wilson_interval(self.agreeing, self.compared)[0]

    @property
    def percent_high(self) -> float:
        """Upper end of the 95 % interval."""
        return 100 * wilson_interval(self.agreeing, self.compared)[1]


def machine_sheet(project: Project) -> MachineSheet | None:
    """Return the sheet of a project's machine, None where none ever answered."""
    machine = MachineAnnotator.objects.select_related("user").filter(project=project).first()
    if machine is None:
        return None
    with connection.cursor() as cursor:
        cursor.execute(COMPARED, {"machine": machine.user_id, "project": project.pk})
        compared, agreeing = cursor.fetchone()
    is_on = bool(project.settings.get(Kind.MACHINE.key))
    return MachineSheet(
        machine=machine,
        endpoint=project.settings.get("machine_endpoint", "") if is_on else "",
        most_requests=project.settings.get("machine_requests") if is_on else None,
        compared=compared,
        agreeing=agreeing,
    )


def machine_users(project: Project) -> set[int]:
    """Return the ids of the accounts in a project that belong to machines."""
    return set(MachineAnnotator.objects.filter(project=project).values_list("user_id", flat=True))
