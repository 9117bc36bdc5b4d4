"""The gateway for tests of the client."""

from running_gateway import gateway, run_gateway  # noqa: F401
