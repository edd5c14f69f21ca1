"""What most rows are called by."""

from django.db import models


class NumberedModel(models.Model):
    """A row that is called by what it is and its number."""

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self._meta.verbose_name} {self.pk}"
