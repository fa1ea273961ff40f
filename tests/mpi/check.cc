// SPDX-License-Identifier: BSD-2-Clause
// How does an MPI test find a wrong value, and how does it end?
#include "check.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace weft::mpi_test {

namespace {

// The finaliser of MurmurHash3: every bit of the input moves about half of the output's.
std::uint64_t mix(std::uint64_t value) {
  value ^= value >> 33;
  value *= 0xff51afd7ed558ccdULL;
  value ^= value >> 33;
  value *= 0xc4ceb9fe1a85ec53ULL;
  return value ^ (value >> 33);
}

std::uint64_t word(std::uint64_t stream, std::size_t index) {
  return (stream | 1) * 0x9e3779b97f4a7c15ULL + index * 0xd1342543de82ef95ULL;
}

}  // namespace

void stop(const std::string& what) {
  int rank = -1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::fprintf(stderr, "FAILED on rank %d: %s\n", rank, what.c_str());
  std::fflush(stderr);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

void require(bool holds, const std::string& what) {
  if (!holds) stop(what);
}

void succeeded(int status, const std::string& what) {
  if (status == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(status, text, &length);
  stop(what + ": " + text);
}

Group::Group(MPI_Comm communicator) : comm(communicator) {
  succeeded(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
  succeeded(MPI_Comm_size(comm, &size), "MPI_Comm_size");
}

std::uint32_t pattern(std::uint64_t stream, std::size_t index) {
  return static_cast<std::uint32_t>(mix(word(stream, index)));
}

std::uint64_t stream_of(int source, int destination, int number) {
  return mix((static_cast<std::uint64_t>(source) << 48) ^
             (static_cast<std::uint64_t>(destination) << 32) ^ static_cast<std::uint64_t>(number));
}

std::vector<std::uint8_t> pattern_bytes(std::uint64_t stream, std::size_t bytes) {
  std::vector<std::uint8_t> data(bytes);
  for (std::size_t at = 0; at < bytes; at += sizeof(std::uint64_t)) {
    const std::uint64_t value = word(stream, at);
    std::memcpy(data.data() + at, &value, std::min(sizeof value, bytes - at));
  }
  return data;
}

void require_pattern(std::span<const std::uint8_t> got, std::uint64_t stream,
                     const std::string& what) {
  for (std::size_t at = 0; at < got.size(); at += sizeof(std::uint64_t)) {
    const std::uint64_t value = word(stream, at);
    const std::size_t bytes = std::min(sizeof value, got.size() - at);
    if (std::memcmp(got.data() + at, &value, bytes) != 0) {
      stop(what + ": wrong data within bytes " + std::to_string(at) + " to " +
           std::to_string(at + bytes) + " of " + std::to_string(got.size()));
    }
  }
}

}  // namespace weft::mpi_test
