"""The HTTP side: from a request to a running session, an answer or a refusal."""
