"""deploy/compose.yaml and its mounts match each other, the image and the settings."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.proof.deployment.names import SETTINGS

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
SERVICES = COMPOSE["services"]
GATEWAY = SERVICES["gateway"]
CADDY = shutil.which("caddy")


def mounts(service: dict) -> list[tuple[str, str]]:
    return [tuple(one.split(":")[:2]) for one in service.get("volumes", [])]


def test_prometheus_and_grafana_start_only_where_they_are_asked_for():
    asked_for = {name for name, one in SERVICES.items() if one.get("profiles") == ["metrics"]}
    assert asked_for == {"prometheus", "grafana"}
    assert set(SERVICES) - asked_for == {"gateway", "caddy"}


def test_strangers_reach_caddy_and_nothing_else():
    open_ports = {name: one["ports"] for name, one in SERVICES.items() if "ports" in one}
    assert set(open_ports) == {"caddy", "grafana"}
    assert all(port.startswith("127.0.0.1:") for port in open_ports["grafana"])
    assert COMPOSE["networks"]["inside"] == {"internal": True}
    assert SERVICES["prometheus"]["networks"] == ["inside"]


def test_every_container_has_the_rights_it_needs_and_no_more():
    for name, one in SERVICES.items():
        assert one["cap_drop"] == ["ALL"], name
        assert one["security_opt"] == ["no-new-privileges:true"], name
        assert "privileged" not in one, name
    assert GATEWAY["read_only"] is True
    # deploy/entrypoint.sh as root uses chown, chmod in another user's folder, and setpriv.
    assert GATEWAY["cap_add"] == ["CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID"]


def test_every_volume_that_is_mounted_is_named_or_a_file_that_is_here():
    for name, one in SERVICES.items():
        for source, target in mounts(one):
            assert target.startswith("/")
            if source.startswith("./"):
                assert (DEPLOY / source).is_file(), f"{name} mounts {source}"
            else:
                assert source in COMPOSE["volumes"]


def test_the_gateways_folder_is_where_the_image_has_it():
    image = (ROOT / "Dockerfile").read_text("utf-8")
    (folder,) = re.findall(r"GATEWAY_DATA_DIR=(\S+)", image)
    assert ("gateway-data", folder) in mounts(GATEWAY)
    assert GATEWAY["build"]["args"].keys() == {"BASE", "LOCK"}
    assert all(f"ARG {name}=" in image for name in GATEWAY["build"]["args"])


def test_it_waits_as_long_as_the_gateway_takes_to_stop():
    fly = (ROOT / "fly.toml").read_text("utf-8")
    (kill_timeout,) = re.findall(r"kill_timeout = (\d+)", fly)
    assert GATEWAY["stop_grace_period"] == f"{kill_timeout}s"


def test_every_setting_that_is_named_is_one_of_the_gateways():
    example = (DEPLOY / "gateway.env.example").read_text("utf-8")
    named = {*GATEWAY["environment"], *re.findall(r"^(GATEWAY_\w+)=", example, re.MULTILINE)}
    assert named <= SETTINGS


def test_no_value_of_the_example_is_changed_by_a_shell_or_by_compose():
    example = (DEPLOY / "gateway.env.example").read_text("utf-8")
    lines = [line for line in example.splitlines() if line and not line.startswith("#")]
    assert all(re.fullmatch(r"GATEWAY_\w+='[^']*'", line) for line in lines)


def test_prometheus_asks_the_gateway_and_reads_its_alerts():
    rules = yaml.safe_load((DEPLOY / "prometheus.yml").read_text("utf-8"))
    targets = {name for name, _ in mounts(SERVICES["prometheus"])}
    assert {f"./{name}" for name in rules["rule_files"]} <= targets
    (job,) = rules["scrape_configs"]
    assert (job["metrics_path"], job["static_configs"]) == (
        "/metrics",
        [{"targets": ["gateway:9091"]}],
    )


def test_grafana_finds_its_panels_and_prometheus():
    source = yaml.safe_load((DEPLOY / "grafana" / "datasource.yml").read_text("utf-8"))
    assert source["datasources"][0]["url"] == "http://prometheus:9090"
    panels = yaml.safe_load((DEPLOY / "grafana" / "dashboards.yml").read_text("utf-8"))
    (folder,) = [one["options"]["path"] for one in panels["providers"]]
    assert any(target.startswith(folder) for _, target in mounts(SERVICES["grafana"]))


def caddy(*words: str, **more: str) -> subprocess.CompletedProcess:
    settings = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}
    command = [CADDY, *words, "--config", DEPLOY / "Caddyfile", "--adapter", "caddyfile"]
    settings |= {"GATEWAY_DOMAIN": "gateway.example.com", **more}
    return subprocess.run(command, env=settings, capture_output=True, text=True, check=False)


@pytest.mark.skipif(CADDY is None, reason="needs caddy")
def test_caddy_passes_on_the_address_that_it_sees_itself():
    adapted = caddy("adapt")
    assert adapted.returncode == 0, adapted.stderr
    text = json.dumps(json.loads(adapted.stdout))
    assert '"dial": "gateway:8080"' in text
    header = GATEWAY["environment"]["GATEWAY_CLIENT_IP_HEADER"]
    assert f'"set": {{"{header.title()}": ["{{http.request.remote.host}}"]}}' in text


@pytest.mark.skipif(CADDY is None, reason="needs caddy")
def test_caddy_shares_the_requests_out_to_several_processes():
    adapted = caddy("adapt", GATEWAY_UPSTREAM="127.0.0.1:8081 127.0.0.1:8082")
    text = json.dumps(json.loads(adapted.stdout))
    assert '"upstreams": [{"dial": "127.0.0.1:8081"}, {"dial": "127.0.0.1:8082"}]' in text


def docker_has_compose() -> bool:
    if not shutil.which("docker"):
        return False
    asked = subprocess.run(["docker", "compose", "version"], capture_output=True, check=False)
    return asked.returncode == 0


@pytest.mark.skipif(not docker_has_compose(), reason="needs docker compose")
def test_compose_itself_takes_the_file(tmp_path):
    copy = shutil.copytree(DEPLOY, tmp_path / "deploy")
    shutil.copy(copy / "gateway.env.example", copy / "gateway.env")
    settings = os.environ | {"GATEWAY_DOMAIN": "gateway.example.com"}
    command = ["docker", "compose", "--profile", "metrics", "config", "--quiet"]
    subprocess.run(command, cwd=copy, env=settings, check=True)
