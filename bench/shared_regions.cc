// SPDX-License-Identifier: BSD-2-Clause
// What is gained by sharing a memory region between processes?
//
// usage: weft_shared_regions [MEBIBYTES]    (default: 1024)
//
// Prints a Markdown table: the time that a process takes to attach to a region of that size beside
// registering fresh memory, the first touch of 2 MiB pages beside base pages, and readers of one
// region beside readers that each get a copy. Each figure is the median of runs, in a new process.
#include <infiniband/verbs.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "failure.h"

namespace weft::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Figures = std::vector<double>;  // milliseconds

constexpr std::size_t kPage = 4096;
constexpr int kRuns = 5;
constexpr int kReaders = 4;
constexpr std::size_t kCopied = std::size_t{64} << 20;
constexpr const char* kLargestBlock = "MLX_MR_MAX_LOG2_CONTIG_BSIZE";

template <class Object>
Object* required(Object* object, const char* what) {
  check_system(object != nullptr ? 0 : -1, what);
  return object;
}

template <class Act>
double milliseconds_of(const Act& act) {
  const auto begin = Clock::now();
  act();
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

ibv_pd* open_domain() {
  ibv_device** const devices = required(ibv_get_device_list(nullptr), "ibv_get_device_list");
  ibv_context* const context = required(ibv_open_device(devices[0]), "ibv_open_device");
  ibv_free_device_list(devices);
  return required(ibv_alloc_pd(context), "ibv_alloc_pd");
}

ibv_mr* create(ibv_pd* pd, std::size_t bytes, std::uint64_t grants) {
  ibv_exp_reg_mr_in in{};
  in.pd = pd;
  in.length = bytes;
  in.exp_access = IBV_EXP_ACCESS_LOCAL_WRITE | IBV_EXP_ACCESS_ALLOCATE_MR | grants;
  return required(ibv_exp_reg_mr(&in), "ibv_exp_reg_mr");
}

ibv_mr* attach(ibv_pd* pd, std::uint32_t id) {
  ibv_exp_reg_shared_mr_in in{};
  in.mr_handle = id;
  in.pd = pd;
  return required(ibv_exp_reg_shared_mr(&in), "ibv_exp_reg_shared_mr");
}

void write_pages(void* memory, std::size_t bytes) {
  auto* const at = static_cast<volatile std::byte*>(memory);
  for (std::size_t i = 0; i < bytes; i += kPage) at[i] = std::byte{1};
}

void read_pages(const void* memory, std::size_t bytes) {
  const auto* const at = static_cast<const volatile std::byte*>(memory);
  for (std::size_t i = 0; i < bytes; i += kPage) static_cast<void>(at[i]);
}

std::uint64_t sum(const void* memory, std::size_t bytes) {
  const auto* const words = static_cast<const std::uint64_t*>(memory);
  return std::accumulate(words, words + bytes / sizeof *words, std::uint64_t{0});
}

// The figures that `measure` returns in a new process.
Figures in_child(const std::function<Figures()>& measure) {
  int ends[2];
  check_system(::pipe(ends), "pipe");
  const pid_t child = ::fork();
  check_system(child, "fork");
  if (child == 0) {
    const Figures figures = measure();
    const std::size_t bytes = figures.size() * sizeof(double);
    _exit(::write(ends[1], figures.data(), bytes) == static_cast<ssize_t>(bytes) ? 0 : 1);
  }
  ::close(ends[1]);
  Figures figures;
  for (double figure = 0; ::read(ends[0], &figure, sizeof figure) == sizeof figure;)
    figures.push_back(figure);
  ::close(ends[0]);
  int status = -1;
  check_system(::waitpid(child, &status, 0), "waitpid");
  if (status != 0) die("a child", "has failed");
  return figures;
}

// The median of each figure.
Figures medians(const std::function<Figures()>& measure) {
  std::vector<Figures> runs;
  for (int i = 0; i < kRuns; ++i) runs.push_back(in_child(measure));
  Figures result;
  for (std::size_t i = 0; i < runs.front().size(); ++i) {
    std::ranges::sort(runs, {}, [&](const Figures& run) { return run[i]; });
    result.push_back(runs[kRuns / 2][i]);
  }
  return result;
}

// Runs `act` while a process has a region of that size, whose blocks are at most 2^order bytes.
void beside_creator(std::size_t bytes, const char* order,
                    const std::function<void(std::uint32_t id)>& act) {
  in_child([&] {
    ::setenv(kLargestBlock, order, 1);
    ibv_pd* const pd = open_domain();
    ibv_mr* const region = create(pd, bytes, IBV_EXP_ACCESS_SHARED_MR_USER_READ);
    write_pages(region->addr, bytes);
    act(region->handle);
    std::fflush(stdout);
    ibv_dereg_mr(region);
    return Figures{};
  });
}

void print(const char* what, double figure) { std::printf("| %s | %.2f |\n", what, figure); }

void measure_attaching(std::size_t bytes, std::uint32_t id, const char* pages) {
  const Figures attached = medians([&] {
    ibv_pd* const pd = open_domain();
    ibv_mr* region = nullptr;
    const double attaching = milliseconds_of([&] { region = attach(pd, id); });
    return Figures{attaching, milliseconds_of([&] { read_pages(region->addr, bytes); })};
  });
  print((std::string("attach, ") + pages).c_str(), attached[0]);
  print((std::string("first touch of an attached region, ") + pages).c_str(), attached[1]);
}

void measure_fresh_memory(std::size_t bytes) {
  const Figures fresh = medians([&] {
    ibv_pd* const pd = open_domain();
    void* memory = nullptr;
    const double registering = milliseconds_of([&] {
      memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      required(ibv_reg_mr(pd, memory, bytes, IBV_ACCESS_LOCAL_WRITE), "ibv_reg_mr");
    });
    return Figures{registering, milliseconds_of([&] { write_pages(memory, bytes); })};
  });
  print("register fresh memory", fresh[0]);
  print("first touch of fresh memory", fresh[1]);
}

void measure_allocation(std::size_t bytes, const char* order, const char* pages) {
  const Figures allocated = medians([&] {
    ::setenv(kLargestBlock, order, 1);
    ibv_pd* const pd = open_domain();
    ibv_mr* region = nullptr;
    const double allocating = milliseconds_of([&] { region = create(pd, bytes, 0); });
    return Figures{allocating, milliseconds_of([&] { write_pages(region->addr, bytes); })};
  });
  print((std::string("allocate, ") + pages).c_str(), allocated[0]);
  print((std::string("first touch of an allocated region, ") + pages).c_str(), allocated[1]);
}

// All readers at a time, each of which reads all bytes once it has them.
double milliseconds_of_readers(const std::function<void()>& read) {
  return milliseconds_of([&] {
    for (int i = 0; i < kReaders; ++i) {
      const pid_t child = ::fork();
      check_system(child, "fork");
      if (child == 0) {
        read();
        _exit(0);
      }
    }
    for (int i = 0; i < kReaders; ++i) check_system(::wait(nullptr), "wait");
  });
}

void measure_readers() {
  in_child([] {
    ibv_pd* const pd = open_domain();
    ibv_mr* const region = create(pd, kCopied, IBV_EXP_ACCESS_SHARED_MR_USER_READ);
    write_pages(region->addr, kCopied);
    const pid_t writer = ::getpid();
    void* const source = region->addr;
    Figures shared;
    Figures copied;
    volatile std::uint64_t result = 0;
    for (int run = 0; run < kRuns; ++run) {
      shared.push_back(milliseconds_of_readers(
          [&] { result = sum(attach(open_domain(), region->handle)->addr, kCopied); }));
      copied.push_back(milliseconds_of_readers([&] {
        ibv_pd* const own = open_domain();
        std::vector<std::byte> memory(kCopied);
        required(ibv_reg_mr(own, memory.data(), kCopied, IBV_ACCESS_LOCAL_WRITE), "ibv_reg_mr");
        const iovec to{memory.data(), kCopied};
        const iovec from{source, kCopied};
        check_system(::process_vm_readv(writer, &to, 1, &from, 1, 0), "process_vm_readv");
        result = sum(memory.data(), kCopied);
      }));
    }
    std::ranges::sort(shared);
    std::ranges::sort(copied);
    print("4 readers of one region of 64 MiB", shared[kRuns / 2]);
    print("4 readers that each copy 64 MiB by process_vm_readv(2)", copied[kRuns / 2]);
    std::fflush(stdout);
    ibv_dereg_mr(region);
    return Figures{};
  });
}

void measure_all(std::size_t bytes) {
  std::printf("| %zu MiB | ms |\n|---|---|\n", bytes >> 20);
  std::fflush(stdout);
  for (const auto& [order, pages] : {std::pair{"23", "2 MiB pages"}, std::pair{"12", "base pages"}})
    beside_creator(bytes, order, [&](std::uint32_t id) { measure_attaching(bytes, id, pages); });
  measure_fresh_memory(bytes);
  for (const auto& [order, pages] : {std::pair{"23", "2 MiB pages"}, std::pair{"12", "base pages"}})
    measure_allocation(bytes, order, pages);
  std::fflush(stdout);
  measure_readers();
}

}  // namespace
}  // namespace weft::bench

int main(int count, char** words) {
  const std::size_t mebibytes = count > 1 ? std::strtoull(words[1], nullptr, 10) : 1024;
  if (mebibytes < 2) return 2;
  weft::bench::measure_all(mebibytes << 20);
  return 0;
}
