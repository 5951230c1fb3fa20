"""The operator's settings that are set on the page. They take effect at the next start."""

from gateway.errors import ActionRefused, NeedsFresh, SettingsError, StaleForm, WrongValue
from gateway.settings import variable
from gateway.settings.page import seal
from gateway.settings.page_values import put_in, unseal_all, without_page
from gateway.store.page_settings import StoredSetting, find_all, put
from gateway.store.sql import Connection, locked
from gateway_operator.audit_log import Actor, NewAction
from gateway_operator.desk.desk import Desk
from gateway_operator.desk.settings_list import SettingRow, find_row, read_groups

MAX_CHARS = 2_000
HOW_TO_BEGIN = "openssl rand -hex 32"


async def find_settable(desk: Desk, name: str) -> SettingRow:
    """Return a setting that the page may set; raises `WrongValue` or `ActionRefused`."""
    row = find_row(await read_groups(desk), name)
    if row is None:
        raise WrongValue("There is no such setting. The page Settings lists them.")
    if not row.on_page:
        raise ActionRefused(f"{row.variable} is set on the machine only.")
    if row.is_given:
        raise ActionRefused(
            f"{row.variable} has a value from {row.source}, which wins. Remove it there, then "
            "restart the gateway."
        )
    if not str(desk.settings.settings_secret):
        raise ActionRefused(
            f"First make the secret that seals the values: {HOW_TO_BEGIN}, then put it beside your "
            "other settings as GATEWAY_SETTINGS_SECRET, and restart the gateway."
        )
    return row


async def choose(
    desk: Desk,
    actor: Actor,
    name: str,
    text: str,
    *,
    seen_at: float | None,
    reason: str = "",
    is_fresh: bool = False,
) -> None:
    """Store a value for the next start; `seen_at` is the time of the stored one that was seen.

    A repeated request raises `AlreadyDone`, because its value may differ from the first, which no
    audit row holds. Raises `NeedsFresh`, `WrongValue` for a value that the environment could not
    have either, `StaleForm` if another was stored meanwhile, and as `find_settable` does.
    """
    row = await find_settable(desk, name)
    if not is_fresh:
        raise NeedsFresh("This changes a setting: enter the password.")
    text = text.strip()
    if not text or len(text) > MAX_CHARS:
        raise WrongValue(f"Enter a value of at most {MAX_CHARS:,} characters.")
    await _try(desk, row, text)
    setting = StoredSetting(seal(str(desk.settings.settings_secret), name, text), desk.now())
    await _store(desk, actor, name, setting, seen_at, reason)


async def clear(
    desk: Desk,
    actor: Actor,
    name: str,
    *,
    seen_at: float | None,
    reason: str = "",
    is_fresh: bool = False,
) -> None:
    """Remove the stored value, also one that cannot be read. Raises as `choose` does."""
    if name not in await desk.store.read(find_all):
        raise ActionRefused(f"{variable(name)} has no value from the page.")
    if not is_fresh:
        raise NeedsFresh("This changes a setting: enter the password.")
    await _store(desk, actor, name, None, seen_at, reason)


async def _try(desk: Desk, row: SettingRow, text: str) -> None:
    """Read the value together with the other stored ones, as the next start will."""
    running, settings = desk.running, desk.settings
    if running is None:
        raise ActionRefused("Settings are set on the page of the running gateway.")
    # A bad one has no effect at the next start either.
    stored = {
        name: one.sealed
        for name, one in (await desk.store.read(find_all)).items()
        if name not in settings.page_unread or one.sealed != settings.page_sealed.get(name)
    }
    values, _ = unseal_all(settings, stored)
    try:
        await running.try_settings(put_in(without_page(settings), values | {row.name: text}))
    except SettingsError as error:
        problem = str(error).replace(text, "…") if row.is_secret else str(error)
        raise WrongValue(problem) from None


async def _store(
    desk: Desk,
    actor: Actor,
    name: str,
    setting: StoredSetting | None,
    seen_at: float | None,
    reason: str,
) -> None:
    action = NewAction(
        actor=actor,
        at=desk.now(),
        action="setting.clear" if setting is None else "setting.set",
        subject=variable(name),
        reason=reason,
    )
    await desk.records.act(_put_if_unchanged, name, setting, seen_at, action=action)


@locked("settings")
def _put_if_unchanged(
    db: Connection, name: str, setting: StoredSetting | None, seen_at: float | None
) -> None:
    stored = find_all(db).get(name)
    if (None if stored is None else stored.at) != seen_at:
        raise StaleForm(
            f"{variable(name)} was changed meanwhile. Nothing was done. Check it and try again."
        )
    put(db, name, setting)
