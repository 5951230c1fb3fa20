"""Mistakes in a part, each one sentence."""

import pytest

from gateway import Discovery, EventReader, Mount, Part
from gateway.plugins.part_offers import covers, part_offer
from gateway.plugins.registration import find_taken

BLUEPRINT = "acme.routes:make"


def mount(path="/acme", **changes):
    return Mount(**({"paths": [path], "blueprint": BLUEPRINT} | changes))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"every_s": "60"}, "every_s '60' is no number of seconds"),
        ({"every_s": None}, "every_s None"),
        ({"every_s": -1}, "every_s -1"),
        ({"every_s": float("nan")}, "every_s nan"),
        ({"every_s": float("inf")}, "every_s inf"),
        ({"drain_s": 0}, "drain_s 0"),
        ({"warm_s": "5"}, "warm_s '5'"),
        ({"work": 5}, "work is a int"),
        ({"checks": [1]}, "checks is a list"),
        ({"pending": ["work"]}, "pending is a list"),
        ({"only_leader": 1}, "only_leader 1"),
        ({"mounts": 5}, "mounts is a int"),
        ({"mounts": ["/acme"]}, "a str is no gateway.Mount"),
        ({"mounts": [mount(paths=[])]}, "is no gateway.Mount with a path"),
        ({"mounts": [mount(blueprint="acme.routes")]}, "not written module:function"),
        ({"mounts": [mount(body_bytes="5")]}, "body_bytes '5'"),
        ({"mounts": [mount(limit=5)]}, "the limit 5"),
        ({"mounts": [mount(is_public=None)]}, "is_public None"),
        ({"mounts": [mount(paths=[5])]}, "the path 5 does not begin with /"),
        ({"mounts": [mount("/acme/<name>")]}, "'/acme/<name>' gets no request"),
        ({"mounts": [mount("/acme/{name}")]}, "gets no request"),
        ({"mounts": [mount("/acme?a=b")]}, "gets no request"),
        ({"mounts": [mount("/acme#a")]}, "gets no request"),
        ({"mounts": [mount("/ac%6de")]}, "gets no request"),
        ({"mounts": [mount("/acme/../x")]}, "gets no request"),
        ({"mounts": [mount("/acme//x")]}, "gets no request"),
        ({"mounts": [mount("//acme")]}, "gets no request"),
        ({"mounts": [mount("/acme/*/x")]}, "gets no request"),
        ({"mounts": [mount("/acme*")]}, "gets no request"),
        ({"mounts": [mount("/a b")]}, "gets no request"),
        ({"mounts": [mount("/acme/*"), mount("/acme/x")]}, "'/acme/*' comes first"),
        ({"mounts": [mount(paths=["/acme", "/acme"])]}, "'/acme' comes first"),
        ({"discovery": {}}, "discovery is a dict"),
        ({"discovery": Discovery(manifest={"a": 5})}, "discovery.manifest is no mapping"),
        ({"discovery": Discovery(guide=["/a"])}, "discovery.guide is no mapping"),
        ({"discovery": Discovery(guide={"/a": "b\nc"})}, "discovery.guide is no mapping"),
        ({"discovery": Discovery(pages="/a")}, "discovery.pages is no list"),
        ({"discovery": Discovery(pages=[None])}, "None is no path"),
        ({"discovery": Discovery(pages=["/<a>"])}, "'/<a>' is no path"),
        ({"discovery": Discovery(closed_paths=["/a\nAllow: /"])}, "is no path"),
        ({"discovery": Discovery(openapi=5)}, "5 is no path"),
        ({"discovery": Discovery(manifest={"generate": "/a"})}, "own entry 'generate'"),
        ({"events": 5}, "events is a int"),
        ({"events": EventReader(take=None)}, "no gateway.EventReader with a function"),
        ({"events": EventReader(take=print, types=["task.ended"])}, "events.types"),
        ({"events": EventReader(take=print, on_taken=5)}, "events.on_taken"),
        ({"callbacks": 5}, "its callbacks have no method check"),
    ],
)
def test_a_mistake_is_one_sentence(fields, message):
    with pytest.raises(ValueError, match="the part acme: ") as caught:
        part_offer((), Part(name="acme", **fields))
    assert message in str(caught.value)


@pytest.mark.parametrize("name", [5, None, "", "a\nb", "a" * 101, "wallet"])
def test_a_part_has_a_name_of_its_own(name):
    with pytest.raises(ValueError, match=r"part|name"):
        part_offer(("wallet",), Part(name=name))


@pytest.mark.parametrize(
    "path", ["/", "/acme", "/acme/", "/acme/*", "/acme/v1.2/a-b_c~d", "/café", "/acme/.hidden"]
)
def test_a_plain_path_is_fine(path):
    assert part_offer((), Part(name="acme", mounts=[mount(path)]))[0] == "acme"


@pytest.mark.parametrize(
    ("taken", "path", "is_dead"),
    [
        ("/admin/*", "/admin/acme", True),
        ("/admin/*", "/admin/acme/*", True),
        ("/admin/*", "/admin", True),
        ("/admin/*", "/admin/*", True),
        ("/admin/*", "/administration", False),
        ("/mcp", "/mcp", True),
        ("/mcp", "/mcp/acme", False),
        ("/mcp", "/mcp/*", False),
        ("/", "/acme", False),
    ],
)
def test_a_path_behind_another_mount_is_taken(taken, path, is_dead):
    assert covers(taken, path) is is_dead
    assert (find_taken(f"Path {path}", [f"Path {taken}"]) is not None) is is_dead
