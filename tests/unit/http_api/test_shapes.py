"""Values in shapes, and paths in answers."""

import pytest

from gateway_http.shapes import filled, find

VALUES = {"prompt": '", "admin": true, "x": "${KOKORO_KEY} {task}', "width": 1024, "task": "t-1"}


def test_a_place_becomes_its_value_with_its_type():
    shape = {"width": "{width}", "size": "{width}x{width}", "n": 1, "tags": ["{task}", True]}
    assert filled(shape, VALUES) == {
        "width": 1024,
        "size": "1024x1024",
        "n": 1,
        "tags": ["t-1", True],
    }


@pytest.mark.parametrize("shape", ["{prompt}", "say: {prompt}"])
def test_a_value_stays_one_text_whatever_it_contains(shape):
    found = filled({"input": shape}, VALUES)
    assert found == {"input": shape.replace("{prompt}", VALUES["prompt"])}


ANSWER = {"images": [{"data": "first"}, {"data": "second"}], "done": False, "n": 0}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("images[1].data", "second"),
        ("images", ANSWER["images"]),
        ("done", False),
        ("n", 0),
        ("images[2].data", None),
        ("images.data", None),
        ("done[0]", None),
        ("images[0].data[0]", None),
        ("nothing.at.all", None),
    ],
)
def test_a_path_finds_a_value_or_nothing(path, value):
    assert find(ANSWER, path) == value


@pytest.mark.parametrize("answer", [None, [], 7, "text"])
def test_a_path_finds_nothing_in_another_shape(answer):
    assert find(answer, "images[0]") is None
