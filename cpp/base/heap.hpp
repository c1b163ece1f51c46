// Controls what the heap does with freed memory. No effect with C libraries other than glibc.
#pragma once

#include <cstddef>

namespace oldgrowth {

// Returns free memory to the system.
void release_memory();

// From now on, blocks of up to so many bytes (at least 1 MB, at most 32 MB) stay in the process when they are freed, to
// be used again. Larger ones are returned to the system at once.
void keep_freed_blocks(std::size_t most_bytes);

// From now on, threads share a few heaps. By default, each thread has its own and keeps tens of megabytes.
void share_few_heaps();

// From now on, all threads share one heap, also after `share_few_heaps`: each other heap reserves 64 MB of addresses.
// To be called before there are threads.
void share_one_heap();

}  // namespace oldgrowth
