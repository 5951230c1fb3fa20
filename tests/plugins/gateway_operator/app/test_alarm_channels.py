"""Channels of alarms: signed webhook, Apprise in a child process, plugin hook, heartbeat."""

import asyncio
import json
import socket
import threading
import time

import pytest
from click.testing import CliRunner

from gateway import hookimpl
from gateway.cli import main
from gateway_operator.alarms.apprise_urls import AppriseUrls, name_of
from gateway_operator.alarms.operator_url import OperatorUrl, RequestFailed
from gateway_operator.sql import alarm_messages
from gateway_operator.state import Operator
from tests.conftest import WALLET
from tests.plugins.gateway_operator.app.alarm_gateway import (
    SECRET,
    alarmed,
    check_alarms,
    fail_often,
)
from tests.plugins.gateway_webhooks.app.receiver import receiving, status


async def unsent(gateway) -> list:
    store = gateway.services.store
    return await store.sum(alarm_messages.unsent, 0.0, 100)


async def test_the_webhook_is_signed_and_repeated_under_the_same_id(settings, provider, clock):
    async with receiving() as receiver:
        told_here = settings.changed(
            alarm_webhook=f"http://127.0.0.1:{receiver.port}/alarms?token=abc",
            alarm_webhook_secret=SECRET,
        )
        receiver.answers = [status(500)]
        async with alarmed(told_here, provider, now=clock) as gateway:
            await fail_often(gateway)
            await check_alarms(gateway)
            (problem,) = await unsent(gateway)
            assert (problem.channel, problem.problem) == ("webhook", "Status 500.")
            await check_alarms(gateway, clock, 31)
            first, second = receiver.delivered
            assert first.id == second.id
            assert second.path == "/alarms?token=abc"
            clock.offset_s = 0.0
            event = second.verified_by(SECRET)
            assert event["type"] == "alarm.raised"
            assert event["data"]["key"] == "failures:picture"
            assert event["data"]["urgency"] == "soon"
            assert event["data"]["link"].startswith("http://gateway.test/admin/tasks?")
            assert await unsent(gateway) == []
            # It contains no payer, task or prompt.
            assert "0xabab" not in second.body.decode()


async def test_a_redirect_is_not_followed(settings):
    async with receiving() as receiver:
        receiver.answers = [status(302, "Location: http://127.0.0.1:1/elsewhere")]
        with pytest.raises(RequestFailed, match=r"Status 302\."):
            await OperatorUrl(url=f"http://127.0.0.1:{receiver.port}/").request("GET")


async def test_plain_http_is_for_the_operators_own_network_only():
    def resolved_to(address):
        return lambda *_, **__: [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 80))]

    public = OperatorUrl(url="http://alerts.example.com/", resolve=resolved_to("93.184.216.34"))
    with pytest.raises(RequestFailed, match="must be https"):
        await public.request("GET")
    async with receiving() as receiver:
        private = OperatorUrl(
            url=f"http://alerts.internal:{receiver.port}/", resolve=resolved_to("127.0.0.1")
        )
        await private.request("GET")
        assert receiver.delivered[0].headers["host"] == f"alerts.internal:{receiver.port}"


async def test_a_webhook_that_does_not_answer_delays_no_purchase_and_no_round(settings, provider):
    async with receiving() as receiver:
        receiver.answers = [None] * 3
        hanging = settings.changed(
            alarm_webhook=f"http://127.0.0.1:{receiver.port}/",
            alarm_webhook_secret=SECRET,
        )
        async with alarmed(hanging, provider) as gateway:
            await fail_often(gateway)
            await gateway.services.find(Operator).alarms.step()
            await receiver.got(1)
            # The channel now hangs; checks and a buyer's request still finish.
            await gateway.services.find(Operator).alarms.step()
            answer = await gateway.client.post("/api/x402/picture", json={"prompt": "a lake"})
            assert answer.status_code == 402
            assert len(receiver.delivered) == 1


async def test_apprise_tells_one_letter_by_a_child_that_ends(settings, provider, clock):
    async with receiving() as receiver:
        url = f"json://user:hunter2hunter2@127.0.0.1:{receiver.port}/alarms"
        told_here = settings.changed(alarm_urls=url)
        async with alarmed(told_here, provider, now=clock) as gateway:
            await fail_often(gateway)
            await check_alarms(gateway)
            (letter,) = receiver.delivered
            payload = json.loads(letter.body)
            assert payload["title"] == "Generation Gateway: Soon: picture fails: 8 of its last 8"
            assert (
                "What to do: Read the errors. Pause the endpoint if it keeps failing."
                in payload["message"]
            )
            assert payload["type"] == "warning"
            assert await unsent(gateway) == []
            assert gateway.services.find(Operator).alarms.sender.channels == [name_of(url)]
            assert "hunter2" not in name_of(url)


async def test_of_several_addresses_each_has_its_own_outcome():
    """One hangs, one is invalid, one refuses, and one accepts."""
    from gateway_operator.alarms.messages import make_test
    from gateway_operator.alarms.records import AlarmMessage

    async with receiving() as good, receiving() as silent:
        silent.answers = [None]
        good.answers = [status(204), status(500)]
        urls = [
            f"json://127.0.0.1:{silent.port}/",
            "nonsense://x",
            f"json://127.0.0.1:{good.port}/first",
        ]
        alarm = make_test("http://gateway.test", "Shop", time.time())
        messages = {
            name_of(url): [AlarmMessage(id=n, channel="", alarm=alarm, created_at=0, due_at=0)]
            for n, url in enumerate(urls)
        }
        outcomes = await AppriseUrls(urls=urls, limit_s=20.0).carry(messages)
        assert outcomes[1] == "Apprise does not know such an address."
        assert outcomes[2] is None
        assert outcomes[0] is not None
        refused = [f"json://127.0.0.1:{good.port}/second"]
        batch = {name_of(refused[0]): messages[name_of(urls[2])]}
        assert await AppriseUrls(urls=refused).carry(batch) == {2: "The service rejected it."}


