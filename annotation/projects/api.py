"""REST routes of projects: choices, configurations, states, kinds, and a project that asks at random beside another."""

from datetime import datetime
from typing import Any, Literal

from django.http import HttpRequest, HttpResponse
from ninja import Field, Query, Schema
from ninja.errors import HttpError

from annotation.budget.history import changes_in
from annotation.budget.population_sheets import managed_population
from annotation.choices import services
from annotation.choices.catalogue import CATALOGUE, declaration_of
from annotation.choices.classes import LONGEST_GROUP, FurtherClass
from annotation.choices.presets import LONGEST_CLASS, PRESETS
from annotation.choices.services import frozen_settings
from annotation.data.forms import LONGEST_DAYS
from annotation.data.services import retention
from annotation.errors import InvalidConfiguration
from annotation.models import Project, Role
from annotation.models.retention import FEWEST_ACTION_DAYS, FEWEST_DAYS
from annotation.people.identity import note_about, person_of
from annotation.projects.forms.configuration import (
    checked_form,
    file_of,
    read_file,
)
from annotation.projects.forms.settings import SettingsForm
from annotation.projects.services import classes, configuring, opening
from annotation.work.reads import Answer, Reads
from annotation.work.rest import (
    Page,
    ProjectOut,
    RoomRouter,
    checked,
    page_of,
    project_for,
    require_scope,
)
from annotation.work.rest import router as projects_router
from annotation.work.services.tokens import Scope
from privacy.accounting.events import MOST_RECORDS_PER_PERSON
from privacy.choices import Kind, missing_for
from privacy.wording import as_message, in_english, joined_rules

router = RoomRouter()


class ChoiceOut(Answer, reads=Reads.SITE):
    """Something a project may choose: where it has a proof, and the JSON schema of its part of the configuration."""

    kind: str
    section: str
    name: str
    label: str
    help: str
    oracles: list[str]
    arrivals: list[str]
    data_kinds: list[str]
    missing: str = Field(description="What this site lacks for it; empty where nothing is lacking.")
    parameters: dict[str, Any]


class ConfigurationOut(Answer, reads=Reads.MANAGED):
    """Choices of a project by section; `fixed` says which settings stay by now, and why."""

    version: int
    digest: str
    document: dict[str, dict[str, Any]]
    fixed: dict[str, str]


class SettingsIn(Schema):
    """Settings to change by their names; the others stay."""

    settings: dict[str, Any] = Field(max_length=200)


@router.get("choices", response=list[ChoiceOut], summary="What projects may choose, with parameters and proofs")
def list_choices(request: HttpRequest, kind: Query[Kind | None] = None) -> Any:
    require_scope(request, Scope.PROJECTS_READ)
    found = CATALOGUE.all() if kind is None else CATALOGUE.of_kind(kind)
    return [
        {
            "kind": choice.kind.value,
            "section": choice.kind.section,
            "name": choice.name,
            "label": choice.label,
            "help": choice.help,
            "oracles": sorted(choice.sound.oracles),
            "arrivals": sorted(choice.sound.arrivals),
            "data_kinds": sorted(choice.sound.data_kinds),
            "missing": missing_for(choice),
            "parameters": choice.json_schema(),
        }
        for choice in found
    ]


@router.get("projects/{slug:slug}/configuration", response=ConfigurationOut, summary="What a project chose")
def get_configuration(request: HttpRequest, slug: str) -> Any:
    return configuration_out(project_for(request, slug, Scope.PROJECTS_READ, Role.MANAGER))


@router.write(
    "projects/{slug:slug}/configuration",
    response=ConfigurationOut,
    summary="Choose anew, as far as nothing that was paid for rests on it",
    method="PATCH",
)
def change_configuration(request: HttpRequest, slug: str, body: SettingsIn) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER)
    broken = {name: rule for name, value in body.settings.items() if (rule := _broken(name, value))}
    if broken:
        raise InvalidConfiguration(joined_rules(broken))
    stored = configuring.configure_project(project=project, changes=body.settings, actor=person_of(request))
    return configuration_out(stored)


class ClassIn(Schema):
    """A class for a project that people work in; it comes behind all others."""

    name: str = Field(max_length=LONGEST_CLASS)
    words: list[str] = Field([], max_length=100, description="Sentences or example phrases of what belongs to it.")
    group: str = Field("", max_length=LONGEST_GROUP, description="Heading it stands under.")
    colour: str = Field("", max_length=20, description="One of the ten names of colours.")
    known_beforehand: bool = Field(
        False, description="Whether it is known without the records; names of classes are public, so it must be."
    )


