"""The gateway that the tests run against."""

from running_gateway import gateway, run_gateway  # noqa: F401
