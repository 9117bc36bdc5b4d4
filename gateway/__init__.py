"""The gateway process: WebSocket endpoints, text segmentation, outbox and the engine client."""
