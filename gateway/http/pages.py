"""The page, and what monitors ask for: `/`, `/web/…`, `/healthz`, `/readyz`."""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path

import orjson
from aiohttp import web

from gateway.admission import Admission
from gateway.engine.engine import Engine
from gateway.voices.voices import Voices

_CONTENT_TYPES = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
}
_TEXT_TYPES = ("text/html", "text/javascript", "text/css")


def add_pages(app: web.Application, root: Path) -> None:
    """Serve the files below `root`: the types are ours, not the machine's, and nothing is cached.

    Pages of any other origin may load what is below `/web/`: browsers import a module from elsewhere only with leave,
    and these files are the same for everyone.  Whether such a page may speak is decided when it connects.
    """

    async def index(_: web.Request) -> web.StreamResponse:
        return _file(root / "index.html")

    async def other(request: web.Request) -> web.StreamResponse:
        try:
            path = (root / request.match_info["path"]).resolve()
            found = path.is_relative_to(root.resolve()) and path.is_file() and path.suffix in _CONTENT_TYPES
        except (OSError, ValueError):  # no name that a file could have: too long, or with a null in it
            found = False
        if not found:
            raise web.HTTPNotFound
        response = _file(path)
        response.headers["Access-Control-Allow-Origin"] = "*"
        return response

    app.router.add_get("/", index)
    app.router.add_get("/web/{path:.+}", other)


def add_health(app: web.Application, engine: Engine, admission: Admission, voices: Voices) -> None:
    """`/healthz`: the process answers; `/readyz`: at least one replica can speak, and on which devices."""

    async def healthz(_: web.Request) -> web.Response:
        return json_answer(HTTPStatus.OK, {"status": "ok"})

    async def readyz(_: web.Request) -> web.Response:
        if admission.is_over:
            return json_answer(HTTPStatus.SERVICE_UNAVAILABLE, {"status": "shutting_down"})
        if not engine.ready:
            return json_answer(HTTPStatus.SERVICE_UNAVAILABLE, {"status": "starting", "replicas": _replicas(engine)})
        return json_answer(
            HTTPStatus.OK,
            {
                "status": "ready",
                "model": engine.info.name,
                "voices": list(voices),
                "replicas": _replicas(engine),
            },
        )

    app.router.add_get("/healthz", healthz)
    app.router.add_get("/readyz", readyz)


def _replicas(engine: Engine) -> list[dict[str, object]]:
    """Of each replica whether it can speak, its stages that are up, and how often they were started anew."""
    return [
        {
            "ready": state.ready,
            "restarts": state.restarts,
            "stages": [{"stage_id": stage, "device": device} for stage, device in sorted(state.devices.items())],
        }
        for state in engine.states
    ]


def _file(path: Path) -> web.FileResponse:
    response = web.FileResponse(path)
    response.content_type = _CONTENT_TYPES[path.suffix]
    if response.content_type in _TEXT_TYPES:
        response.charset = "utf-8"
    response.headers["Cache-Control"] = "no-cache"
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response


def json_answer(status: HTTPStatus, value: object) -> web.Response:
    """Of this moment: nobody keeps it."""
    headers = {"Cache-Control": "no-store"}
    return web.Response(status=status, body=orjson.dumps(value), content_type="application/json", headers=headers)
