# pragma version 0.4.3
# pragma evm-version cancun
# SPDX-License-Identifier: MIT
"""
@title Several calls in one transaction
@notice `aggregate3` with the selector and the meaning it has in Multicall3, which lives on Base.
"""

struct Call3:
    target: address
    allowFailure: bool
    callData: Bytes[1024]

struct Result:
    success: bool
    returnData: Bytes[1024]


@external
@payable
def aggregate3(calls: DynArray[Call3, 16]) -> DynArray[Result, 16]:
    results: DynArray[Result, 16] = []
    for call: Call3 in calls:
        success: bool = False
        answer: Bytes[1024] = b""
        success, answer = raw_call(call.target, call.callData, max_outsize=1024, revert_on_failure=False)
        assert success or call.allowFailure, "Multicall3: call failed"
        results.append(Result(success=success, returnData=answer))
    return results
