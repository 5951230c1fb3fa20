"""Scenes of the provider contract: nobody reads in a log what is nobody's business."""

import pytest

from gateway.testing.provider.judging import api_of, good, job_api_of
from gateway.testing.provider.overheard import Overheard
from gateway.testing.provider.stage import Stage

_OF_SUBMITS = ("broken", "garbage", "account")
_ENDS = ("made", "moderated", "nothing", "failed", *_OF_SUBMITS)


class TellingScenes:
    """What is logged, and what a buyer is told."""

    @pytest.mark.parametrize("end", _ENDS)
    async def test_no_log_line_and_no_buyer_learns_a_key_or_a_prompt(
        self,
        stage: Stage,
        overheard: Overheard,
        secrets: tuple[str, ...],
        capfd: pytest.CaptureFixture[str],
        end: str,
    ) -> None:
        if stage.server is not None or end != "made":
            server = job_api_of(stage, end) if end == "failed" else api_of(stage, end)
            is_job = good(stage) == "accepted" and end not in _OF_SUBMITS
            server.plays("accepted" if is_job else end, jobs=(end,))
        task = await stage.bought()
        printed = capfd.readouterr()  # standard output is where a gateway's log goes
        log = "\n".join((*overheard.lines, printed.out, printed.err))
        for secret in secrets:
            assert secret not in log, "The log shows a key. Say it in no error and no log line."
            assert secret not in f"{task.error}", "The buyer is told a key. Say it in no error."
        prompt = stage.fields.get("prompt")
        assert prompt is None or prompt not in log, (
            "The log shows the buyer's prompt. Quote it in no error and no log line."
        )
