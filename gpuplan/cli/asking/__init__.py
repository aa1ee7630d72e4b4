"""What `gpuplan init` asks and writes."""
