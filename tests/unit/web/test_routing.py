"""A path's route and its variable part, wherever the rule has it; Quart finds the same."""

import pytest
from quart import Quart

from gateway.web.front.routing import Route, RouteTable

RULES = [
    "/api/task/<task_id>",
    "/api/task/<task_id>/result",
    "/api/x402/<slug>",
    "/<slug>/price",
    "/api/health",
]


async def answer(gateway, asked):
    raise NotImplementedError


TABLE = RouteTable([Route(method="GET", rule=rule, answer=answer) for rule in RULES])
APP = Quart(__name__)
for rule in RULES:
    APP.add_url_rule(rule, rule, answer)


@pytest.mark.parametrize(
    ("path", "rule", "part"),
    [
        ("/api/health", "/api/health", ""),
        ("/api/task/a", "/api/task/<task_id>", "a"),
        ("/api/task/a/result", "/api/task/<task_id>/result", "a"),
        ("/api/task/result", "/api/task/<task_id>", "result"),
        ("/picture/price", "/<slug>/price", "picture"),
        ("/api/x402/price", "/api/x402/<slug>", "price"),
        ("/api/task//result", None, ""),
        ("/api/task/a/b/result", None, ""),
        ("/api/task/a/results", None, ""),
        ("/api/task/", None, ""),
        ("//price", None, ""),
        ("/price", None, ""),
        ("/api/task/result/", None, ""),
    ],
)
def test_a_variable_is_one_segment_anywhere_in_a_rule(path, rule, part):
    found = TABLE.find("GET", path)
    assert (found and (found[0].rule, found[1])) == (rule and (rule, part))
    assert TABLE.find("POST", path) is None
    adapter = APP.url_map.bind("gateway.test")
    if rule is not None:
        matched, parts = adapter.match(path, "GET")
        assert (matched, "".join(parts.values())) == (rule, part)
