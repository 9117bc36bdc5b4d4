"""What runs on CUDA devices alone: kernels, graphs, and the runners made of them.  Nothing else imports it, and a
process without such a device never does."""
