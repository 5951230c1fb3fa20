"""Scenes of the provider contract: logs contain no keys and no prompts."""

import pytest

from gateway_testing.provider.checks import accepting_answer, api_of, job_api_of
from gateway_testing.provider.gateway_under_test import GatewayUnderTest
from gateway_testing.provider.log_capture import CapturedLogs

_SUBMIT_ANSWERS = ("broken", "garbage", "account")
_ANSWERS = ("made", "moderated", "nothing", "failed", *_SUBMIT_ANSWERS)


class LogScenes:
    """What the log and the buyer's errors may say."""

    @pytest.mark.parametrize("end", _ANSWERS)
    async def test_no_log_line_and_no_buyer_learns_a_key_or_a_prompt(
        self,
        gateway: GatewayUnderTest,
        logs: CapturedLogs,
        secrets: tuple[str, ...],
        capfd: pytest.CaptureFixture[str],
        end: str,
    ) -> None:
        if gateway.server is not None or end != "made":
            server = job_api_of(gateway, end) if end == "failed" else api_of(gateway, end)
            is_job = accepting_answer(gateway) == "accepted" and end not in _SUBMIT_ANSWERS
            server.set_answers("accepted" if is_job else end, jobs=(end,))
        task = await gateway.buy_and_wait()
        # A gateway writes its log to standard output.
        printed = capfd.readouterr()
        log = "\n".join((*logs.lines, printed.out, printed.err))
        for secret in secrets:
            assert secret not in log, "The log shows a key. Say it in no error and no log line."
            assert secret not in f"{task.error}", "The buyer is told a key. Say it in no error."
        prompt = gateway.fields.get("prompt")
        assert prompt is None or prompt not in log, (
            "The log shows the buyer's prompt. Quote it in no error and no log line."
        )
