"""Writes the notes of a recording down: a capability of a plugin's own, priced by the second.

It runs on this machine and needs no key. `GATEWAY_MELODY_PRICE` puts `melody` on sale.
"""

from collections.abc import Callable

import attrs

from gateway import (
    SECOND,
    Capability,
    Endpoint,
    FileKind,
    GenerationRequest,
    InSandbox,
    InvalidInput,
    Job,
    Limit,
    Output,
    Prompt,
    Provider,
    Result,
    ResultKind,
    Sandbox,
    SandboxEnded,
    SandboxLost,
    SandboxRefusal,
    Settings,
    Traits,
    Transient,
    UnitPrice,
    hookimpl,
    setting,
    usdc,
)
from gateway_melody.sample import SCALE

_CHILD = "gateway_melody.child"

RECORDING = FileKind(
    name="recording",
    plural="recordings",
    endings=(".wav",),
    # It measures the samples, because a header may promise any length or rate.
    read=InSandbox(function=f"{_CHILD}:measure"),
    measures=("seconds",),
    limits=(Limit(measure="seconds", least=0.2, most=600),),
    about=" A WAV with samples of 8 or 16 bits, 0.2 to 600 seconds of at most 48,000 samples.",
    note="the file is a WAV with samples of 8 or 16 bits: 0.2 to 600 s of at most 48,000 samples",
    samples={".wav": SCALE},
    sample_name="scale",
)
MELODY = ResultKind(
    name="melody",
    media_types={"audio/midi": "mid"},
    check=InSandbox(function=f"{_CHILD}:check_midi"),
    facts=("seconds",),
    shown="sound",
)
CAPABILITY = Capability(
    name="sound-to-notes",
    title="Notes of a recording",
    heading="Notes of recordings",
    about="The notes of the buyer's recording.",
    result="A MIDI file as `outputs`; the gateway checks that it has notes.",
    prompt=Prompt(use="absent", cheapest="", ignored="Ignored: the recording is enough."),
    files=(RECORDING,),
    output_formats=("mid",),
    results=(MELODY,),
    units=(SECOND,),
)


@attrs.frozen(kw_only=True)
class MelodySettings:
    """The operator's settings."""

    price: str = setting(
        "", "USDC for each second; it puts `melody` on sale.", switches_on=True, example="0.001"
    )


@hookimpl
def register_settings(register: Callable[[str, type], None]) -> None:
    """Define `GATEWAY_MELODY_PRICE`."""
    register("melody", MelodySettings)


@hookimpl
def register_capabilities(register: Callable[[Capability], None]) -> None:
    """Declare what is sold; every document, tool and page follows."""
    register(CAPABILITY)


@hookimpl
def register_endpoints(register: Callable[[Endpoint, Provider], None], settings: Settings) -> None:
    """Put the endpoint on sale if it has a price."""
    price = settings.section("melody", MelodySettings).price
    if not price:
        return
    endpoint = Endpoint(
        slug="melody",
        title="The notes of a recording",
        description="Writes the notes of a recording with one voice down, as MIDI.",
        model="zero-crossings",
        provider="melody",
        capability=CAPABILITY.name,
        price_units=usdc("0.01"),
        unit_price=UnitPrice(unit=SECOND, price_units=usdc(price), step=5, most=600),
        required_fields=("fileBase64", "fileName"),
        file_extensions=(".wav",),
    )
    register(endpoint, Listener())


@attrs.define
class Listener:
    """Reads the recording in a sandbox, as everything that a buyer sent."""

    name: str = "melody"
    traits: Traits = attrs.field(factory=lambda: Traits(idempotent_submit=True))
    _sandbox: Sandbox = attrs.field(factory=lambda: Sandbox(function=f"{_CHILD}:transcribe"))

    async def submit(self, request: GenerationRequest, job: Job) -> Result:
        """Return the notes."""
        assert request.attachment is not None  # the declaration demands it
        try:
            midi = await self._sandbox.call(request.attachment.data)
        except (SandboxRefusal, SandboxEnded) as error:
            raise InvalidInput("The recording cannot be read.") from error
        except SandboxLost as error:
            raise Transient("The recording cannot be read now.") from error
        return Result(outputs=(Output(data=midi, media_type="audio/midi"),))

    async def close(self) -> None:
        """End the process."""
        self._sandbox.close()
