"""What has to be ordered before a stack can run: a section of the README, and files to hand on."""
