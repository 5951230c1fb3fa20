"""Declarations of HTTP APIs, and the answers of such an API, for tests."""

import json

from werkzeug import Response

KEY = "key-that-is-never-to-be-seen"
PLAIN = """
title = "Words"
capability = "words"
price = "0.01"
request.url = "URL/make?kind=text"
request.json = { input = "{prompt}", task = "{task}", seed = "{seed}" }
result = { kind = "text", path = "choices[0].text" }
"""
JOB = """
title = "Clip"
capability = "clips"
price = "0.25"
request.url = "URL/jobs"
request.json = { prompt = "{prompt}" }
job = { id = "id", poll = "/jobs/{id}", state = "state", done = ["done"], failed = ["failed"], progress = "percent", progress_of = 100 }
result = { kind = "file", get = "/jobs/{id}/content", media_type = "video/mp4" }
"""  # noqa: E501 - as in a file
FORM = """
title = "Dictation"
capability = "dictation"
price = "0.01"
files = [".wav"]
request = { url = "URL/inference", form = { format = "json", words = "{prompt}", fast = true }, file_field = "file" }
result = { kind = "json", path = "found" }
"""  # noqa: E501 - as in a file


def answers(httpserver, *replies, path="/make", method="POST"):
    """Answer a path with each reply in turn; the last one is repeated."""
    left, seen = list(replies), []

    def answer(request):
        seen.append(request)
        reply = left.pop(0) if len(left) > 1 else left[0]
        return reply if isinstance(reply, Response) else Response(json.dumps(reply), 200)

    httpserver.expect_request(path, method=method).respond_with_handler(answer)
    return seen
