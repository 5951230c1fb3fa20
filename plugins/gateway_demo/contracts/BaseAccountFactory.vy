# pragma version 0.4.3
# pragma evm-version cancun
# SPDX-License-Identifier: MIT
"""
@title Makes Base Accounts at addresses that are known before (CREATE2), as Coinbase's factory does
@notice A second call for the same account returns its address.
"""

interface BaseAccount:
    def initialize(owners: DynArray[Bytes[64], 4]): nonpayable

# Where Coinbase's version 1.1 is on Base.
implementation: public(constant(address)) = 0x00000110dCdEdC9581cb5eCB8467282f2926534d

accounts: HashMap[bytes32, address]


@external
@payable
def createAccount(owners: DynArray[Bytes[64], 4], nonce: uint256) -> address:
    """
    @notice Deploy a proxy that obeys `owners`; an eth_call tells its address.
    """
    salt: bytes32 = keccak256(abi_encode(owners, nonce))
    if self.accounts[salt] == empty(address):
        account: address = create_minimal_proxy_to(implementation, salt=salt)
        self.accounts[salt] = account
        extcall BaseAccount(account).initialize(owners)
    return self.accounts[salt]
