"""The additional scenes for edits of a provider whose pictures are tested in full.

Jobs, submits, refusals and logs are the same code, and are tested with the pictures.
"""

from gateway.testing import ProviderContract
from gateway_testing.provider.contract import LogScenes
from gateway_testing.provider.jobs import JobScenes
from gateway_testing.provider.refusals import RefusalScenes
from gateway_testing.provider.submits import SubmitScenes

_THE_SAME = {
    name: None
    for scenes in (JobScenes, LogScenes, RefusalScenes, SubmitScenes)
    for name in vars(scenes)
    if name.startswith("test_")
}
EditsContract = type("EditsContract", (ProviderContract,), _THE_SAME)
