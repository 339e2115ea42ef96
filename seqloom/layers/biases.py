"""Networks without biases."""

import torch
from torch import nn


def leave_out_biases(net: nn.Module) -> None:
    """Put zeros that nothing learns or stores in the place of every bias: to all that asks for one, kernels and exports
    among them, it is there."""
    for part in net.modules():
        if isinstance(part._parameters.get("bias"), nn.Parameter):
            zeros = torch.zeros_like(part.get_parameter("bias"), requires_grad=False)
            del part.bias
            part.register_buffer("bias", zeros, persistent=False)
