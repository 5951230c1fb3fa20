"""Payment methods that a plugin may register, and plugins that are left out."""

import pytest

from gateway.contracts import Challenge
from gateway.plugins.manager import PluginManager
from gateway.plugins.registration import method_offer
from gateway_testing.fakes.chain import FakeChain, context_of

METHOD = """
from gateway import hookimpl

class Coupons:
    name = "coupon"
    header_names = ("X-Coupon",)
    def challenge(self, quote, reason, version): ...
    def read(self, header): ...
    async def check(self, proof, quote, now): ...
    async def settle(self, payment): ...
    def receipt_headers(self, proof, reference): ...

@hookimpl
def register_payment_method(register, context):
    register(Coupons())
"""


class Method:
    name = "coupon"
    header_names = ("X-Coupon",)

    def challenge(self, quote, reason, version):
        return Challenge(body={}, headers={})

    def read(self, header):
        pass

    async def check(self, proof, quote, now):
        pass

    async def settle(self, payment):
        pass

    def receipt_headers(self, proof, reference):
        return {}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": None}, "Method.name None is not 2 to 20"),
        ({"name": "Coupon"}, "Method.name 'Coupon' is not"),
        ({"name": "a:b"}, "Method.name 'a:b' is not"),
        ({"name": "auth"}, "or is one of tx, auth"),
        ({"name": "direct"}, "or is one of tx, auth"),
        ({"header_names": "X-Coupon"}, "Method.header_names is no list"),
        ({"header_names": ("X Coupon",)}, "Method.header_names is no list"),
        ({"settle": None}, "Method has no method settle"),
        ({"settle": lambda self, payment: None}, "Method.settle is not an `async def`"),
    ],
)
def test_a_mistake_is_one_sentence(change, message):
    with pytest.raises(ValueError, match="Method") as caught:
        method_offer(type("Method", (Method,), change)())
    assert message in str(caught.value)


def ways(tmp_path, *more):
    manager = PluginManager(more)
    return manager, manager.ways_to_pay(context_of(FakeChain(), tmp_path, {}))


def test_a_method_stands_beside_the_verifiers(install, tmp_path):
    install(METHOD)
    _, (verifiers, methods) = ways(tmp_path)
    assert [method.name for method in methods] == ["coupon"]
    assert "X-PAYMENT" in verifiers[0].header_names


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('"X-Coupon"', '"x-payment"', "Payment header x-payment is registered by gateway_x402"),
        ('name = "coupon"', 'name = "tx"', "ValueError: Coupons.name 'tx'"),
    ],
)
def test_what_another_has_is_left_out(install, tmp_path, before, after, message):
    install(METHOD.replace(before, after))
    manager, (verifiers, methods) = ways(tmp_path)
    assert (len(verifiers), methods) == (1, [])
    (problem,) = [plugin.problem for plugin in manager.loaded if plugin.problem]
    assert problem.startswith(message)


def test_of_a_plugin_that_is_left_out_nothing_stays(install, tmp_path):
    """Its verifier was found before its method was refused."""
    verifier = (
        "\n@hookimpl\ndef register_authorization_verifier(register, context):\n"
        "    register(type('Verifier', (), {'header_names': ('X-Other',)})())\n"
    )
    install(METHOD.replace('"X-Coupon"', '"x-payment"') + verifier)
    _, (verifiers, methods) = ways(tmp_path)
    assert (len(verifiers), methods) == (1, [])


def test_two_plugins_have_no_method_of_one_name(install, tmp_path):
    install(METHOD)
    install(METHOD.replace("X-Coupon", "X-Voucher"), module="beta_plugin", dist="gateway-beta")
    manager, (_, methods) = ways(tmp_path)
    assert len(methods) == 1
    (problem,) = [plugin.problem for plugin in manager.loaded if plugin.problem]
    assert problem.startswith("Payment method coupon is registered by")
