// SPDX-License-Identifier: BSD-2-Clause
// What words do the MPI tests share: a failed requirement, a pattern of data, a communicator with
// its shape?
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace weft::mpi_test {

// Prints `what` with the rank in MPI_COMM_WORLD and ends all ranks with status 1.
[[noreturn]] void stop(const std::string& what);

void require(bool holds, const std::string& what);

// An MPI call's return value must be MPI_SUCCESS; `what` names the call.
void succeeded(int status, const std::string& what);

// A communicator, its size and this process's place in it. Does not own the communicator.
struct Group {
  explicit Group(MPI_Comm communicator);
  MPI_Comm comm;
  int rank = 0;
  int size = 0;
};

// The value of element `index` of a message named by `stream`: any two streams differ almost
// everywhere.
std::uint32_t pattern(std::uint64_t stream, std::size_t index);

// A name for a message: its source, its destination and its number.
std::uint64_t stream_of(int source, int destination, int number);

std::vector<std::uint8_t> pattern_bytes(std::uint64_t stream, std::size_t bytes);

// Requires `got` to be stream `stream` from its first byte to its last; `what` names the message.
void require_pattern(std::span<const std::uint8_t> got, std::uint64_t stream,
                     const std::string& what);

template <class T>
void require_equal(const T& got, const T& wanted, const std::string& what) {
  if (got != wanted) {
    stop(what + ": got " + std::to_string(got) + ", not " + std::to_string(wanted));
  }
}

template <class T>
void require_equal(const std::vector<T>& got, const std::vector<T>& wanted,
                   const std::string& what) {
  require_equal(got.size(), wanted.size(), what + ": length");
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (got[i] != wanted[i])
      require_equal(got[i], wanted[i], what + ": element " + std::to_string(i));
  }
}

// The tests, each one a group of rules; each returns only when all of them held on this rank.
void test_halo_exchange();
void test_message_sizes();
void test_send_modes();
void test_matching();
void test_probing();
void test_cancelled_receives();
void test_collectives(const Group& group, const std::string& where);
void test_vector_collectives(const Group& group, const std::string& where);
void test_communicators();
void test_windows();

}  // namespace weft::mpi_test
