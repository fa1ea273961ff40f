// SPDX-License-Identifier: BSD-2-Clause
// How is one collective operation checked in its blocking and in its non-blocking form alike?
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "check.h"

namespace weft::mpi_test {

using Values = std::vector<std::int64_t>;

// What rank `rank` puts in at element `index`: no two alike, small enough that no reduction
// overflows.
inline std::int64_t element(int rank, std::size_t index) {
  return (rank + 1) * std::int64_t{1000003} + static_cast<std::int64_t>(index) * 7;
}

inline Values contribution(int rank, std::size_t count) {
  Values values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = element(rank, i);
  return values;
}

// Sum of all contributions of ranks `first` to `last` (exclusive).
inline Values sum_of(int first, int last, std::size_t count) {
  Values values(count, 0);
  for (int rank = first; rank < last; ++rank) {
    for (std::size_t i = 0; i < count; ++i) values[i] += element(rank, i);
  }
  return values;
}

// Runs `call(request)` twice: with a null request it must make the blocking call, else the
// non-blocking one, which is then waited for. `prepare` runs before each, `check` after each.
template <class Prepare, class Call, class Check>
void both_forms(const std::string& what, Prepare prepare, Call call, Check check) {
  prepare();
  succeeded(call(static_cast<MPI_Request*>(nullptr)), what);
  check(what);
  prepare();
  MPI_Request request = MPI_REQUEST_NULL;
  succeeded(call(&request), what + ", non-blocking");
  succeeded(MPI_Wait(&request, MPI_STATUS_IGNORE), what + ", waited for");
  check(what + ", non-blocking");
}

}  // namespace weft::mpi_test
