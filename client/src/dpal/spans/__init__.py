"""Typed spans of a text: positions, token tags and the files that hold them."""
