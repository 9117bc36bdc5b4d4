"""The APIs of other servers, so that their clients need no change."""
