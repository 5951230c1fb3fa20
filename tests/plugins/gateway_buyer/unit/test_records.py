"""A signed payment is on the disk once, readable by its owner only."""

import stat

import attrs
import pytest

from gateway_buyer.errors import NotBought, Unfinished
from gateway_buyer.records import Record, Records, default_folder, hash_request

RECORD = Record(
    url="https://gateway.test",
    slug="a",
    key="k",
    request=hash_request({"prompt": "x"}),
    payment="e30=",
    price_units=1,
    payee="0x1",
    network="base",
    valid_before=9,
)


@pytest.fixture
def records(tmp_path):
    return Records(tmp_path / "state" / "purchases")


def test_a_record_is_found_by_address_and_key(records):
    assert records.find(RECORD.url, RECORD.key) is None
    records.add(RECORD)
    assert records.find(RECORD.url, RECORD.key) == RECORD
    assert records.find("https://other.test", RECORD.key) is None
    assert records.find(RECORD.url, "other") is None


def test_only_its_owner_can_read_it(records):
    records.add(RECORD)
    (file,) = records.folder.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(records.folder.stat().st_mode) == 0o700


def test_a_second_signature_with_one_key_is_refused(records):
    records.add(RECORD)
    with pytest.raises(NotBought, match="Run it again to continue"):
        records.add(attrs.evolve(RECORD, payment="other"))
    assert records.find(RECORD.url, RECORD.key) == RECORD


def test_the_task_is_noted(records):
    records.add(RECORD)
    noted = records.note_task(RECORD, "task-1")
    assert records.find(RECORD.url, RECORD.key) == noted == attrs.evolve(RECORD, task_id="task-1")
    assert len(list(records.folder.iterdir())) == 1


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"url": 1}'])
def test_a_damaged_record_is_never_taken_for_none(records, content):
    records.add(RECORD)
    (file,) = records.folder.iterdir()
    file.write_text(content)
    with pytest.raises(Unfinished, match="cannot be read"):
        records.find(RECORD.url, RECORD.key)


def test_without_a_place_for_it_nothing_is_paid(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(NotBought, match=r"Nothing was paid: .* XDG_STATE_HOME"):
        Records(tmp_path / "file" / "purchases").add(RECORD)


def test_the_folder_is_the_users(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "generation-gateway" / "purchases"
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    assert default_folder().is_absolute()


def test_the_order_of_fields_changes_no_request():
    assert hash_request({"a": 1, "b": 2}) == hash_request({"b": 2, "a": 1}) != hash_request({})
