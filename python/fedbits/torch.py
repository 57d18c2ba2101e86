"""Compressed gradients in loops of PyTorch, in one process or in several.

    optimizer = fedbits.torch.Compressed(torch.optim.SGD(model.parameters(), lr=0.1), fedbits.TopK(ratio=0.01))

replaces an optimizer: step() compresses the gradient of all parameters as one vector, with a memory of the error, and steps with what was sent.
In several processes of torch.distributed every process sends its message to all others, and steps with the mean of the messages.

    hook = fedbits.torch.ddp_hook(fedbits.TopK(ratio=0.01)).register(model)     # a DistributedDataParallel

does the same between the backward pass and any optimizer. `bits` is the exact length of the messages that this process has sent.
"""
from fedbits.torch_hook import DdpHook, ddp_hook
from fedbits.torch_model import Model, dataset
from fedbits.torch_optimizer import Compressed

__all__ = ["Compressed", "DdpHook", "Model", "dataset", "ddp_hook"]
