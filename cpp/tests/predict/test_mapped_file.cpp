// Forests mapped from files: evicted while they are used, truncated, changed and overwritten meanwhile.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/crc32c.hpp"
#include "predict/forest.hpp"
#include "predict/predict.hpp"
#include "tests/check.hpp"

using namespace oldgrowth;

namespace {

constexpr std::size_t kFeatures = 5, kRows = 3000;
std::mt19937_64 bits = test::random_bits(7);

std::size_t below(std::size_t n) { return bits() % n; }

// A file without a name.
struct File {
  int fd;

  File() {
    std::FILE* made = std::tmpfile();
    CHECK(made != nullptr);
    fd = dup(fileno(made));
    CHECK(fd >= 0);
    std::fclose(made);
  }
  explicit File(const std::string& bytes) : File() { write(bytes, 0); }
  ~File() { close(fd); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void write(const std::string& bytes, std::size_t at) const {
    CHECK(pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(at)) == static_cast<ssize_t>(bytes.size()));
  }
  void truncate(std::size_t size) const { CHECK(ftruncate(fd, static_cast<off_t>(size)) == 0); }
};

template <class T>
std::string bytes_of(const std::vector<T>& items) {
  return {reinterpret_cast<const char*>(items.data()), items.size() * sizeof(T)};
}

// One top tree with many buckets of three trees each, with or without mixed leaves.
struct Made {
  NodeFormat format{kFeatures};
  std::uint32_t n_classes;
  bool mixed;
  std::vector<Node> top_nodes, nodes;
  std::vector<std::uint64_t> top_start{0}, bucket_start{0}, trees_of_top{3}, bottom_start{0}, node_start{0},
      table_start{0};
  std::vector<float> table;
  std::vector<std::uint32_t> tree_crc;

  Made(std::uint32_t classes, bool has_mixed, std::size_t bottom_depth) : n_classes(classes), mixed(has_mixed) {
    std::uint64_t buckets = 0;
    grow(top_nodes, 4, [&] { return leaf(buckets++); });
    top_start.push_back(top_nodes.size());
    bucket_start.push_back(buckets);
    bottom_start.push_back(3 * buckets);
    for (std::uint64_t b = 0; b < 3 * buckets; ++b) add_tree(bottom_depth);
  }

  Forest forest() const {
    return {kFeatures,    n_classes, top_nodes,  top_start,   bucket_start, trees_of_top,
            bottom_start, nodes,     node_start, table_start, table,        tree_crc};
  }

 private:
  template <class Leaf>
  void grow(std::vector<Node>& to, std::size_t depth, const Leaf& make_leaf) {
    const std::size_t at = to.size();
    if (depth == 0) {
      to.push_back(make_leaf());
      return;
    }
    const auto feature = static_cast<std::uint32_t>(below(kFeatures));
    to.push_back(format.inner(static_cast<float>(below(100)), feature, below(2) == 1));
    grow(to, depth - 1, make_leaf);
    to[at] = format.with_right(to[at], to.size() - at);
    grow(to, depth - 1, make_leaf);
  }

  void add_tree(std::size_t depth) {
    const std::size_t first_node = nodes.size(), first_float = table.size();
    std::uint64_t rows = 0;
    grow(nodes, depth, [&] {
      if (n_classes == 0) return value_leaf(static_cast<double>(below(1000)));
      if (!mixed || below(2) == 0) return leaf(below(n_classes));
      for (std::uint32_t c = 0; c < n_classes; ++c) table.push_back(static_cast<float>(below(8)));
      return leaf(kMixedBit | rows++);
    });
    node_start.push_back(nodes.size());
    table_start.push_back(table_start.back() + rows);
    const std::uint32_t crc = crc32c(nodes.data() + first_node, (nodes.size() - first_node) * sizeof(Node));
    tree_crc.push_back(crc32c(table.data() + first_float, (table.size() - first_float) * sizeof(float), crc));
  }
};

// The same forest with nodes and table in one file, as a model file has them, or in two, as a fit on disk has them.
struct Mapped {
  File nodes_file, table_file;
  std::vector<std::unique_ptr<MappedFile>> files;
  std::vector<const MappedFile*> pointers;
  std::unique_ptr<TreeChecks> checks;
  Forest forest;
  static constexpr std::size_t kTable = 1 << 20;  // where the table begins in a file of both