@router.write(
    "projects/{slug:slug}/configuration/classes", response={201: ProjectOut}, summary="Add a class while people work"
)
def add_class(request: HttpRequest, slug: str, body: ClassIn) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER)
    further = FurtherClass(body.name.strip(), tuple(body.words), body.group.strip(), body.colour)
    return classes.add_class(
        project=project, further=further, known_beforehand=body.known_beforehand, actor=person_of(request)
    )


class RenameIn(Schema):
    """Another name of a class."""

    name: str = Field(max_length=LONGEST_CLASS)
    to: str = Field(max_length=LONGEST_CLASS)
    known_beforehand: bool = Field(
        False, description="Whether it is known without the records; names of classes are public, so it must be."
    )


@router.write("projects/{slug:slug}/configuration/classes/renames", response=ProjectOut, summary="Rename a class")
def rename_class(request: HttpRequest, slug: str, body: RenameIn) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER)
    return classes.rename_class(project=project, **body.dict(), actor=person_of(request))


class MergeIn(Schema):
    """A class that counts as another one from now on."""

    name: str = Field(max_length=LONGEST_CLASS)
    into: str = Field(max_length=LONGEST_CLASS, description="The class it counts as.")
    known_beforehand: bool = Field(
        False, description="Whether it was decided without looking at records and answers; it must be."
    )


class MergedIn(Schema):
    """A class that counts as itself again."""

    name: str = Field(max_length=LONGEST_CLASS)


@router.write(
    "projects/{slug:slug}/configuration/classes/merges",
    response={201: ProjectOut},
    summary="Let a class count as another one",
)
def merge_class(request: HttpRequest, slug: str, body: MergeIn) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER)
    return classes.merge_class(project=project, name=body.name, into=body.into, known_beforehand=body.known_beforehand)


@router.write(
    "projects/{slug:slug}/configuration/classes/merges/back",
    response=ProjectOut,
    summary="Take a merge back that no training has learned under",
)
def take_back_merge(request: HttpRequest, slug: str, body: MergedIn) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER)
    return classes.take_back_merge(project=project, name=body.name)


class ConfigurationFileIO(Answer, reads=Reads.MANAGED):
    """A configuration as a file: what opens a project like another one, here or on another site."""

    format: str = Field(description='Always "dpal-configuration".')
    format_version: int
    preset: str = Field(json_schema_extra={"enum": list(PRESETS)})
    settings: dict[str, Any] = Field(max_length=200)


class ProjectIn(ConfigurationFileIO):
    """A project to open; with a population it is one of its projects from the start, or is not opened."""

    population: str | None = Field(None, max_length=60, description="One the token's person manages; none without.")
    records_per_person: int | None = Field(
        None,
        ge=1,
        le=MOST_RECORDS_PER_PERSON,
        description="How many records of one person it holds at most; needed where the unit is one record.",
    )


class ChangedSettingOut(Answer, reads=Reads.MANAGED):
    """A setting by its name, with its values before and after a change."""

    setting: str
    before: Any
    after: Any


class ConfigurationChangeOut(Answer, reads=Reads.MANAGED):
    """A change of what a project chose; what it was opened with is version 1."""

    version: int = Field(description="The one that this change made.")
    when: datetime
    who: str = Field(description="Empty where no person did it.")
    settings: list[ChangedSettingOut]


@router.get(
    "projects/{slug:slug}/configuration/file",
    response=ConfigurationFileIO,
    summary="A project's configuration as a file",
)
def get_configuration_file(request: HttpRequest, slug: str) -> Any:
    return file_of(project_for(request, slug, Scope.PROJECTS_READ, Role.MANAGER))


@router.pages(
    "projects/{slug:slug}/configuration/changes",
    response=list[ConfigurationChangeOut],
    summary="What changed in a project's configuration, and who changed it, newest first",
)
def list_configuration_changes(request: HttpRequest, response: HttpResponse, slug: str, page: Query[Page]) -> Any:
    found = changes_in(project_for(request, slug, Scope.PROJECTS_READ, Role.MANAGER))
    return [
        {
            "version": change.version,
            "when": change.created_at,
            "who": change.actor,
            "settings": [
                {"setting": name, "before": before, "after": after}
                for name, (before, after) in sorted(change.fields.items())
            ],
        }
        for change in page_of(found, page, request=request, response=response)
    ]


