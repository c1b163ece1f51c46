"""The process of the command `oldgrowth`. What libraries read when they are loaded is set here.

Only this process may be set so: a program that imports the command line keeps its libraries as they are.
"""

import os
import sys

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]


def _prepare_libraries() -> None:
    # No command needs linear algebra; OpenBLAS would start a thread for each core, with memory of its own.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if resource is None or resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY:
        return
    # Under ulimit -v, addresses are scarce: Arrow's own allocator reserves a gigabyte at once.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    from .. import _core

    _core.share_one_heap()


def main() -> None:
    _prepare_libraries()
    from .main import run

    sys.exit(run())
