"""Forecast of what passes a crowd's gate, from a file not stored yet; as private as the file, and kept nowhere."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.core.files import File

from annotation.budget import charges
from annotation.choices.gates import gate_from
from annotation.choices.policies import labels_of_first_model
from annotation.data.services import mappings, pool_files, uploads
from annotation.data.services.pseudonyms import site_pseudonyms
from annotation.errors import FewWouldPass
from annotation.models import Project, Query
from privacy.gate import columns
from privacy.gate.forecast import GateForecast, PassingTexts

# Of a longer file the first rows are counted, until enough texts pass.
MOST_ROWS = 200_000
FIRST_LOOK_ROWS = 25_000


@dataclass(frozen=True, slots=True)
class UploadForecast:
    """Texts of a file that would pass, of the rows that were counted, and how many the first model still needs."""

    passing: PassingTexts
    needed: int
    rows: int
    is_whole: bool

    @property
    def is_too_little(self) -> bool:
        return self.passing.expected < self.needed


def forecast_upload(
    *, project: Project, file: "File[bytes]", name: str, role: str, mapping: Mapping[str, Any]
) -> UploadForecast | None:
    """Count a file as the gate would; None where reading it is not followed by a charge."""
    charge = charges.upload_charge(project, role)
    if charge is None or not (charge.epsilon or charge.delta):
        return None
    passed = Query.objects.filter(project=project, gate_run__isnull=False).count()
    needed = max(0, labels_of_first_model(project.settings) - passed)
    layout = mappings.layout_of(project, role, mapping)
    file.seek(0)
    upload = uploads.open_upload(file, name, layout)
    counted = GateForecast(gate_from(project.settings), uploads=project.gate_window or 1)
    pseudonyms = site_pseudonyms()
    rows, look_at = 0, FIRST_LOOK_ROWS
    for batch in upload.batches():
        assert batch.texts is not None
        people = pool_files.people_of(batch.contributors, pseudonyms)
        for part in columns.pool_rows(batch.texts, people).to_batches():
            counted.add(part)
        rows += len(batch.texts)
        if rows >= look_at:
            passing, look_at = counted.passing(), min(2 * look_at, MOST_ROWS)
            if rows >= MOST_ROWS or passing.low >= max(needed, 1):
                return UploadForecast(passing, needed, rows, is_whole=False)
    return UploadForecast(counted.passing(), needed, rows, is_whole=True)


def refuse_few(found: UploadForecast | None) -> None:
    if found is not None and found.is_too_little:
        passing = found.passing
        raise FewWouldPass(passing.expected, passing.low, passing.high, needed=found.needed)
