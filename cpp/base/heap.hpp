// Controls what the heap does with freed memory. No effect with C libraries other than glibc.
#pragma once

namespace oldgrowth {

// Returns free memory to the system.
void release_memory();

// From now on, large blocks are returned to the system as soon as they are freed, and threads share a few heaps for
// small blocks. By default, each thread keeps tens of megabytes.
void return_memory_when_freed();

// From now on, all threads share one heap, also after `return_memory_when_freed`: each other heap reserves 64 MB of
// addresses. To be called before there are threads.
void share_one_heap();

// From now on, blocks of up to 32 MB stay in the process when they are freed, to be used again.
void keep_freed_memory();

}  // namespace oldgrowth
