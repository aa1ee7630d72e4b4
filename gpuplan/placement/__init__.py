"""Workloads on hardware. `gpuplan.placement.place.place` is the way in."""
