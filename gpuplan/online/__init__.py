"""What only a network knows: digests of images and charts, commits of models. `gpuplan lock
--online` alone comes here; nothing that compiles does."""
