"""The settings of the login, metrics and alarms."""

import base64
import importlib.util
import math
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

import attrs
import typed_settings as ts

from gateway.errors import SettingsError
from gateway.settings import Settings, is_host_and_port, is_limit, secret, setting


@attrs.frozen(kw_only=True)
class OperatorSettings:
    """Settings of the login, metrics and alarms. Thresholds are written `soon/urgent`."""

    admin_password: ts.SecretStr = secret(
        "Admin password in plain text; prefer GATEWAY_ADMIN_PASSWORD_HASH."
    )
    admin_password_hash: ts.SecretStr = secret(
        "argon2 hash of the admin password, made by `gateway hash-password`; in a shell, between "
        "single quotes. Without hash and password, the first start makes a password and prints it "
        "once.",
        example="$argon2id$v=19$m=65536,t=3,p=4$...",
    )
    limit_login: str = setting("5/300s", "Rate limit of POST /admin/login per address.")
    limit_login_total: str = setting(
        "60/300s",
        "Rate limit of POST /admin/login over all addresses. Browsers that opened the admin page "
        "in the last 30 days have limits of their own.",
    )
    metrics_bind: str = setting(
        "",
        "Private address and port of /metrics for Prometheus, which shows your income; on Fly.io "
        "`fly-local-6pn`. Empty: none.",
        example="127.0.0.1:9091",
    )
    # The address may hold a secret, so it is not shown.
    alarm_webhook: str = setting(
        "",
        "URL that receives each alarm as a signed POST of JSON (docs/alarms.md); plain http in "
        "private networks only.",
        example="https://alerts.example.com/gateway",
        shown=False,
    )
    alarm_webhook_secret: ts.SecretStr = secret(
        "Secret that signs them: `whsec_` and 24 to 64 random bytes in Base64 (`openssl rand "
        "-base64 32`).",
        example="whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    )
    alarm_urls: ts.SecretStr = secret(
        "Apprise URLs for alarms, separated by spaces or commas: ntfy, Telegram, Slack, e-mail and "
        "others. Needs the extra `alarms` (in the image).",
        example="ntfys://my-topic mailto://user:password@example.com",
    )
    alarm_gas: str = setting(
        "200/20",
        "Settlements that the gas still pays for, `soon/urgent`; three days' sales count as soon.",
    )
    alarm_failures: str = setting(
        "5/15",
        "Failures in an endpoint's newest 20 tasks, without content policy, `soon/urgent`.",
    )
    alarm_refund_hours: float = setting(24.0, "Hours that a refund may wait for your decision.")
    alarm_unclaimed_hours: str = setting(
        "1/24",
        "Age in hours of an unused transfer, `soon/urgent`.",
    )
    alarm_queue_seconds: str = setting(
        "60/600",
        "Seconds that the oldest paid task waits in the queue, `soon/urgent`.",
    )
    # It holds the secret by which the other side knows the gateway.
    heartbeat_url: str = setting(
        "",
        "URL that the gateway requests every minute while no alarm is urgent and the database "
        "takes writes, such as a check of healthchecks.io.",
        example="https://hc-ping.com/your-uuid",
        shown=False,
    )
    heartbeat_pause_url: str = setting(
        "",
        "URL that gets a POST when the gateway ends for lack of requests (GATEWAY_EXIT_WHEN_IDLE), "
        "so that the monitor expects no heartbeat until the next one.",
        example="https://healthchecks.io/api/v3/checks/your-uuid/pause",
        shown=False,
    )
    heartbeat_pause_key: ts.SecretStr = secret(
        "Key for that URL, sent as `X-Api-Key`; of healthchecks.io an API key of the project.",
        example="hcw_...",
    )
    digest_at: str = setting(
        "07:00",
        "Time (UTC) of the daily digest to the same channels; `off`: never.",
        example="18:30",
    )

    def validate(self, _: Settings) -> Mapping[str, bool]:
        """Return for each value whether it is right; raises `SettingsError` for some."""
        if str(self.alarm_urls) and importlib.util.find_spec("apprise") is None:
            raise SettingsError(
                "GATEWAY_ALARM_URLS is set, but apprise cannot be found: run pip install "
                "'generation-gateway[alarms]', or unset the variable."
            )
        if "\n" in str(self.admin_password).strip():
            raise SettingsError("GATEWAY_ADMIN_PASSWORD holds a line end. Remove it.")
        secret_text = str(self.alarm_webhook_secret)
        return {
            "admin_password_hash": _is_argon2_hash(str(self.admin_password_hash)),
            "limit_login": is_limit(self.limit_login),
            "limit_login_total": is_limit(self.limit_login_total),
            "metrics_bind": not self.metrics_bind or is_host_and_port(self.metrics_bind),
            "alarm_webhook": _is_address(self.alarm_webhook),
            "alarm_webhook_secret": _is_secret(secret_text)
            if secret_text
            else not self.alarm_webhook,
            "alarm_urls": all(map(_is_one_address, split_urls(str(self.alarm_urls)))),
            "alarm_gas": _is_pair(self.alarm_gas, is_falling=True),
            "alarm_failures": _is_pair(self.alarm_failures),
            "alarm_refund_hours": 0 < self.alarm_refund_hours < math.inf,
            "alarm_unclaimed_hours": _is_pair(self.alarm_unclaimed_hours),
            "alarm_queue_seconds": _is_pair(self.alarm_queue_seconds),
            "heartbeat_url": _is_address(self.heartbeat_url),
            "heartbeat_pause_url": _is_address(self.heartbeat_pause_url),
            "digest_at": self.digest_at == "off" or bool(_TIME.fullmatch(self.digest_at)),
        }


SECTION = OperatorSettings


# The PHC string of argon2-cffi: kind, version, costs, salt and hash, both in Base64 without "=".
_ARGON2 = re.compile(
    r"\$argon2(id|i|d)\$v=\d+\$m=\d+,t=\d+,p=\d+\$[A-Za-z0-9+/]{11,}\$[A-Za-z0-9+/]{6,}"
)
_TIME = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])")
_PAIR = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?)/([0-9]{1,6}(?:\.[0-9]{1,3})?)")
_BETWEEN_URLS = re.compile(r"\s*,\s*(?=[A-Za-z][A-Za-z0-9+.-]*://)|\s+")
_MIN_SECRET_BYTES = 24
_MAX_SECRET_BYTES = 64


