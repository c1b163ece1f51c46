"""The memory of the subsets baseline, where it differs: rows are not distributed."""

from __future__ import annotations

from ..plan import Plan
from ..system.limits import Limits
from .memory_model import MemoryModel
from .sizes import Sizes


def memory_model_of(plan: Plan, sizes: Sizes, limits: Limits) -> MemoryModel:
    """The model for a plan."""
    return (SubsetMemoryModel if plan.subsets else MemoryModel)(plan, sizes, limits)


class SubsetMemoryModel(MemoryModel):
    @property
    def fixed_store(self) -> tuple[str, str] | None:
        """As votes are not saved, trees must not be either."""
        return ("memory", "the out-of-bag votes of subsets are kept there") if self.plan.oob else None

    @property
    def advice(self) -> str:
        return f"{'Fewer trees or a' if self.plan.oob else 'A'} smaller subset_size needs less."

    def fewest_distributed(self, chunk_rows: int) -> int:
        return 0

    @property
    def rows_in_memory(self) -> int:
        return 0

    @property
    def grown_in_memory(self) -> int:
        samples = 4 * self.plan.top_sample * self.sizes.n_trees if self.sizes.oob else 0
        return super().grown_in_memory + samples

    def growing(self, workers: int, bucket_rows: int) -> int:
        return min(workers, self.sizes.n_tops) * self.top_tree()
