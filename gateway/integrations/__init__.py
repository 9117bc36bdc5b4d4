"""Adapters for the frameworks that speak through a gateway; each needs its framework, and nothing else imports them."""
