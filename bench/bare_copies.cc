// SPDX-License-Identifier: BSD-2-Clause
// How fast are the system's copies and wake-ups alone, on which queue pairs within a host rest?
//
// usage: weft_bare_copies OPERATION METRIC SIZE SECONDS SERVER_CORE,CLIENT_CORE
//
// OPERATION and METRIC are words of bench/runner/cases.py; kFloors below says what stands for each.
// Two processes use nothing but a system call or a cache line for an operation, and check nothing.
// Prints one line of JSON, with the unit of the metric.
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>
#include <vector>

#include "failure.h"
#include "process.h"
#include "timed_pieces.h"

namespace weft::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Word = std::atomic<std::uint64_t>;

constexpr std::size_t kLine = 64;      // bytes of a cache line
constexpr std::size_t kPiece = 64;     // operations that are timed together
constexpr std::size_t kElements = 16;  // of a list
constexpr std::size_t kCells = 256;    // of a ring
constexpr std::size_t kCellsPerCredit = 64;

struct Cell {
  alignas(kLine) Word number;  // of the message
  alignas(kLine) std::array<char, kLine> payload;
};

// Memory that both processes map.
struct Shared {
  alignas(kLine) Word to_server;
  alignas(kLine) Word to_client;
  std::array<Cell, kCells> ring;
};

// One of two processes of which one is a fork of the other, so that all addresses are equal.
struct Side {
  std::size_t size;
  double seconds;
  Shared& shared;
  int to_server, to_client;  // eventfds
  std::vector<char> memory;
  alignas(kLine) Word word = 0;
  bool is_server = false;
  pid_t peer = 0;
};

// Copies ELEMENTS of LENGTH bytes each between the memories of both processes by one call.
template <class Call>
void copy(Side& side, Call call, std::size_t length, std::size_t elements = 1) {
  std::array<iovec, kElements> vector{};
  for (std::size_t i = 0; i < elements; ++i) vector[i] = {side.memory.data() + i * length, length};
  check_system(call(side.peer, vector.data(), elements, vector.data(), elements, 0), "copy");
}

// The client repeats the operation; the server sleeps.
template <class Operation>
double seconds_alone(Side& side, Operation operation) {
  while (side.is_server) pause();
  return seconds_of_each(side.seconds, kPiece, operation);
}

// Half a round trip, in microseconds; messages are numbered.
template <class Send, class Await>
double ping_pong(Side& side, Send send, Await await) {
  std::uint64_t number = 0;
  while (side.is_server) {
    await(++number);
    send(number);
  }
  return 1e6 / 2 * seconds_of_each(side.seconds, kPiece, [&] {
           send(++number);
           await(number);
         });
}

void await_number(const Word& word, std::uint64_t number) {
  while (word.load(std::memory_order_acquire) != number) {
  }
}

double lines(Side& side) {
  Word& out = side.is_server ? side.shared.to_client : side.shared.to_server;
  Word& in = side.is_server ? side.shared.to_server : side.shared.to_client;
  return ping_pong(
      side, [&](std::uint64_t number) { out.store(number, std::memory_order_release); },
      [&](std::uint64_t number) { await_number(in, number); });
}

double write_ping_pong(Side& side) {
  return ping_pong(
      side,
      [&](std::uint64_t number) {
        const iovec local{&number, sizeof number};
        const iovec remote{&side.word, sizeof side.word};
        check_system(process_vm_writev(side.peer, &local, 1, &remote, 1, 0), "process_vm_writev");
      },
      [&](std::uint64_t number) { await_number(side.word, number); });
}

double wake_ups(Side& side) {
  const int out = side.is_server ? side.to_client : side.to_server;
  const int in = side.is_server ? side.to_server : side.to_client;
  return ping_pong(
      side, [&](std::uint64_t) { check_system(eventfd_write(out, 1), "eventfd_write"); },
      [&](std::uint64_t) {
        eventfd_t count = 0;
        check_system(eventfd_read(in, &count), "eventfd_read");
      });
}

double read_latency(Side& side) {
  return 1e6 * seconds_alone(side, [&] { copy(side, process_vm_readv, side.size); });
}

// Without a lock.
double read_and_write(Side& side) {
  return 1e6 * seconds_alone(side, [&] {
           copy(side, process_vm_readv, side.size);
           copy(side, process_vm_writev, side.size);
         });
}

double gigabytes_read(Side& side) {
  return 1e-9 * side.size / seconds_alone(side, [&] { copy(side, process_vm_readv, side.size); });
}

