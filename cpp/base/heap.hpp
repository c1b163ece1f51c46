// Controls what the heap does with freed memory. No effect with C libraries other than glibc.
#pragma once

namespace oldgrowth {

// Returns free memory to the system.
void release_memory();

// From now on, large blocks are returned to the system as soon as they are freed, and threads share a few heaps for
// small blocks. By default, each thread keeps tens of megabytes.
void return_memory_when_freed();

}  // namespace oldgrowth
