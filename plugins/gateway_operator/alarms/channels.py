"""The alarm channels of the settings and of plugins."""

from collections.abc import Callable, Mapping
from typing import Any

from gateway.contracts import Clock
from gateway.contracts.parts import Alarm
from gateway.settings import Settings
from gateway_operator.alarms.apprise_urls import AppriseUrls
from gateway_operator.alarms.carriers import Carrier
from gateway_operator.alarms.operator_url import OperatorUrl
from gateway_operator.alarms.plugin_channel import PluginChannel
from gateway_operator.alarms.webhook import Webhook
from gateway_operator.settings import operator_settings_of, split_urls

Notify = Callable[[Alarm], Any]


def make_carriers(
    settings: Settings, now: Clock, notifiers: Mapping[str, Notify] | None = None
) -> list[Carrier]:
    """Return the carriers; `notifiers` are the plugins' hooks by plugin name."""
    carriers: list[Carrier] = []
    chosen = operator_settings_of(settings)
    if chosen.alarm_webhook:
        address = OperatorUrl(url=chosen.alarm_webhook)
        secret = str(chosen.alarm_webhook_secret)
        carriers.append(Webhook(address=address, secret=secret, now=now))
    urls = split_urls(str(chosen.alarm_urls))
    if urls:
        carriers.append(AppriseUrls(urls=urls))
    for plugin, notify in (notifiers or {}).items():
        carriers.append(PluginChannel(plugin=plugin, notify=notify))
    return carriers