async def test_the_child_has_none_of_the_gateways_secrets(settings, tmp_path, monkeypatch):
    """It reads its addresses from stdin, and has an environment without keys."""
    from gateway_operator.alarms import apprise_urls

    seen = tmp_path / "seen"
    child = tmp_path / "child.py"
    child.write_text(
        "import json, os, sys\n"
        "order = json.load(sys.stdin)\n"
        f"json.dump([sys.argv, dict(os.environ)], open({str(seen)!r}, 'w'))\n"
        "print(json.dumps([0, None]), flush=True)\n"
    )
    monkeypatch.setattr(apprise_urls, "_CHILD", child)
    monkeypatch.setenv("GATEWAY_SETTLEMENT_KEY", "11" * 32)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "very-secret")
    from gateway_operator.alarms.messages import make_test
    from gateway_operator.alarms.records import AlarmMessage

    url = "json://user:hunter2hunter2@127.0.0.1:1/"
    alarm = make_test("http://gateway.test", "Shop", time.time())
    message = AlarmMessage(id=7, channel="", alarm=alarm, created_at=0, due_at=0)
    assert await AppriseUrls(urls=[url]).carry({name_of(url): [message]}) == {7: None}
    text = seen.read_text()
    assert "hunter2" not in text
    assert "1111" not in text
    assert "very-secret" not in text


class Telling:
    """A plugin that sends alarms with a plain function."""

    __name__ = "telling-plugin"

    def __init__(self) -> None:
        self.received = []
        self.error = None
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self.has_told = threading.Event()

    @hookimpl
    def gateway_notify(self, alarm):
        assert threading.current_thread() is not threading.main_thread()
        self.may_go_on.wait()
        if self.error is not None:
            raise self.error
        self.received.append(alarm)
        self.has_told.set()


class TellingAsync:
    __name__ = "telling-async"

    def __init__(self) -> None:
        self.received = []

    @hookimpl
    async def gateway_notify(self, alarm):
        self.received.append(alarm)


async def test_plugins_tell_alarms_by_their_hook(settings, provider, clock):
    plain, other = Telling(), TellingAsync()
    plain.error = RuntimeError("key sk-secret is wrong")
    async with alarmed(settings, provider, now=clock, more=(plain, other)) as gateway:
        await fail_often(gateway)
        await check_alarms(gateway)
        assert [one.key for one in other.received] == ["failures:picture"]
        (problem,) = await unsent(gateway)
        assert problem.channel == "plugin telling-plugin"
        # The error's text may contain a key of the plugin.
        assert problem.problem == "It failed: RuntimeError."
        plain.error = None
        await check_alarms(gateway, clock, 31)
        assert [one.title for one in plain.received] == ["picture fails: 8 of its last 8"]
        assert len(other.received) == 1


async def test_a_plugin_that_hangs_is_called_no_second_time(settings, provider, clock):
    plugin = Telling()
    plugin.may_go_on.clear()
    async with alarmed(settings, provider, now=clock, more=(plugin,)) as gateway:
        (channel,) = gateway.services.find(Operator).alarms.sender.carriers
        channel.limit_s = 0.05
        await fail_often(gateway)
        await check_alarms(gateway)
        assert (await unsent(gateway))[0].problem == "No answer came in time."
        await check_alarms(gateway, clock, 31)
        assert (await unsent(gateway))[0].problem == "Its last call has not ended."
        plugin.may_go_on.set()
        assert await asyncio.to_thread(plugin.has_told.wait, 60)


async def test_the_heartbeat_is_asked_while_nothing_urgent_is_on(settings, provider, clock):
    async with receiving() as receiver:
        beating = settings.changed(heartbeat_url=f"http://127.0.0.1:{receiver.port}/beat")
        async with alarmed(beating, provider, now=clock) as gateway:
            await check_alarms(gateway)
            await receiver.got(1)
            await fail_often(gateway, count=20)
            await check_alarms(gateway, clock, 61)
            await check_alarms(gateway, clock, 61)
            assert len(receiver.delivered) == 1


async def test_the_command_tries_every_channel_and_fails_if_one_does():
    async with receiving() as receiver:
        env = {
            "GATEWAY_WALLET": WALLET,
            "GATEWAY_ALARM_WEBHOOK": f"http://127.0.0.1:{receiver.port}/",
            "GATEWAY_ALARM_WEBHOOK_SECRET": SECRET,
        }

        async def try_them(**more):
            arguments = ["alarms", "test", "--json"]
            return await asyncio.to_thread(CliRunner().invoke, main, arguments, env=env | more)

        good = await try_them()
        assert good.exit_code == 0
        assert json.loads(good.output) == [{"channel": "webhook", "problem": None}]
        event = receiver.delivered[0].verified_by(SECRET)
        assert event["type"] == "alarm.test"
        bad = await try_them(GATEWAY_ALARM_URLS="nonsense://hunter2hunter2")
        assert bad.exit_code == 1
        assert [row["problem"] for row in json.loads(bad.output)] == [
            None,
            "Apprise does not know such an address.",
        ]
        assert "hunter2" not in bad.output
