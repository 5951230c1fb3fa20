"""Nothing that a plugin raises passes its fence, not even an error that cannot be told."""

import pytest
import structlog

from gateway.concurrency.fence import Fence, Fenced, Owner

OWNER = Owner("acme", "part")
WORSE = [RuntimeError("no words"), SystemExit(3), KeyboardInterrupt()]


def mute(base, worse):
    class Mute(base):
        def __str__(self):
            raise worse

        __repr__ = __str__

    return Mute("x")


@pytest.fixture(params=[Exception, SystemExit, BaseException])
def base(request):
    return request.param


@pytest.fixture(params=WORSE, ids=repr)
def error(request, base):
    return mute(base, request.param)


async def test_an_error_that_cannot_be_told_does_not_pass(error):
    fence = Fence()

    async def wait():
        raise error

    def run():
        raise error

    with structlog.testing.capture_logs() as lines:
        with pytest.raises(Fenced, match=r"^Mute: $") as fenced:
            fence.run(OWNER, "run", run)
        assert fenced.value.error is error
        with pytest.raises(Fenced, match=r"^Mute: $"):
            await fence.wait(OWNER, "wait", wait, limit_s=60)
    assert [(fault.step, fault.error) for fault in fence.faults()] == [
        ("run", "Mute"),
        ("wait", "Mute"),
    ]
    (line, _) = lines
    assert "Mute" in structlog.processors.format_exc_info(None, "error", line)["exception"]
