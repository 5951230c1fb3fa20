# pragma version 0.4.3
# pragma evm-version cancun
# SPDX-License-Identifier: MIT
"""
@title Makes smart accounts at addresses that are known before (CREATE2)
@notice A second call for the same account fails, and uses up nearly all of its gas doing so, as
    with the factories of some real wallets.
"""

interface SmartAccount:
    def initialize(owner: address): nonpayable


@external
def create(implementation: address, owner: address, salt: bytes32) -> address:
    """
    @notice Deploy a proxy of `implementation` that obeys `owner`; an eth_call tells its address.
    """
    own_salt: bytes32 = keccak256(abi_encode(owner, salt))
    account: address = create_minimal_proxy_to(implementation, salt=own_salt)
    extcall SmartAccount(account).initialize(owner)
    return account
