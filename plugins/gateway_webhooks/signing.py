"""Webhook secrets per task, and the headers that sign an event (Standard Webhooks)."""

import base64
import hashlib
import hmac
from datetime import UTC, datetime

import attrs


@attrs.frozen(eq=False, repr=False)
class CallbackSecrets:
    """Derives each task's secret from the installation's own, so that nothing is stored."""

    _installation_secret: str = attrs.field(repr=False)

    def of(self, task_id: str) -> str:
        """Return the secret that signs a task's events, as `whsec_` and Base64."""
        key = self._installation_secret.encode()
        digest = hmac.digest(key, b"webhook:" + task_id.encode(), hashlib.sha256)
        return "whsec_" + base64.b64encode(digest).decode()


def sign(secret: str, message_id: str, at: float, body: bytes) -> dict[str, str]:
    """Return the headers of one delivery attempt; `at` is now, in Unix seconds."""
    # Few gateways send webhooks, and no buyer waits for the first one.
    from standardwebhooks import Webhook  # noqa: PLC0415

    sent_at = datetime.fromtimestamp(int(at), UTC)
    return {
        "Content-Type": "application/json",
        "webhook-id": message_id,
        "webhook-timestamp": str(int(at)),
        "webhook-signature": Webhook(secret).sign(message_id, sent_at, body.decode()),
    }
