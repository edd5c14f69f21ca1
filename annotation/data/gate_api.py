"""The REST route that sends an upload through the gate again after an attempt that failed."""

from typing import Any

from django.http import HttpRequest
from django.shortcuts import get_object_or_404

from annotation.budget import charges
from annotation.data import selectors
from annotation.data.api import DatasetOut
from annotation.errors import UploadRefused
from annotation.gates.services import runs
from annotation.models import Role
from annotation.people.identity import person_of
from annotation.work.rest import MostIn, RoomRouter, project_for
from annotation.work.services.tokens import Scope
from privacy.wording import as_message

router = RoomRouter()


@router.write(
    "projects/{slug:slug}/datasets/{int:dataset_id}/gate",
    response={202: DatasetOut},
    summary="Send an upload through the gate again; it draws and pays anew",
)
def start_gate(request: HttpRequest, slug: str, dataset_id: int, body: MostIn) -> Any:
    project = project_for(request, slug, Scope.DATASETS_WRITE, Role.MANAGER)
    found = get_object_or_404(selectors.uploads_of(project), pk=dataset_id)
    charges.refuse_dearer(charges.upload_charge(project, found.role, found), body.most_epsilon)
    if runs.start_gate(dataset=found, owner=person_of(request)) is None:
        raise UploadRefused(as_message("This upload has gone through the gate, or is in it."))
    return get_object_or_404(selectors.uploads_of(project), pk=dataset_id)
