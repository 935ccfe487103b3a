"""DistributeTranspiler: one program becomes the programs of trainers and parameter servers."""
