"""Populations: people whose records lie in several projects, the limit they share, and who decides about it."""