  Mapped(const Made& made, bool one_file) : checks(new TreeChecks(made.tree_crc.size())), forest(made.forest()) {
    nodes_file.write(bytes_of(made.nodes), 0);
    (one_file ? nodes_file : table_file).write(bytes_of(made.table), one_file ? kTable : 0);
    map(nodes_file.fd);
    forest.nodes = {reinterpret_cast<const Node*>(files[0]->data()), made.nodes.size()};
    if (!made.table.empty()) {  // else it is on the heap, as it is after a fit without mixed leaves
      if (!one_file) map(table_file.fd);
      const std::byte* at = one_file ? files[0]->data() + kTable : files[1]->data();
      forest.table = {reinterpret_cast<const float*>(at), made.table.size()};
    }
    forest.checks = checks.get();
    forest.files = pointers;
  }

 private:
  void map(int fd) {
    files.push_back(std::make_unique<MappedFile>(fd));
    pointers.push_back(files.back().get());
  }
};

std::vector<float> some_rows() {
  std::vector<float> x(kRows * kFeatures);
  for (float& value : x) value = static_cast<float>(below(100));
  return x;
}

struct Predicted {
  std::vector<double> sums, votes;
  std::vector<std::int64_t> leaves;
  bool operator==(const Predicted&) const = default;
};

Predicted predicted(const Forest& forest, const std::vector<float>& x, std::size_t n, bool evict) {
  Predicted found{std::vector<double>(n * forest.outputs()), std::vector<double>(n * forest.outputs()),
                  std::vector<std::int64_t>(n * 3)};
  const RowsIn rows{x.data(), n, false, evict};
  predict_sums(forest, rows, false, found.sums.data());
  predict_sums(forest, rows, true, found.votes.data());
  apply(forest, rows, found.leaves.data());
  return found;
}

template <class Work>
std::string error_of(const Work& work) {
  try {
    work();
  } catch (const DamagedTree&) {
    return "damaged";
  } catch (const LostPages&) {
    return "lost";
  } catch (const ChangingFile&) {
    return "changing";
  }
  return "";
}

// Every kind of forest: in memory and mapped from one file or two; values, pure and mixed classes; few rows and many.
void evictions_change_nothing() {
  for (const auto& [classes, mixed] : {std::pair{0U, false}, {3U, false}, {3U, true}, {20U, false}, {20U, true}}) {
    const Made made(classes, mixed, 9);
    const std::vector<float> x = some_rows();
    // Heap memory that must stay as it is, on the pages of the arrays.
    const std::vector<Node> nodes = made.nodes;
    const std::vector<float> table = made.table;
    const Mapped one(made, true), two(made, false);
    for (const std::size_t n : {std::size_t{1}, std::size_t{40}, kRows}) {
      const Predicted expected = predicted(made.forest(), x, n, false);
      for (const Forest& forest : {made.forest(), one.forest, two.forest})
        for (int again = 0; again < 2; ++again) CHECK(predicted(forest, x, n, true) == expected);
    }
    CHECK(made.nodes == nodes && made.table == table);
  }
}

void only_mapped_memory_is_evicted() {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const File file(std::string(3 * page, 'f'));
  const MappedFile mapped(file.fd);
  std::vector<char> heap(8 * page, 'h');
  mapped.evict(heap.data(), heap.size());
  mapped.evict(heap.data(), 0);
  mapped.evict(nullptr, 0);
  CHECK(heap == std::vector<char>(8 * page, 'h'));
  // A neighbour in memory of the mapping is not part of it.
  mapped.evict(mapped.data() + 2 * page, 2 * page);
  mapped.evict(mapped.data() + page + 5, page);
  for (std::size_t i = 0; i < 3 * page; ++i) CHECK(mapped.data()[i] == std::byte{'f'});
}

void evicted_trees_are_checked_again() {
  const Made made(3, true, 6);
  const std::vector<float> x = some_rows();
  Mapped mapped(made, true);
  predicted(mapped.forest, x, kRows, true);
  // The bytes change, and nothing but the bytes says so: the stamp of what is mapped is that of another file.
  const File other(bytes_of(made.nodes) + std::string(1 << 16, '\0'));
  Node flipped = made.nodes.back() ^ 1;
  CHECK(mprotect(const_cast<std::byte*>(mapped.files[0]->data()), 4096, PROT_READ) == 0);
  void* const page_of_it =
      reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(&mapped.forest.nodes.back()) / 4096 * 4096);
  const std::size_t offset = static_cast<std::size_t>(static_cast<std::byte*>(page_of_it) - mapped.files[0]->data());
  other.write(std::string(reinterpret_cast<const char*>(&flipped), 8), (made.nodes.size() - 1) * 8);
  CHECK(mmap(page_of_it, 4096, PROT_READ, MAP_SHARED | MAP_FIXED, other.fd, static_cast<off_t>(offset)) == page_of_it);
  CHECK(error_of([&] { predicted(mapped.forest, x, kRows, true); }) == "damaged");
}

