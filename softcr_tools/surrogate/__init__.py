"""Training and judging surrogates: `softcr train`, `softcr verify-surrogate`."""
