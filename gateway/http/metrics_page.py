"""`GET /metrics`, and the count of what is refused over HTTP."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aiohttp import web
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4

from gateway.http.gatekeeper import Gatekeeper
from gateway.http.refusals import ERROR_CODE, refusal
from gateway.metrics import ServerMetrics

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def add_metrics(app: web.Application, metrics: ServerMetrics, gatekeeper: Gatekeeper) -> None:
    """Serve them to whoever may also speak."""

    async def page(request: web.Request) -> web.Response:
        denied = gatekeeper.denial(request)
        if denied is not None:
            return refusal(denied)
        headers = {"Content-Type": CONTENT_TYPE_PLAIN_0_0_4, "Cache-Control": "no-store"}
        return web.Response(body=metrics.exposition(), headers=headers)

    app.router.add_get("/metrics", page)
    app.cleanup_ctx.append(metrics.watch_loop)


def counts_refusals(metrics: ServerMetrics) -> Callable[[web.Request, Handler], Awaitable[web.StreamResponse]]:
    """A middleware that has to be outside of all that refuse."""

    @web.middleware
    async def count(request: web.Request, handler: Handler) -> web.StreamResponse:
        response = await handler(request)
        code = response.get(ERROR_CODE)
        if code is not None:
            metrics.error(code)
        return response

    return count
