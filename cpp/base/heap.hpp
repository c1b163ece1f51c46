// What the C library's heap does with memory that is freed; no effect where it is not glibc's.
#pragma once

namespace oldgrowth {

// Gives memory that is free back to the system.
void release_memory();

// From now on large blocks go back to the system as soon as they are freed, and threads share a few heaps for small
// ones. By default each thread keeps tens of megabytes for itself.
void return_memory_when_freed();

}  // namespace oldgrowth
