"""The codec's activation as a kernel."""

from __future__ import annotations

import torch
from device_kernels import DEVICE

from inference.convolution import Snake
from inference.cuda.snake import FusedSnake, fuse_snakes


def test_the_kernel_is_the_activation():
    torch.manual_seed(0)
    model = torch.nn.Sequential(Snake(5), Snake(5)).to(DEVICE).requires_grad_(False)
    for snake in model:
        snake.alpha.uniform_(0.1, 3)
    x = torch.randn(2, 5, 1500, device=DEVICE)
    with torch.inference_mode():
        expected = model(x)
        fuse_snakes(model)
        assert all(type(snake) is FusedSnake for snake in model)
        torch.testing.assert_close(model(x), expected, atol=1e-6, rtol=1e-5)
