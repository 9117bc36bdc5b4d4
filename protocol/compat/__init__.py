"""The protocols of other servers, so that their clients need no change: dialects without clock, loop or socket."""