def operator_settings_of(settings: Settings) -> OperatorSettings:
    """Return the checked settings of the login, metrics and alarms."""
    return settings.section("", OperatorSettings)


def split_urls(text: str) -> list[str]:
    """Return the addresses of a list; a comma separates two only where another follows."""
    return [url for part in _BETWEEN_URLS.split(text) if (url := part.rstrip(",;"))]


def _is_argon2_hash(text: str) -> bool:
    """Whether this is empty or a complete argon2 hash."""
    # A Base64 text never has one character more than a multiple of four.
    is_cut_off = any(len(part) % 4 == 1 for part in text.split("$")[-2:])
    return not text or (bool(_ARGON2.fullmatch(text)) and not is_cut_off)


def _is_one_address(url: str) -> bool:
    return url.partition("?")[0].count("://") == 1


def parse_pair(text: str) -> tuple[float, float]:
    """Return the two numbers of a threshold: for `soon` and for `urgent`."""
    soon, _, urgent = text.partition("/")
    return float(soon), float(urgent)


def parse_time(text: str) -> float | None:
    """Return the seconds from midnight of a time such as `07:00`; None for `off`."""
    if text == "off":
        return None
    hours, _, minutes = text.partition(":")
    return int(hours) * 3600.0 + int(minutes) * 60.0


def _is_pair(text: str, *, is_falling: bool = False) -> bool:
    """Whether these are two thresholds, of which the urgent one is further off."""
    if not _PAIR.fullmatch(text):
        return False
    soon, urgent = parse_pair(text)
    return soon >= urgent if is_falling else soon <= urgent


def _is_address(text: str) -> bool:
    """Whether this is empty or an address; a login in it would be sent nowhere."""
    url = urlsplit(text)
    return not text or (
        url.scheme in ("http", "https") and bool(url.hostname) and url.username is None
    )


def _is_secret(text: str) -> bool:
    """Whether this is a secret as Standard Webhooks writes it."""
    kind, _, encoded = text.partition("_")
    try:
        length = len(base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True))
    except ValueError:
        return False
    return kind == "whsec" and _MIN_SECRET_BYTES <= length <= _MAX_SECRET_BYTES
