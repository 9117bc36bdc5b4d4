"""One thread for the small models of these tests: on busy cores two wait for each other longer than they compute."""

from __future__ import annotations

import torch

torch.set_num_threads(1)
