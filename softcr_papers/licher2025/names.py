"""What this paper adds to the study of the GPU."""

from softcr_runtime.settings.registry import Entry, Names

NAMES: Names = {
    "training on a GPU": {
        "network, trained until it is good enough": Entry(
            "softcr_papers.licher2025.gpu_training:until_good_enough", "GPU"
        ),
        "network, training": Entry(
            "softcr_papers.licher2025.gpu_training:on_processor", "processor, all cores"
        ),
    },
}  # fmt: skip
