"""fedbits in Python: a simulator of federated learning, and compressors for its messages, with their exact bits.

    import fedbits, numpy

    gradient = numpy.random.default_rng(1).standard_normal(1_000_000).astype("float32")
    message = fedbits.TopK(ratio=0.01).compress(gradient, client=3, round=7)
    print(message.bits, message.nbytes, message.decode()[:5])

Every compressor and every error feedback of the simulator is a class here: `fedbits.compressors()` and `fedbits.feedbacks()` list them. A message
has the bytes that the simulator sends for the same seed, client and round.

    store = fedbits.run("scenarios/library/quickstart.toml")
    store.comparison()
    store.report()

run and sweep play scenarios as the command line does; Scenario, plan, suggest and check help to write them. fedbits.plot draws the charts of the report,
fedbits.export writes for other programs, and `import fedbits.torch` adds compressors for the gradients of PyTorch.
"""
import importlib

from fedbits.build import build_info  # first: it says what this processor lacks, where _core could not run
from fedbits import _core, _ending
from fedbits._core import ConfigError, DataError, DeviceError, Error, MessageOverflow, StoreError
from fedbits.compressors import Compressor, Contract, Memory, Message, compressors
from fedbits.compressors import CLASSES as _COMPRESSORS
from fedbits.data import Dataset
from fedbits.feedbacks import CLASSES as _FEEDBACKS
from fedbits.feedbacks import Feedback, feedbacks
from fedbits.models import DataFacts, Model, Partitioner, Request, Rows
from fedbits.progress import Progress
from fedbits.scenario import Scenario
from fedbits.simulator import Check, check, plan, run, suggest, sweep
from fedbits.store import Report, Store, StudyWarning

_CLASSES = _COMPRESSORS | _FEEDBACKS
__version__ = _core.version
__all__ = ["Check", "Compressor", "ConfigError", "Contract", "DataError", "DataFacts", "Dataset", "DeviceError", "Error", "Feedback", "Memory", "Message",
           "MessageOverflow", "Model", "Partitioner", "Progress", "Report", "Request", "Rows", "Scenario", "Store", "StoreError", "StudyWarning", "build_info", "check",
           "compressors", "feedbacks", "plan", "run", "suggest", "sweep", *sorted(_CLASSES)]


def __getattr__(name):
    if name in _CLASSES:
        return _CLASSES[name]
    if name in ("export", "plot"):
        return importlib.import_module(f"fedbits.{name}")
    from fedbits.arguments import nearest

    hint = nearest(name, __dir__()) or "; fedbits.compressors() and fedbits.feedbacks() list the parts"
    raise AttributeError(f"fedbits has no {name!r}{hint}")


def __dir__():
    return sorted([*__all__, "export", "plot"])
