"""The installed package of weights."""

import hashlib

import pytest

package = pytest.importorskip("generation_gateway_models", reason="run `make models` first")


def test_weights_have_the_recorded_hashes():
    found = package.licences()
    if not found:
        pytest.skip("the installed package was built without weights: run `make models`")
    for each in found:
        made = hashlib.sha256(package.weights(each.name).read_bytes()).hexdigest()
        assert made == each.sha256
        assert "AS IS" in each.text


@pytest.mark.parametrize("name", ["nothing.onnx", "", "../sources.toml", "/etc/hostname"])
def test_a_name_that_is_none_of_the_weights_is_refused_in_one_sentence(name):
    with pytest.raises(LookupError, match="contains no weights named"):
        package.weights(name)