@projects_router.write(
    "projects", response={201: ProjectOut}, summary="Open a project from a configuration file", problems=(403, 404, 409)
)
def open_project(request: HttpRequest, body: ProjectIn) -> Any:
    require_scope(request, Scope.PROJECTS_WRITE)
    if not request.user.has_perm("annotation.add_project"):
        raise HttpError(403, "Your account may not open projects.")
    sent = body.dict()
    slug, number = sent.pop("population"), sent.pop("records_per_person")
    file = read_file(sent)
    values = checked_form(file).project_values()
    if slug is not None:
        found = managed_population(request.user, slug)
        values |= {"population": found, "records_per_person": number}
    project = opening.create_project(preset=file.preset.key, owner=person_of(request), **values)
    note_about(request, project.pk)
    return project


def _broken(name: str, value: Any) -> str:
    """Return the rule that a value breaks before the project is looked at: what is declared, in its type and range."""
    known = declaration_of(name)
    if known is not None:
        return known.broken(value) if known.type not in (int, float) else known.mistyped(value)
    kind = CATALOGUE.kind_of(name)
    if kind is None:
        return as_message("This site has no such setting.")
    return "" if isinstance(value, str) else in_english("Must be the name of a choice.")


def configuration_out(project: Project) -> dict[str, Any]:
    document = services.document_of(project.settings)
    return {
        "version": project.changes.count() + 1,
        "digest": services.document_digest(document),
        "document": document,
        "fixed": frozen_settings(project),
    }


class DescriptionOut(Answer, reads=Reads.MANAGED):
    """Name, question and time limit of a project."""

    name: str
    question: str
    lease_seconds: int


class DescriptionIn(Schema):
    """The same, as far as it changes: what is left out stays."""

    name: str | None = Field(None, max_length=120)
    question: str | None = Field(None, max_length=200)
    lease_seconds: int | None = None


class StateIn(Schema):
    """State of a project; while it is paused no questions are handed out and no rounds begin."""

    state: Literal["active", "paused"]


class KeptOut(Answer, reads=Reads.MANAGED):
    """One kind of thing: how long it is kept, how many of it go within the hour, and when the next would."""

    kind: str
    days: int | None = Field(description="Null where it is kept until the project is deleted.")
    overdue: int = Field(alias="now")
    next_at: datetime | None = Field(alias="following")


class RetentionIn(Schema):
    """Days for each kind of thing; null keeps it until the project is deleted, what is left out stays."""

    records_days: int | None = Field(None, ge=FEWEST_DAYS, le=LONGEST_DAYS)
    answers_days: int | None = Field(None, ge=FEWEST_DAYS, le=LONGEST_DAYS)
    comments_days: int | None = Field(None, ge=FEWEST_DAYS, le=LONGEST_DAYS)
    uploads_days: int | None = Field(None, ge=FEWEST_DAYS, le=LONGEST_DAYS)
    actions_days: int | None = Field(None, ge=FEWEST_ACTION_DAYS, le=LONGEST_DAYS)


@router.get("projects/{slug:slug}/description", response=DescriptionOut, summary="What a project is called and asks")
def get_description(request: HttpRequest, slug: str) -> Any:
    return project_for(request, slug, Scope.PROJECTS_READ, Role.MANAGER)


@router.write(
    "projects/{slug:slug}/description",
    response=DescriptionOut,
    summary="Change what touches no guarantee: name, question, time for one",
    method="PATCH",
)
def change_description(request: HttpRequest, slug: str, body: DescriptionIn) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER)
    standing = {name: getattr(project, name) for name in SettingsForm.base_fields}
    form = SettingsForm(standing | body.dict(exclude_none=True), project=project)
    return opening.set_description(project=project, actor=person_of(request), **checked(form))


@router.write("projects/{slug:slug}/state", response=ProjectOut, summary="Pause a project, or let it go on")
def set_project_state(request: HttpRequest, slug: str, body: StateIn) -> Any:
    change = opening.pause_project if body.state == "paused" else opening.resume_project
    return change(project=project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER))


@router.get(
    "projects/{slug:slug}/retention", response=list[KeptOut], summary="How long things are kept, and what goes when"
)
def list_retention(request: HttpRequest, slug: str) -> Any:
    return retention.what_is_due(project_for(request, slug, Scope.PROJECTS_READ, Role.MANAGER))


@router.write(
    "projects/{slug:slug}/retention",
    response=list[KeptOut],
    summary="Change how long things are kept; what is over its period goes within the hour",
    method="PATCH",
)
def change_retention(request: HttpRequest, slug: str, body: RetentionIn) -> Any:
    project = project_for(request, slug, Scope.PROJECTS_WRITE, Role.MANAGER)
    actor = person_of(request).get_username()
    retention.set_retention(project=project, actor=actor, **body.dict(exclude_unset=True))
    return retention.what_is_due(project)
