"""Where the tests of the kernels run: on the GPU if there is one, else on the CPU, in Triton's interpreter.

Import it before anything of `inference.cuda`: the interpreter is chosen when a kernel is defined.
"""

from __future__ import annotations

import os

import pytest
import torch

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
if DEVICE.type == "cpu":
    os.environ["TRITON_INTERPRET"] = "1"
pytest.importorskip("triton", reason="there is no Triton for this platform")
