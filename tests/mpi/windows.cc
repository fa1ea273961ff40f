// SPDX-License-Identifier: BSD-2-Clause
// Does one-sided communication give every rank the right data? MPI 3.1, chapter 11
//
// A model says what every window must hold. Where the order of updates is open only results that
// any order gives are compared: sums, and that no two ranks were given the same ticket.
#include <algorithm>
#include <memory>

#include "check.h"

namespace weft::mpi_test {
namespace {

constexpr int kBytes =
    40'000;  // of each rank's part in a window: some are copied, some read in place
constexpr int kTickets = 200;   // that each rank draws
constexpr int kElements = 129;  // of accumulated vectors
constexpr int kRivals = 3;      // at most, for a lock: a waiting rank takes time from its holder

// A window over memory of ours: what MPI allocates itself it may share between the ranks of a host,
// and then the transport has nothing to do.
class Window {
 public:
  Window(const Group& group, std::size_t bytes) : memory_(bytes) {
    succeeded(MPI_Win_create(memory_.data(), static_cast<MPI_Aint>(bytes), 1, MPI_INFO_NULL,
                             group.comm, &win_),
              "MPI_Win_create");
  }
  ~Window() { MPI_Win_free(&win_); }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  MPI_Win win() const { return win_; }
  template <class T>
  std::span<T> as(std::size_t count) {
    return {reinterpret_cast<T*>(memory_.data()), count};
  }

