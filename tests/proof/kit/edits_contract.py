"""The scenes of the kit that an edit adds where one provider, tested in full, sells pictures, too.

Jobs, submits, refusals and logs are those of the pictures: the same code meets the same answers.
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