double gigabytes_written(Side& side) {
  return 1e-9 * side.size / seconds_alone(side, [&] { copy(side, process_vm_writev, side.size); });
}

// Each process copies one half of every message, both at once.
double gigabytes_of_both(Side& side) {
  while (side.is_server) copy(side, process_vm_readv, side.size / 2);
  return 1e-9 * side.size / seconds_of_each(side.seconds, kPiece, [&] {
           copy(side, process_vm_writev, side.size / 2);
         });
}

// Millions of elements per second.
double list_rate(Side& side) {
  return 1e-6 * kElements /
         seconds_alone(side, [&] { copy(side, process_vm_writev, side.size, kElements); });
}

// Millions of messages per second through a ring of cells; each payload is copied in and out.
double ring_rate(Side& side) {
  Word& consumed = side.shared.to_client;
  std::uint64_t number = 0;
  while (side.is_server) {
    Cell& cell = side.shared.ring[++number % kCells];
    await_number(cell.number, number);
    std::memcpy(side.memory.data(), cell.payload.data(), kLine);
    if (number % kCellsPerCredit == 0) consumed.store(number, std::memory_order_release);
  }
  const auto begin = Clock::now();
  const auto end = begin + std::chrono::duration<double>(side.seconds);
  while (Clock::now() < end) {
    for (std::size_t i = 0; i < kPiece; ++i) {
      Cell& cell = side.shared.ring[++number % kCells];
      while (number - consumed.load(std::memory_order_acquire) > kCells) {
      }
      std::memcpy(cell.payload.data(), side.memory.data(), kLine);
      cell.number.store(number, std::memory_order_release);
    }
  }
  return 1e-6 * number / std::chrono::duration<double>(Clock::now() - begin).count();
}

struct Floor {
  std::string_view operation, metric;
  std::size_t size;  // 0: any
  double (*measure)(Side&);
};

constexpr Floor kFloors[] = {
    {"tagged", "latency", sizeof(Word), lines},
    {"tagged", "event_latency", sizeof(Word), wake_ups},
    {"tagged", "rate", kLine, ring_rate},
    {"tagged", "bandwidth", 0, gigabytes_of_both},
    {"rma_write", "poll_latency", sizeof(Word), write_ping_pong},
    {"rma_write", "list_rate", kLine, list_rate},
    {"rma_write", "bandwidth", 0, gigabytes_written},
    {"rma_read", "latency", 0, read_latency},
    {"rma_read", "bandwidth", 0, gigabytes_read},
    {"fetch_add", "latency", sizeof(Word), read_and_write},
};

Shared& map_shared() {
  void* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  check_system(memory == MAP_FAILED ? -1 : 0, "mmap");
  return *new (memory) Shared{};
}

int event() { return static_cast<int>(check_system(eventfd(0, 0), "eventfd")); }

double measure(const Floor& floor, std::size_t size, double seconds, const Cores& cores) {
  Side side{size,    seconds, map_shared(),
            event(), event(), std::vector<char>(std::max(size, kLine * kElements))};
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);  // the server may not copy otherwise under Yama
  const pid_t client = getpid();
  const pid_t server = fork();
  check_system(server, "fork");
  side.is_server = server == 0;
  side.peer = side.is_server ? client : server;
  if (side.is_server) prctl(PR_SET_PDEATHSIG, SIGKILL);
  pin_to(side.is_server ? cores.server : cores.client);
  std::ranges::fill(side.memory, 1);  // pages of its own
  const double value = floor.measure(side);
  kill(server, SIGKILL);
  return value;
}

}  // namespace
}  // namespace weft::bench

int main(int count, char** words) {
  using namespace weft::bench;
  Cores cores{};
  if (count != 6 || std::sscanf(words[5], "%d,%d", &cores.server, &cores.client) != 2) {
    std::fprintf(stderr, "usage: %s OPERATION METRIC SIZE SECONDS SERVER_CORE,CLIENT_CORE\n",
                 words[0]);
    return 2;
  }
  const std::size_t size = std::strtoul(words[3], nullptr, 10);
  const auto* const floor = std::ranges::find_if(kFloors, [&](const Floor& each) {
    return each.operation == words[1] && each.metric == words[2] &&
           (each.size == 0 || each.size == size);
  });
  if (size == 0 || floor == std::end(kFloors)) die("no such floor", words[1]);
  const double value = measure(*floor, size, std::strtod(words[4], nullptr), cores);
  std::printf("{\"metric\": \"%s\", \"size\": %zu, \"value\": %.6f}\n", words[2], size, value);
  return 0;
}
