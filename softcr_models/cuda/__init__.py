"""The exact rod on CUDA: `rod.cu`, several lanes of a warp to a candidate."""
