"""``fluid.contrib.decoder``: recurrent decoders for training and for beam search."""

from fluidnb.contrib.decoder.beam_search_decoder import BeamSearchDecoder, InitState, StateCell, TrainingDecoder

__all__ = ["BeamSearchDecoder", "InitState", "StateCell", "TrainingDecoder"]
