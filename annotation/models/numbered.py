"""Base class of rows that are called by their number."""

from django.db import models


class NumberedModel(models.Model):
    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self._meta.verbose_name} {self.pk}"
