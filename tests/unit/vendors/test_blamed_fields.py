"""The fields blamed by a vendor's refusal, and those that a buyer has set."""

from gateway.vendors import blamed_fields


def refusal(*place):
    return {"detail": [{"loc": ["body", *place], "msg": "not right"}]}


def test_every_part_of_a_place_is_blamed():
    assert blamed_fields(refusal("configuration", "tier")) == {"body", "configuration", "tier"}


def test_names_that_a_buyer_chose_are_not_blamed():
    named = refusal("configuration", "data_schema", "properties", "version")
    assert blamed_fields(named, buyers="data_schema") == {"body", "configuration"}
    ours = refusal("configuration", "version")
    assert "version" in blamed_fields(ours, buyers="data_schema")