void truncated_files_are_errors() {
  const std::vector<float> x = some_rows();
  for (const std::size_t n : {std::size_t{1}, kRows})
    for (const bool used_before : {false, true}) {
      const Made made(20, true, 9);
      const Mapped mapped(made, true);
      if (used_before) predicted(mapped.forest, x, n, false);
      mapped.nodes_file.truncate(4096);
      const std::string error = error_of([&] { predicted(mapped.forest, x, n, false); });
      CHECK(error == "lost" || (error == "damaged" && mapped.files[0]->lost()));
      mapped.nodes_file.write(bytes_of(made.nodes), 0);  // the pages that were lost do not come back
      CHECK(!error_of([&] { predicted(mapped.forest, x, n, false); }).empty());
    }
}

void changed_files_are_errors_and_touched_ones_are_not() {
  const Made made(20, true, 9), other(20, true, 9);
  const std::vector<float> x = some_rows();
  const Mapped mapped(made, true);
  const Predicted expected = predicted(mapped.forest, x, kRows, false);
  CHECK(futimens(mapped.nodes_file.fd, nullptr) == 0);
  mapped.nodes_file.write(bytes_of(made.nodes), 0);
  CHECK(predicted(mapped.forest, x, kRows, false) == expected);
  mapped.nodes_file.write(bytes_of(other.nodes), 0);
  CHECK(error_of([&] { predicted(mapped.forest, x, kRows, false); }) == "damaged");
  mapped.nodes_file.write(bytes_of(made.nodes), 0);
  CHECK(predicted(mapped.forest, x, kRows, false) == expected);
}

// Another program truncates the file, and writes other trees, noise and the right trees, while rows are predicted: what
// comes out is right, or an error.
void files_that_change_at_any_time_are_safe() {
  for (const bool may_truncate : {false, true})
    for (const std::size_t n : {std::size_t{40}, kRows}) {
      const Made made(20, true, 9), other(20, true, 9);
      const std::vector<float> x = some_rows();
      const Predicted expected = predicted(made.forest(), x, n, false);
      const Mapped mapped(made, true);
      std::string noise = bytes_of(made.nodes);
      for (char& byte : noise) byte = static_cast<char>(bits());
      std::atomic<bool> stop = false;
      std::thread writer([&] {
        for (int i = 0; !stop; ++i) {
          if (may_truncate && i % 8 == 7) mapped.nodes_file.truncate(0);
          mapped.nodes_file.write(i % 3 == 0 ? noise : i % 3 == 1 ? bytes_of(other.nodes) : bytes_of(made.nodes), 0);
        }
      });
      for (int i = 0; i < 150; ++i) error_of([&] { CHECK(predicted(mapped.forest, x, n, i % 2 == 1) == expected); });
      stop = true;
      writer.join();
    }
}

// A fault that is not ours ends the process, by the handler that was there before.
void other_faults_are_passed_on() {
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGBUS, [](int) { _exit(42); });
    const File file(std::string(4096, 'f'));
    const MappedFile mapped(file.fd);
    auto* outside = static_cast<volatile char*>(mmap(nullptr, 4096, PROT_READ, MAP_SHARED, file.fd, 0));
    file.truncate(0);
    _exit(outside[0] == 0 ? 1 : 2);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 42);
}

}  // namespace

int main() {
  evictions_change_nothing();
  only_mapped_memory_is_evicted();
  evicted_trees_are_checked_again();
  truncated_files_are_errors();
  changed_files_are_errors_and_touched_ones_are_not();
  files_that_change_at_any_time_are_safe();
  other_faults_are_passed_on();
}
