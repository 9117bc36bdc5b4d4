"""The stages as seen from the gateway: processes that are started, fed, watched and replaced."""
