"""From the model's samples to the bytes of the wire."""
