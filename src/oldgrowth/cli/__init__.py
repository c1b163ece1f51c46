"""The command line. What must be known before libraries are loaded is set here."""

import os

try:
    import resource
except ImportError:  # Windows
    _LIMITED = False
else:
    _LIMITED = resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY

# No command needs linear algebra; OpenBLAS would start a thread for each core, with memory of its own.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
if _LIMITED:  # by ulimit -v: Arrow's own allocator reserves a gigabyte of addresses at once
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
