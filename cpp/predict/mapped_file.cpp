#include "predict/mapped_file.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/node.hpp"

namespace oldgrowth {
namespace {

// Longer than the time resolution of file systems, which is at most 10 ms.
constexpr std::int64_t kTick = 20'000'000, kWrongClock = 1'000'000'000;

std::atomic<MappedFile::Region*> regions = nullptr;
struct sigaction previous_action;
std::atomic<bool> passed_on = false;

std::uintptr_t page_size() {
  static const auto size = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  return size;
}

MappedFile::Region* region_at(std::uintptr_t address) {
  for (MappedFile::Region* region = regions.load(); region != nullptr; region = region->next)
    if (address >= region->begin.load() && address < region->end.load()) return region;
  return nullptr;
}

// Replaces a lost page by a page of leaves: walks end there, and the mapping is marked as lost.
bool replace_page(std::uintptr_t address) {
  const std::uintptr_t page = page_size();
  void* const place = reinterpret_cast<void*>(address / page * page);
  void* const made = mmap(place, page, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) return false;
  std::fill_n(static_cast<Node*>(made), page / sizeof(Node), leaf(0));
  return true;
}

void on_lost_page(int number, siginfo_t* info, void*) {
  const int error = errno;
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  MappedFile::Region* const region = info->si_code > 0 ? region_at(address) : nullptr;
  if (region != nullptr && replace_page(address)) {
    region->lost.store(true);
    errno = error;
    return;
  }
  // Not one of our mappings: the signal is raised again for the previous handler, and a second time for the default.
  struct sigaction next = previous_action;
  if (passed_on.exchange(true)) {
    next = {};
    next.sa_handler = SIG_DFL;
  }
  sigaction(number, &next, nullptr);
  if (info->si_code <= 0) raise(number);
  errno = error;
}

MappedFile::Region* take_region() {
  for (MappedFile::Region* region = regions.load(); region != nullptr; region = region->next)
    if (!region->used.exchange(true)) return region;
  auto* region = new MappedFile::Region;
  region->used = true;
  region->next = regions.load();
  while (!regions.compare_exchange_weak(region->next, region)) {
  }
  return region;
}

std::int64_t nanoseconds(const timespec& time) { return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; }

}  // namespace

void guard_mappings() {
  static std::mutex installing;
  struct sigaction now;
  if (sigaction(SIGBUS, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_lost_page) return;
  const std::lock_guard lock(installing);
  sigaction(SIGBUS, nullptr, &now);
  if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_lost_page) return;
  previous_action = now;
  passed_on = false;
  page_size();  // computed outside of the handler
  struct sigaction ours = {};
  ours.sa_sigaction = on_lost_page;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGBUS, &ours, nullptr);
}

MappedFile::MappedFile(int fd) : fd_(fcntl(fd, F_DUPFD_CLOEXEC, 0)) {
  if (fd_ < 0) throw std::system_error(errno, std::generic_category());
  struct stat status;
  void* mapped = nullptr;  // of an empty file, which cannot be mapped
  const bool known = fstat(fd_, &status) == 0;
  if (known && status.st_size > 0)
    mapped = mmap(nullptr, static_cast<std::size_t>(status.st_size), PROT_READ, MAP_SHARED, fd_, 0);
  if (!known || mapped == MAP_FAILED) {
    const int error = errno;
    close(fd_);
    throw std::system_error(error, std::generic_category());
  }
  data_ = static_cast<std::byte*>(mapped);
  size_ = static_cast<std::size_t>(status.st_size);
  region_ = take_region();
  region_->lost = false;
  region_->end = reinterpret_cast<std::uintptr_t>(data_) + size_;
  region_->begin = reinterpret_cast<std::uintptr_t>(data_);
  guard_mappings();
}

MappedFile::~MappedFile() {
  region_->end = 0;
  region_->begin = 0;
  if (size_ > 0) munmap(data_, size_);
  close(fd_);
  region_->used = false;
}

bool MappedFile::holds(const void* begin, std::size_t bytes) const {
  const auto* from = static_cast<const std::byte*>(begin);
  return from >= data_ && from <= data_ + size_ && bytes <= static_cast<std::size_t>(data_ + size_ - from);
}

void MappedFile::evict(const void* begin, std::size_t bytes) const {
  if (bytes == 0 || !holds(begin, bytes)) return;  // heap memory would be wiped
  // The mapping begins on a page, so that rounding down stays within it; the system rounds up to the end of a page,
  // and the mapping ends with one.
  const auto from = reinterpret_cast<std::uintptr_t>(begin), first = from / page_size() * page_size();
  madvise(reinterpret_cast<void*>(first), from + bytes - first, MADV_DONTNEED);
}

FileStamp MappedFile::stamp() const {
  struct stat status;
  if (fstat(fd_, &status) != 0) return {-1, 0, 0};
#if defined(__APPLE__)
  return {status.st_size, nanoseconds(status.st_mtimespec), nanoseconds(status.st_ctimespec)};
#else
  return {status.st_size, nanoseconds(status.st_mtim), nanoseconds(status.st_ctim)};
#endif
}

bool FileStamp::settled() const {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  const std::int64_t age = nanoseconds(now) - changed;
  return age > kTick || age < -kWrongClock;
}

}  // namespace oldgrowth
