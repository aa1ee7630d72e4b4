"""Names in a manifest → facts. `gpuplan.resolve.run.resolve` is the way in."""
