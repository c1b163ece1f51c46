// A memory-mapped file for reading. Other programs may truncate or change it meanwhile: reading it never kills the
// process, and changes since it was opened are detected.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <stdexcept>

namespace oldgrowth {

// Identifies the state of a file: its size and the times of the last changes of contents and metadata.
struct FileStamp {
  std::int64_t size = 0, modified = 0, changed = 0;  // bytes, nanoseconds since the epoch

  bool operator==(const FileStamp&) const = default;
  // Whether a change from now on would show: file systems round times to a few milliseconds.
  bool settled() const;
};

// Pages of the mapping are no longer in the file, or cannot be read.
struct LostPages : std::runtime_error {
  LostPages() : runtime_error("a part of the file is gone or cannot be read") {}
};

class MappedFile {
 public:
  // Maps all of the open file; keeps a file descriptor of its own. Throws std::system_error.
  explicit MappedFile(int fd);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  bool holds(const void* begin, std::size_t bytes) const;

  // Evicts the pages of some bytes of the mapping, including pages that they share with neighbours. They are read
  // from the file again on the next use. Bytes outside the mapping are ignored.
  void evict(const void* begin, std::size_t bytes) const;

  // Whether a page was found to be lost.
  bool lost() const { return region_->lost.load(std::memory_order_relaxed); }

  FileStamp stamp() const;

  // The data of a mapping that the handler of SIGBUS uses. Never freed, but reused.
  struct Region {
    std::atomic<std::uintptr_t> begin = 0, end = 0;
    std::atomic<bool> lost = false;
    std::atomic<bool> used = false;
    Region* next = nullptr;
  };

 private:
  int fd_ = -1;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  Region* region_ = nullptr;
};

// Makes sure that a lost page of a mapping does not kill the process, even if others installed a handler of SIGBUS.
void guard_mappings();

}  // namespace oldgrowth
