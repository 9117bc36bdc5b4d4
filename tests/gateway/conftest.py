"""The gateway that the tests run against, over a scripted engine or over the real one."""

from embedded import embedded, offline  # noqa: F401
from real_engine import directory, engine  # noqa: F401
from running_gateway import gateway, run_gateway  # noqa: F401
