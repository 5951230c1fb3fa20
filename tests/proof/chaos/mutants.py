"""Gateways that break a rule of several nodes, as source that runs when a node starts.

The verdict must catch each of them. Otherwise it proves nothing.
"""

# Signing does not wait for other nodes that sign with the same key.
_SIGNS_ALONE = """
import time
from gateway.store import nonces, signing_groups
_first_unused = nonces.first_unused
def first_unused(*arguments):
    nonce = _first_unused(*arguments)
    time.sleep(0.05)  # so that two nodes meet, however few processors there are
    return nonce
nonces.first_unused = first_unused
del signing_groups.begin_settling_each.name_locks
"""
MUTANTS = {
    # Each start takes away all leases, also those of running nodes.
    "recovers-all": """
from gateway.store import tasks
_recover = tasks.recover
tasks.recover = lambda db, now, node=None: _recover(db, now)
""",
    "signs-alone": _SIGNS_ALONE,
    # Each node has every key as its own, and trusts that no other one signs with it.
    "owns-all": _SIGNS_ALONE
    + """
import attrs
from gateway_nodes import key_leases
_share = key_leases.share
def share(db, name, sellers, keys, *arguments, **named):
    shared = _share(db, name, sellers, keys, *arguments, **named)
    return attrs.evolve(shared, own=tuple(keys), busy=())
key_leases.share = share
""",
}
KEYS_OF_MUTANTS = {"owns-all": 2}
