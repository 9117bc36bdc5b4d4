"""One connection: what its contexts say, when, and how they end."""
