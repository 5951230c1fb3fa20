"""Caddy, nginx and HAProxy with the configurations of `deploy/`, on free ports.

Only addresses, ports and certificate paths are replaced.
"""

from __future__ import annotations

import http.client
import json
import os
import pwd
import re
import shutil
import signal
import ssl
import subprocess
import tempfile
from pathlib import Path
from typing import Self

import attrs

from tests.proof.process.gateway_process import PATIENCE_S, ROOT, free_port, until

DEPLOY = ROOT / "deploy"
FILES = {"caddy": "Caddyfile", "nginx": "nginx.conf", "haproxy": "haproxy.cfg"}
NAMES = list(FILES)
_UPSTREAM = "127.0.0.1:8080"
# The rest of Debian's nginx.conf, with paths that an ordinary user may write.
_NGINX = """
daemon off;
pid {folder}/nginx.pid;
error_log stderr;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    {block}
}}
"""
# Caddy's global options: no administration on a fixed port, no certificate in the machine's store,
# no port 80.
_CADDY = """{
	admin off
	skip_install_trust
	auto_https disable_redirects
	servers {"""


def configurations() -> dict[str, str]:
    """Return the configuration of each proxy in `deploy/`."""
    return {name: (DEPLOY / file).read_text("utf-8") for name, file in FILES.items()}


def version_of(name: str) -> tuple[int, ...]:
    """Return the version of an installed proxy."""
    words = {"caddy": ["version"], "nginx": ["-v"], "haproxy": ["-v"]}[name]
    done = subprocess.run([name, *words], capture_output=True, text=True, check=True)
    found = re.search(r"(\d+)\.(\d+)\.(\d+)", done.stdout + done.stderr)
    return tuple(map(int, found.groups()))


@attrs.define
class Answer:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    def json(self) -> dict:
        return json.loads(self.body)


@attrs.define
class Proxy:
    """A proxy that listens with TLS and forwards to a port of this machine."""

    name: str
    upstream_port: int
    # Replacements in the configuration.
    changes: dict[str, str] = attrs.Factory(dict)
    folder: Path = attrs.field(init=False)
    port: int = attrs.field(init=False, factory=free_port)
    _process: subprocess.Popen[bytes] | None = attrs.field(init=False, default=None)

    def __attrs_post_init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="gw-proxy-"))

    def start(self) -> None:
        """Start it as an ordinary user, and return once it accepts connections."""
        words, environment = getattr(self, f"_prepare_{self.name}")()
        user = _ordinary_user()
        if user is not None:
            for path in (self.folder, *self.folder.iterdir()):
                os.chown(path, user.pw_uid, user.pw_gid)
        with (self.folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                words,
                cwd=self.folder,
                env={"PATH": os.environ["PATH"], "HOME": str(self.folder), **environment},
                stdout=log,
                stderr=subprocess.STDOUT,
                **({"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if user else {}),
            )
        until(self._is_up)

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGINT if self.name == "caddy" else signal.SIGTERM)
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def log(self) -> str:
        return (self.folder / "log").read_text("utf-8", "replace")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_) -> None:
        self.stop()

    def _is_up(self) -> bool:
        assert self._process.poll() is None, self.log()
        try:
            self.connect(5).close()
        except OSError:
            return False
        return True

    def connect(self, timeout_s: float = PATIENCE_S, source: str = "127.0.0.1"):
        """Return a client's connection, with its own source address on this machine."""
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection = http.client.HTTPSConnection(
            "localhost", self.port, timeout=timeout_s, context=context, source_address=(source, 0)
        )
        connection.connect()
        return connection

    def ask(self, method, path, body=None, headers=None, *, source="127.0.0.1") -> Answer:
        """Return the response to one request on a new connection."""
        connection = self.connect(source=source)
        try:
            return ask(connection, method, path, body, headers)
        finally:
            connection.close()

    # -- differences

    def _prepare_caddy(self):
        block = self._changed({**self.changes, "{\n\tservers {": _CADDY})
        (self.folder / "Caddyfile").write_text(block)
        environment = {
            "GATEWAY_DOMAIN": f"https://localhost:{self.port}",
            "GATEWAY_UPSTREAM": f"127.0.0.1:{self.upstream_port}",
            "XDG_DATA_HOME": str(self.folder),
            "XDG_CONFIG_HOME": str(self.folder),
        }
        return ["caddy", "run", "--config", "Caddyfile", "--adapter", "caddyfile"], environment

    def _prepare_nginx(self):
        folder = "/etc/letsencrypt/live/gateway.example.com"
        chain, key = _make_certificate(self.folder)
        own = {
            "listen 443 ssl": f"listen 127.0.0.1:{self.port} ssl",
            f"{folder}/fullchain.pem": str(chain),
            f"{folder}/privkey.pem": str(key),
            f"server {_UPSTREAM}": f"server 127.0.0.1:{self.upstream_port}",
        }
        block = self._changed({**self.changes, **own})
        path = self.folder / "nginx.conf"
        path.write_text(_NGINX.format(folder=self.folder, block=block))
        return ["nginx", "-e", "stderr", "-p", str(self.folder), "-c", str(path)], {}

    def _prepare_haproxy(self):
        chain, key = _make_certificate(self.folder)
        both = self.folder / "both.pem"
        both.write_bytes(chain.read_bytes() + key.read_bytes())
        own = {
            "bind :443": f"bind 127.0.0.1:{self.port}",
            "/etc/haproxy/gateway.example.com.pem": str(both),
            _UPSTREAM: f"127.0.0.1:{self.upstream_port}",
        }
        path = self.folder / "haproxy.cfg"
        path.write_text(self._changed({**self.changes, **own}))
        return ["haproxy", "-db", "-f", str(path)], {}

    def _changed(self, changes: dict[str, str]) -> str:
        block = configurations()[self.name]
        for old, new in changes.items():
            assert block.count(old) == 1, f"{self.name}: {old} is there {block.count(old)} times"
            block = block.replace(old, new)
        return block


def ask(connection, method, path, body=None, headers=None) -> Answer:
    """Return the response to one request on a client's connection, which may send more."""
    data = json.dumps(body).encode() if isinstance(body, dict) else body
    connection.request(method, path, data, {"Content-Type": "application/json", **(headers or {})})
    got = connection.getresponse()
    return Answer(got.status, got.headers, got.read())


def _ordinary_user() -> pwd.struct_passwd | None:
    """Return the user for a proxy if the tests run as root."""
    return pwd.getpwnam("nobody") if os.geteuid() == 0 else None


def _make_certificate(folder: Path) -> tuple[Path, Path]:
    """Write a self-signed certificate, and its key."""
    from datetime import UTC, datetime, timedelta

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    chain_path, key_path = folder / "chain.pem", folder / "key.pem"
    chain_path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    key_path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return chain_path, key_path
