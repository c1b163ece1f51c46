"""The disk of the client: trees and out-of-bag votes are stored there."""

from __future__ import annotations

from ..errors import ClientDiskError
from ..planning.disk_plan import DiskNeeds
from ..planning.memory_model import MemoryModel
from ..storage.checkpoint_dir import bytes_used
from ..system.limits import disk_space, nearest_existing


def check_client_disk(model: MemoryModel) -> None:
    """Refuse a fit whose trees and votes have no room, before rows are distributed."""
    needs, limits = DiskNeeds.of(model.plan, model.sizes), model.limits
    free = disk_space(nearest_existing(limits.directory)).free + bytes_used(limits.checkpoint_dir)
    if needs.votes + needs.log + needs.forest > free:
        raise ClientDiskError(limits.directory, needs.log + needs.forest, needs.votes, free)
