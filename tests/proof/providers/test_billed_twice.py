"""A billed result is not made again because its response is unreadable."""

import pytest

from gateway import Answer, SubmitUncertain


async def test_a_file_that_is_no_base64_was_made_all_the_same():
    with pytest.raises(SubmitUncertain):
        await Answer.decoded("https://cdn.example/picture.png")
