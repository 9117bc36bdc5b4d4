"""What `/metrics` says, for tests."""

from __future__ import annotations

from aiohttp import ClientSession
from prometheus_client.parser import text_string_to_metric_families

Series = dict[str, dict[str, float]]


def read(text: str) -> Series:
    """From sample name to value by label; "" where there is none, buckets by their bound."""
    series: Series = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            series.setdefault(sample.name, {})[",".join(sample.labels.values())] = sample.value
    return series


async def scrape(port: int) -> Series:
    """Ask a gateway."""
    async with ClientSession() as http, http.get(f"http://127.0.0.1:{port}/metrics") as answer:
        assert answer.status == 200 and answer.content_type == "text/plain"
        return read(await answer.text())
