"""The stages of a fit: sample, top trees, distribute, grow, assemble."""