 private:
  std::vector<std::uint8_t> memory_;
  MPI_Win win_ = MPI_WIN_NULL;
};

// Everyone puts a stream into each rank's window, at a place of its own, and gets its own back.
void test_put_and_get(const Group& group) {
  Window window(group, static_cast<std::size_t>(kBytes) * group.size);
  std::vector<std::vector<std::uint8_t>> sent;
  MPI_Win_fence(0, window.win());
  for (int to = 0; to < group.size; ++to) {
    sent.push_back(pattern_bytes(stream_of(group.rank, to, 0), kBytes));
    MPI_Put(sent.back().data(), kBytes, MPI_BYTE, to, MPI_Aint{kBytes} * group.rank, kBytes,
            MPI_BYTE, window.win());
  }
  MPI_Win_fence(0, window.win());
  for (int from = 0; from < group.size; ++from) {
    require_pattern(window.as<std::uint8_t>(static_cast<std::size_t>(kBytes) * group.size)
                        .subspan(static_cast<std::size_t>(kBytes) * from, kBytes),
                    stream_of(from, group.rank, 0), "MPI_Put");
  }
  MPI_Win_fence(0, window.win());
  std::vector<std::uint8_t> got(kBytes);
  for (int of = 0; of < group.size; ++of) {
    MPI_Win_lock(MPI_LOCK_SHARED, of, 0, window.win());
    MPI_Get(got.data(), kBytes, MPI_BYTE, of, MPI_Aint{kBytes} * group.rank, kBytes, MPI_BYTE,
            window.win());
    MPI_Win_unlock(of, window.win());
    require_pattern(got, stream_of(group.rank, of, 0), "MPI_Get");
  }
  MPI_Barrier(group.comm);
}

// Tickets of one counter on rank 0: every number is given out exactly once.
void test_fetch_and_op(const Group& group) {
  Window window(group, sizeof(std::int64_t));
  std::vector<std::int64_t> mine(kTickets);
  const std::int64_t one = 1;
  MPI_Win_lock_all(0, window.win());
  for (std::int64_t& ticket : mine) {
    MPI_Fetch_and_op(&one, &ticket, MPI_INT64_T, 0, 0, MPI_SUM, window.win());
    MPI_Win_flush(0, window.win());
  }
  MPI_Win_unlock_all(window.win());
  require_equal(std::is_sorted(mine.begin(), mine.end()), true, "tickets of one rank grow");
  std::vector<std::int64_t> all(static_cast<std::size_t>(kTickets) * group.size);
  MPI_Allgather(mine.data(), kTickets, MPI_INT64_T, all.data(), kTickets, MPI_INT64_T, group.comm);
  std::sort(all.begin(), all.end());
  for (std::size_t i = 0; i < all.size(); ++i) {
    require_equal(all[i], static_cast<std::int64_t>(i), "ticket");
  }
}

// A lock made of compare-and-swap guards two words that are read and written without further care.
// Rank 0, where they are, takes no part: Open MPI 4.1 has no key for a rank's own memory there, and
// falls over it.
void test_compare_and_swap(const Group& group) {
  enum Word : MPI_Aint { kLock = 0, kFirst = 8, kSecond = 16 };
  Window window(group, 24);
  MPI_Win win = window.win();
  const std::int64_t free = 0;
  const std::int64_t taken = group.rank + 1;
  MPI_Win_lock_all(0, win);
  const bool takes_part = group.rank != 0 && group.rank <= kRivals;
  for (int i = 0; takes_part && i < kTickets / 10; ++i) {
    std::int64_t holder = -1;
    do {
      MPI_Compare_and_swap(&taken, &free, &holder, MPI_INT64_T, 0, kLock, win);
      MPI_Win_flush(0, win);
    } while (holder != free);
    std::int64_t words[2];
    MPI_Get(words, 2, MPI_INT64_T, 0, kFirst, 2, MPI_INT64_T, win);
    MPI_Win_flush(0, win);
    require_equal(words[1], -words[0], "two words under one lock");
    ++words[0];
    --words[1];
    MPI_Put(words, 2, MPI_INT64_T, 0, kFirst, 2, MPI_INT64_T, win);
    MPI_Win_flush(0, win);
    MPI_Compare_and_swap(&free, &taken, &holder, MPI_INT64_T, 0, kLock, win);
    MPI_Win_flush(0, win);
    require_equal(holder, taken, "the lock is still mine");
  }
  MPI_Win_unlock_all(win);
  MPI_Barrier(group.comm);
  if (group.rank != 0) return;
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
  const auto words = window.as<std::int64_t>(3);
  require_equal(words[1], std::int64_t{kTickets / 10} * std::min(group.size - 1, kRivals),
                "increments under the lock");
  require_equal(words[0], free, "the lock in the end");
  MPI_Win_unlock(0, win);
}

// What `op` makes of all ranks' elements `i`, starting with zero.
template <class T, class Fold>
T folded(const Group& group, int i, Fold fold) {
  T value{};
  for (int rank = 0; rank < group.size; ++rank)
    value = fold(value, static_cast<T>((rank * 7 + i) % 23));
  return value;
}

template <class T, class Fold>
void test_accumulate(const Group& group, MPI_Datatype type, MPI_Op op, Fold fold,
                     const std::string& name) {
  Window window(group, kElements * sizeof(T));
  std::vector<T> mine(kElements);
  for (int i = 0; i < kElements; ++i) mine[i] = static_cast<T>((group.rank * 7 + i) % 23);
  MPI_Win_fence(0, window.win());
  for (int to = 0; to < group.size; ++to) {
    MPI_Accumulate(mine.data(), kElements, type, to, 0, kElements, type, op, window.win());
  }
  MPI_Win_fence(0, window.win());
  const auto result = window.as<T>(kElements);
  for (int i = 0; i < kElements; ++i) {
    require_equal(result[i], folded<T>(group, i, fold), name + ": element " + std::to_string(i));
  }
  MPI_Barrier(group.comm);
}

void test_accumulates(const Group& group) {
  const auto sum = [](auto a, auto b) { return static_cast<decltype(a)>(a + b); };
  const auto most = [](auto a, auto b) { return std::max(a, b); };
  const auto either = [](auto a, auto b) { return static_cast<decltype(a)>(a | b); };
  const auto one_of = [](auto a, auto b) { return static_cast<decltype(a)>(a ^ b); };
  test_accumulate<std::int32_t>(group, MPI_INT32_T, MPI_SUM, sum, "sum of int32");
  test_accumulate<std::int64_t>(group, MPI_INT64_T, MPI_SUM, sum, "sum of int64");
  test_accumulate<double>(group, MPI_DOUBLE, MPI_SUM, sum, "sum of double");
  test_accumulate<float>(group, MPI_FLOAT, MPI_MAX, most, "maximum of float");
  test_accumulate<std::uint64_t>(group, MPI_UINT64_T, MPI_MAX, most, "maximum of uint64");
  test_accumulate<std::uint32_t>(group, MPI_UINT32_T, MPI_BOR, either, "or of uint32");
  test_accumulate<std::uint8_t>(group, MPI_UINT8_T, MPI_BXOR, one_of, "exclusive or of uint8");
}

// Each rank adds a vector and is given what was there before: the vectors that one element was
// given differ, and their greatest is what lacks only one rank's share.
void test_get_accumulate(const Group& group) {
  Window window(group, kElements * sizeof(std::int64_t));
  const std::vector<std::int64_t> ones(kElements, 1);
  std::vector<std::int64_t> before(kElements, -1);
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window.win());
  MPI_Get_accumulate(ones.data(), kElements, MPI_INT64_T, before.data(), kElements, MPI_INT64_T, 0,
                     0, kElements, MPI_INT64_T, MPI_SUM, window.win());
  MPI_Win_unlock(0, window.win());
  std::vector<std::int64_t> all(static_cast<std::size_t>(kElements) * group.size);
  MPI_Allgather(before.data(), kElements, MPI_INT64_T, all.data(), kElements, MPI_INT64_T,
                group.comm);
  for (int i = 0; i < kElements; ++i) {
    std::vector<std::int64_t> given;
    for (int rank = 0; rank < group.size; ++rank) given.push_back(all[rank * kElements + i]);
    std::sort(given.begin(), given.end());
    for (int k = 0; k < group.size; ++k)
      require_equal(given[k], std::int64_t{k}, "MPI_Get_accumulate");
  }
}

}  // namespace

void test_windows() {
  const Group world(MPI_COMM_WORLD);
  test_put_and_get(world);
  test_fetch_and_op(world);
  test_compare_and_swap(world);
  test_accumulates(world);
  test_get_accumulate(world);
}

}  // namespace weft::mpi_test
