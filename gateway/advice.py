"""What a person at the terminal can do when the gateway could not be reached, or did not let them in."""

from __future__ import annotations

import ssl

from gateway.keys import CLIENT_VARIABLE
from protocol.client_errors import SpeechError
from protocol.codes import ErrorCode


def with_advice(error: SpeechError) -> str:
    """The error in one line, and what would help, where that is known."""
    return f"{error.message} ({error.code}){_advice(error)}"


def _advice(error: SpeechError) -> str:
    if error.code == ErrorCode.UNAUTHORIZED:
        return f"; --api-key or ${CLIENT_VARIABLE} gives one"
    if isinstance(error.__cause__, ssl.SSLCertVerificationError):
        return "; $SSL_CERT_FILE names a file of certificates to trust"
    if isinstance(error.__cause__, OSError) and not isinstance(error.__cause__, (ssl.SSLError, TimeoutError)):
        return "; `audio8-gateway serve` starts one"
    return ""
