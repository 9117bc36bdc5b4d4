"""Fixtures: a gateway over a scripted engine."""

from running_gateway import gateway, run_gateway  # noqa: F401
