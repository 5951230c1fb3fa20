"""Logs the state of gas, refund key and disk: one line when it gets worse, one when it is well."""

import asyncio
from collections.abc import Mapping

import structlog

from gateway.contracts import GasOfKey
from gateway.errors import ChainUnavailable
from gateway.running.gateway import Gateway

# Fewer settlements than that are worth a line, and fewer than that are urgent.
_GAS_SOON, _GAS_URGENT = 200, 20
_REFUNDS_SOON = 20
_log = structlog.get_logger()


class StateWatch:
    """Looks once a minute; a silent chain changes nothing."""

    def __init__(self, services: Gateway) -> None:
        self._services = services
        # What was said last, by event: how bad it was.
        self._said: dict[str, str] = {}

    async def look_forever(self) -> None:
        """Look after each pause, whatever a look raises."""
        while True:
            await asyncio.sleep(self._services.timing.state_watch_s)
            try:
                await self.look()
            except ChainUnavailable as error:
                _log.warning("sweep.chain_silent", sweep="state-watch", error=error.message)
            except Exception:  # noqa: BLE001 - the edge of a background task: it looks again
                _log.exception("sweep.failed", sweep="state-watch")

    async def look(self) -> None:
        """Look at disk, gas and refund key; raises `ChainUnavailable`."""
        self._look_at_disk()
        self._look_at_gas(self._services.settlements.gas)
        refunds = self._services.refunds
        if refunds is not None:
            self._look_at_refund_key(await refunds.look_at_gas())

    def _look_at_disk(self) -> None:
        disk = self._services.readiness.read_disk()
        level = "urgent" if disk.problem else "soon" if disk.is_low else ""
        about = {"free_mb": disk.free_bytes // 10**6, "floor_mb": disk.floor_bytes // 10**6}
        self._note("disk", level, {**about, "free_inodes": disk.free_inodes})

    def _look_at_gas(self, keys: tuple[GasOfKey, ...]) -> None:
        if not keys:
            return
        count = sum(key.calls for key in keys)
        level = "urgent" if count < _GAS_URGENT else "soon" if count < _GAS_SOON else ""
        held = {key.address: f"{key.balance_wei / 10**18:.6f} ETH" for key in keys}
        self._note("gas", level, {"settlements": count, "keys": held})

    def _look_at_refund_key(self, key: GasOfKey) -> None:
        level = "urgent" if not key.calls else "soon" if key.calls < _REFUNDS_SOON else ""
        held = f"{key.balance_wei / 10**18:.6f} ETH"
        self._note("key", level, {"key": "refund", "address": key.address, "holds": held})

    def _note(self, name: str, level: str, about: Mapping[str, object]) -> None:
        """Log a level that differs from the one before."""
        before, self._said[name] = self._said.get(name, ""), level
        if level == before:
            return
        if level:
            _log.warning(_LOW[name], urgency=level, **about)
        else:
            _log.info(_WELL[name], **about)


_LOW = {"disk": "disk.low", "gas": "gas.low", "key": "key.low"}
_WELL = {"disk": "disk.well", "gas": "gas.well", "key": "key.well"}
