"""Logs when gas, refund key or disk get worse or recover."""

import asyncio
from collections.abc import Mapping

import structlog

from gateway.contracts import GasOfKey
from gateway.errors import ChainUnavailable
from gateway.running.gateway import Gateway

# Remaining settlements at which gas is low, and urgent.
_GAS_SOON, _GAS_URGENT = 200, 20
_REFUNDS_SOON = 20
_log = structlog.get_logger()


class StateWatch:
    """Checks once a minute. An unreachable chain changes no level."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        # The last logged level by name; empty: well.
        self._levels: dict[str, str] = {}

    async def run(self) -> None:
        """Check after each pause, and continue after any error."""
        while True:
            await asyncio.sleep(self._gateway.timing.state_watch_s)
            try:
                await self.check()
            except ChainUnavailable as error:
                _log.warning("sweep.chain_silent", sweep="state-watch", error=error.message)
            except Exception:  # noqa: BLE001 - the edge of a background task: it retries
                _log.exception("sweep.failed", sweep="state-watch")

    async def check(self) -> None:
        """Check disk, gas and refund key; raises `ChainUnavailable`."""
        self._check_disk()
        self._check_gas(self._gateway.settlements.gas)
        refunds = self._gateway.refunds
        if refunds is not None:
            self._check_refund_key(await refunds.gas_of_key())

    def _check_disk(self) -> None:
        disk = self._gateway.readiness.read_disk()
        level = "urgent" if disk.problem else "soon" if disk.is_low else ""
        about = {"free_mb": disk.free_bytes // 10**6, "floor_mb": disk.floor_bytes // 10**6}
        self._note("disk", level, {**about, "free_inodes": disk.free_inodes})

    def _check_gas(self, keys: tuple[GasOfKey, ...]) -> None:
        if not keys:
            return
        count = sum(key.calls for key in keys)
        level = "urgent" if count < _GAS_URGENT else "soon" if count < _GAS_SOON else ""
        held = {key.address: f"{key.balance_wei / 10**18:.6f} ETH" for key in keys}
        self._note("gas", level, {"settlements": count, "keys": held})

    def _check_refund_key(self, key: GasOfKey) -> None:
        level = "urgent" if not key.calls else "soon" if key.calls < _REFUNDS_SOON else ""
        held = f"{key.balance_wei / 10**18:.6f} ETH"
        self._note("key", level, {"key": "refund", "address": key.address, "holds": held})

    def _note(self, name: str, level: str, about: Mapping[str, object]) -> None:
        before, self._levels[name] = self._levels.get(name, ""), level
        if level == before:
            return
        if level:
            _log.warning(_LOW[name], urgency=level, **about)
        else:
            _log.info(_RECOVERED[name], **about)


_LOW = {"disk": "disk.low", "gas": "gas.low", "key": "key.low"}
_RECOVERED = {"disk": "disk.recovered", "gas": "gas.recovered", "key": "key.recovered"}
