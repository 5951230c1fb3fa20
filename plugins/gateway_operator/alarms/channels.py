"""The alarm channels of the settings and of plugins."""

from collections.abc import Callable, Mapping
from typing import Any

from gateway.contracts import Clock
from gateway.contracts.alarms import Alarm
from gateway.settings import Settings
from gateway.settings.alarms import split_urls
from gateway_operator.alarms.apprise_urls import AppriseUrls
from gateway_operator.alarms.carriers import Carrier
from gateway_operator.alarms.own_address import OwnAddress
from gateway_operator.alarms.plugin_channel import PluginChannel
from gateway_operator.alarms.webhook import Webhook

Notify = Callable[[Alarm], Any]


def make_carriers(
    settings: Settings, now: Clock, notifiers: Mapping[str, Notify] | None = None
) -> list[Carrier]:
    """Return the carriers; `notifiers` are the plugins' hooks by plugin name."""
    carriers: list[Carrier] = []
    if settings.alarm_webhook:
        address = OwnAddress(url=settings.alarm_webhook)
        secret = str(settings.alarm_webhook_secret)
        carriers.append(Webhook(address=address, secret=secret, now=now))
    urls = split_urls(str(settings.alarm_urls))
    if urls:
        carriers.append(AppriseUrls(urls=urls))
    for plugin, notify in (notifiers or {}).items():
        carriers.append(PluginChannel(plugin=plugin, notify=notify))
    return carriers
