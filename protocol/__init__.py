"""The native wire protocol: messages, framing and the session state machine, without clock, loop or socket."""
