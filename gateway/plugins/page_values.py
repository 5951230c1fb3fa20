"""Values of the page Settings that plugins cannot have, and what is not sold because of them."""

from collections.abc import Sequence

import attrs

from gateway.catalog.catalog import Catalog
from gateway.errors import SettingsError
from gateway.settings import SectionOffer, Settings, variable
from gateway.settings.page_values import find_unread, is_locked


def refuse_off_page(settings: Settings, sections: Sequence[SectionOffer]) -> None:
    """Raise `SettingsError` for values of the page that a plugin does not declare `on_page`."""
    fields = {name: field for section in sections for name, field in section.fields.items()}
    refused = [
        variable(name)
        for name in sorted(settings.page_names & fields.keys())
        if not fields[name].metadata.get("on_page")
    ]
    if refused:
        raise SettingsError(f"{' and '.join(refused)} cannot be set on the page.")


def hold_unread(catalog: Catalog, settings: Settings, sections: Sequence[SectionOffer]) -> None:
    """Sell nothing of a plugin while a value of the page is not read: it may be a price.

    If nodes share the database, this one sells nothing at all while it cannot unseal a value:
    others sell by it.
    """
    unread = find_unread(settings)
    for section in sections:
        names = sorted(unread.keys() & section.fields.keys())
        if names:
            catalog.hold(_describe(names, unread[names[0]]), section.plugin)
    known = attrs.fields_dict(Settings).keys() | {n for one in sections for n in one.fields}
    # The page shows no others, so they could not be removed.
    locked = sorted(name for name in unread.keys() & known if is_locked(unread[name]))
    if settings.database_url and locked:
        catalog.hold(_describe(locked, unread[locked[0]]))


def _describe(names: Sequence[str], problem: str) -> str:
    has_several = len(names) > 1
    return (
        f"{', '.join(map(variable, names))} {'have' if has_several else 'has'} no effect, although "
        f"set on the page ({problem}). Set {'them' if has_several else 'it'} again, or remove "
        f"{'them' if has_several else 'it'}, then restart."
    )
