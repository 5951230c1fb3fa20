"""The operator's objects of one running gateway."""

from typing import TYPE_CHECKING

from gateway.running.gateway import Gateway
from gateway.web.front.current import current_gateway
from gateway_operator.admin_password import AdminPassword

if TYPE_CHECKING:
    from gateway_operator.alarms.watch import AlarmWatch
    from gateway_operator.desk.desk import Desk
    from gateway_operator.trials import Trials


class Operator:
    """Holds the password, and creates desk and alarms on first use."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self.password = AdminPassword(gateway.settings, gateway.store)
        self._desk: Desk | None = None
        self._alarms: AlarmWatch | None = None
        self._trials: Trials | None = None

    @property
    def desk(self) -> "Desk":
        """The data and services behind pages, API and commands."""
        if self._desk is None:
            from gateway_operator.running import make_desk  # noqa: PLC0415

            self._desk = make_desk(self._gateway)
        return self._desk

    @property
    def alarms(self) -> "AlarmWatch":
        """The watch that raises alarms and sends their messages."""
        if self._alarms is None:
            from gateway_operator.running import make_alarms  # noqa: PLC0415

            self._alarms = make_alarms(self._gateway, self.desk)
        return self._alarms

    @property
    def trials(self) -> "Trials":
        """The generations that operators begin on the page of an endpoint."""
        if self._trials is None:
            from gateway_operator.trials import Trials  # noqa: PLC0415

            self._trials = Trials()
        return self._trials

    async def find_pending(self) -> list[str]:
        """Return `alarms` and `trial`: unsent alarms, and an operator's running generation."""
        is_running = self._trials is not None and self._trials.is_running
        return [*await self.alarms.find_pending(), *(["trial"] if is_running else [])]

    async def close(self) -> None:
        """Stop background work and the password thread."""
        if self._trials is not None:
            await self._trials.close()
        if self._alarms is not None:
            await self._alarms.close()
        if self._desk is not None:
            await self._desk.unused.close()
            await self._desk.movements.close()
        self.password.close()


def operator_of(gateway: Gateway) -> Operator:
    """Return the `Operator` of a gateway."""
    return gateway.find(Operator)


def operator() -> Operator:
    """Return the `Operator` of the gateway that handles the current request."""
    return operator_of(current_gateway())
