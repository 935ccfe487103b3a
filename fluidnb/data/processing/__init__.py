"""Processing of a saved model's images and results, as the ``inference.yml`` beside the model describes it."""

from fluidnb.data.processing.config import ProcessingConfig, read_config
from fluidnb.data.processing.regions import Region
from fluidnb.data.processing.results import Box, Label, Text, postprocess
from fluidnb.data.processing.steps import preprocess

__all__ = ["Box", "Label", "ProcessingConfig", "Region", "Text", "postprocess", "preprocess", "read_config"]
