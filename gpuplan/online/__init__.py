"""What only a network knows: digests of images and charts, commits of models. `gpuplan lock
--online` and `gpuplan catalog update --from` alone come here; nothing that compiles does."""
