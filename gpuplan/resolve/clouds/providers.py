"""The clouds whose clusters can be planned, by the catalogue's name of the provider."""

from gpuplan.resolve.clouds.aws import AWS
from gpuplan.resolve.clouds.google import GOOGLE

PROVIDERS = {provider.name: provider for provider in (AWS, GOOGLE)}
