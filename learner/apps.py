"""Application configuration."""

from django.apps import AppConfig


class LearnerConfig(AppConfig):
    """Application configuration of `learner`."""

    name = "learner"
