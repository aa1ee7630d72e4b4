"""Lists that `gpuplan catalog` prints."""
