"""The version of what crosses the control link: a module of its own, so that every family of structs can name it."""

SCHEMA = 1
"""Rises when a field changes its meaning or goes away, not when one is added."""
