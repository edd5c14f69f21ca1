"""Files of labels that a worker writes for managers, and what is known of each while it is kept."""

from django.db import models
from django.db.models import Q
from django.utils import timezone

from annotation.models.jobs import Job
from annotation.models.kinds import ProjectState
from annotation.models.numbered import NumberedModel
from annotation.models.projects import Project


class Export(NumberedModel):
    project = models.ForeignKey(Project, models.CASCADE, related_name="exports")
    job = models.OneToOneField(Job, models.CASCADE, related_name="export")
    format = models.CharField(max_length=20, help_text="How the file is written.")
    history = models.BooleanField(default=False, help_text="Whether answers that were changed are in it, too.")
    file = models.CharField(max_length=120, blank=True)
    sha256 = models.CharField(max_length=64, blank=True)
    size = models.BigIntegerField(null=True, blank=True, help_text="Bytes of the file.")
    expires_at = models.DateTimeField(null=True, blank=True, help_text="When the file is removed.")
    is_void = models.BooleanField(default=False, help_text="Records were erased since; the file is withheld.")

    class Meta:
        constraints = (
            models.CheckConstraint(
                name="annotation_export_file",
                condition=Q(file="", sha256="", size=None)
                | ~Q(file="") & ~Q(sha256="") & Q(size__isnull=False, expires_at__isnull=False),
            ),
        )

    @property
    def may_be_read(self) -> bool:
        sound = bool(self.file) and not self.is_void and self.project.state != ProjectState.DELETED
        return sound and self.expires_at is not None and self.expires_at > timezone.now()
