"""deploy/nodes and deploy/fly: several nodes, matching each other, the image and the settings."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.proof.deployment.names import SETTINGS

ROOT = Path(__file__).parents[3]
NODES = ROOT / "deploy" / "nodes"
COMPOSE = yaml.safe_load((NODES / "compose.yaml").read_text("utf-8"))
SERVICES = COMPOSE["services"]
ONE = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text("utf-8"))["services"]["gateway"]
GATEWAYS = {name: one for name, one in SERVICES.items() if name.startswith("gateway-")}
GARAGE = tomllib.loads((NODES / "garage.toml").read_text("utf-8"))
FLY = tomllib.loads((ROOT / "deploy" / "fly" / "fly.toml").read_text("utf-8"))
FLY_ONE = tomllib.loads((ROOT / "fly.toml").read_text("utf-8"))
# Variables that a shell, compose or a person fills in.
ASKED = re.compile(r"\$\{([A-Z_]+)(?::[?-][^}]*)?\}")


def mounts(service: dict) -> list[tuple[str, str]]:
    return [tuple(one.split(":")[:2]) for one in service.get("volumes", [])]


def settings_of(service: dict) -> dict[str, str]:
    return service["environment"]


def test_every_node_is_the_same_but_for_its_name():
    assert len(GATEWAYS) == 3
    alike = []
    for name, one in GATEWAYS.items():
        assert settings_of(one)["GATEWAY_NODE"] == name
        alike.append({k: v for k, v in settings_of(one).items() if k != "GATEWAY_NODE"})
        assert {**one, "environment": None, "build": None} == {
            **GATEWAYS["gateway-1"],
            "environment": None,
            "build": None,
        }
    assert alike[0] == alike[1] == alike[2]


def test_a_node_is_run_as_the_one_of_the_other_file_is():
    for name in ("read_only", "cap_add", "cap_drop", "security_opt", "healthcheck", "pids_limit"):
        assert GATEWAYS["gateway-1"][name] == ONE[name], name
    assert GATEWAYS["gateway-1"]["stop_grace_period"] == ONE["stop_grace_period"]
    assert GATEWAYS["gateway-1"]["build"]["args"] == ONE["build"]["args"]


def test_every_setting_that_is_named_is_one_of_the_gateways():
    named = {*settings_of(GATEWAYS["gateway-1"]), *FLY["env"]}
    named |= set(re.findall(r"\bGATEWAY_[A-Z_]+", (NODES.parent / "fly/README.md").read_text()))
    assert named - SETTINGS == set()


def test_each_address_is_that_of_a_service():
    settings = settings_of(GATEWAYS["gateway-1"])
    (database,) = re.findall(r"@(\w+):5432/(\w+)", settings["GATEWAY_DATABASE_URL"])
    assert database[0] in SERVICES
    assert SERVICES[database[0]]["environment"]["POSTGRES_DB"] == database[1]
    (redis,) = re.findall(r"redis://(\w+):6379", settings["GATEWAY_LIMITS_URL"])
    assert redis in SERVICES
    assert set(GATEWAYS["gateway-1"]["depends_on"]) == {"postgres", "redis", "bucket"}
    for name in GATEWAYS["gateway-1"]["depends_on"]:
        assert "healthcheck" in SERVICES[name], name


def test_the_bucket_is_the_one_that_garage_makes_and_its_address_is_public():
    settings, garage = settings_of(GATEWAYS["gateway-1"]), SERVICES["bucket"]["environment"]
    assert settings["GATEWAY_OUTPUTS_URL"] == f"s3://{garage['GARAGE_DEFAULT_BUCKET']}"
    assert settings["GATEWAY_OUTPUTS_REGION"] == GARAGE["s3_api"]["s3_region"]
    for theirs, ours in (
        ("GARAGE_DEFAULT_ACCESS_KEY", "GATEWAY_OUTPUTS_ACCESS_KEY_ID"),
        ("GARAGE_DEFAULT_SECRET_KEY", "GATEWAY_OUTPUTS_SECRET_ACCESS_KEY"),
    ):
        assert ASKED.findall(garage[theirs]) == ASKED.findall(settings[ours])
    port = GARAGE["s3_api"]["api_bind_addr"].rpartition(":")[2]
    assert f"bucket:{port}" in (NODES / "Caddyfile").read_text("utf-8")
    assert "FILES_DOMAIN" in settings["GATEWAY_OUTPUTS_ENDPOINT"]
    # A node uses the public name as well, and reaches Caddy.
    assert any("FILES_DOMAIN" in one for one in SERVICES["caddy"]["networks"]["front"]["aliases"])
    folders = {target for _, target in mounts(SERVICES["bucket"])}
    assert {GARAGE["metadata_dir"], GARAGE["data_dir"]} <= folders


def test_caddy_asks_every_node_and_keeps_away_from_one_that_is_down():
    text = (NODES / "Caddyfile").read_text("utf-8")
    assert all(f"{name}:8080" in text for name in GATEWAYS)
    assert "health_uri /api/health" in text
    header = settings_of(GATEWAYS["gateway-1"])["GATEWAY_CLIENT_IP_HEADER"]
    assert f"header_up {header} {{remote_host}}" in text


def test_strangers_reach_caddy_and_nothing_else():
    assert [name for name, one in SERVICES.items() if "ports" in one] == ["caddy"]
    assert COMPOSE["networks"]["inside"] == {"internal": True}
    for name in ("postgres", "redis", "bucket"):
        assert SERVICES[name]["networks"] == ["inside"], name


def test_every_container_has_no_rights_but_those_it_needs():
    for name, one in SERVICES.items():
        assert one["cap_drop"] == ["ALL"], name
        assert one["security_opt"] == ["no-new-privileges:true"], name


def test_every_image_has_a_version():
    for name, one in SERVICES.items():
        if not name.startswith("gateway-"):
            assert re.fullmatch(r"[a-z./]+:v?\d[\d.]*", one["image"]), name


def test_every_volume_that_is_mounted_is_named_or_a_file_that_is_here():
    used = set()
    for name, one in SERVICES.items():
        for source, _ in mounts(one):
            assert source in COMPOSE["volumes"] or (NODES / source).is_file(), (name, source)
            used.add(source)
    assert set(COMPOSE["volumes"]) <= used


def test_the_example_names_everything_that_must_be_set():
    example = (NODES / "nodes.env.example").read_text("utf-8")
    named = set(re.findall(r"^([A-Z_]+)=", example, re.MULTILINE))
    text = (NODES / "compose.yaml").read_text("utf-8")
    must = {name for name, rest in re.findall(r"\$\{([A-Z_]+)(:\?)", text) if rest}
    assert named == must


# -- Fly


def test_fly_has_three_machines_without_a_volume():
    assert FLY["http_service"]["min_machines_running"] == 3
    assert "mounts" not in FLY
    assert FLY["http_service"]["auto_stop_machines"] == "off"


@pytest.mark.parametrize("name", ["app", "primary_region", "kill_signal", "kill_timeout", "vm"])
def test_fly_is_as_with_one_machine_otherwise(name):
    assert FLY[name] == FLY_ONE[name]


def test_flys_proxy_is_told_the_same():
    assert {**FLY["http_service"], "min_machines_running": 1} == FLY_ONE["http_service"]
    assert FLY_ONE["env"].items() <= FLY["env"].items()
