"""The model and the two stages that run it: slow AR, fast AR, codec, scheduler, connector."""
