// SPDX-License-Identifier: BSD-2-Clause
// Does MPI, over whatever transport it was told to use, give every rank the right data?
//
// Run as `mpirun -n RANKS weft_mpi [quickly]`; any number of ranks from 1; quickly: without what
// takes longest with many ranks, communicators and windows. Ends with status 0 and one line on rank
// 0 when every value was right; at the first wrong one all ranks end with status 1 and the rank
// that saw it says what.
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "check.h"

namespace weft::mpi_test {

void test_communicators() {
  const Group world(MPI_COMM_WORLD);
  MPI_Comm copy = MPI_COMM_NULL;
  MPI_Comm parity = MPI_COMM_NULL;
  MPI_Comm reversed = MPI_COMM_NULL;
  MPI_Comm_dup(world.comm, &copy);
  MPI_Comm_split(world.comm, world.rank % 2, world.rank, &parity);
  MPI_Comm_split(world.comm, 0, -world.rank, &reversed);
  require_equal(Group(reversed).rank, world.size - 1 - world.rank,
                "rank in the reversed communicator");
  for (const auto& [comm, name] :
       {std::pair{copy, "a copy of the world"}, std::pair{parity, "one parity"},
        std::pair{reversed, "the reversed world"}, std::pair{MPI_COMM_SELF, "self"}}) {
    const Group group(comm);
    test_collectives(group, name);
    test_vector_collectives(group, name);
  }
  // Tags and sources alike, only the communicator differs: it must be enough to tell two messages
  // apart.
  int in_copy = -1;
  int in_world = -1;
  const int next = (world.rank + 1) % world.size;
  MPI_Request requests[4];
  MPI_Irecv(&in_world, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, world.comm, &requests[0]);
  MPI_Irecv(&in_copy, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, copy, &requests[1]);
  const int for_copy = 1;
  const int for_world = 2;
  MPI_Isend(&for_copy, 1, MPI_INT, next, 5, copy, &requests[2]);
  MPI_Isend(&for_world, 1, MPI_INT, next, 5, world.comm, &requests[3]);
  succeeded(MPI_Waitall(4, requests, MPI_STATUSES_IGNORE), "MPI_Waitall over two communicators");
  require_equal(in_copy, for_copy, "message in the copied communicator");
  require_equal(in_world, for_world, "message in the world");
  for (MPI_Comm* comm : {&copy, &parity, &reversed}) MPI_Comm_free(comm);
}

namespace {

void run_all(bool quickly) {
  const Group world(MPI_COMM_WORLD);
  const auto stage = [&](const char* name) {
    MPI_Barrier(world.comm);
    if (world.rank == 0) std::printf("%s\n", name), std::fflush(stdout);
  };
  stage("halo exchange");
  test_halo_exchange();
  stage("message sizes");
  test_message_sizes();
  stage("send modes");
  test_send_modes();
  stage("matching");
  test_matching();
  stage("probing");
  test_probing();
  stage("cancelled receives");
  test_cancelled_receives();
  stage("collectives");
  test_collectives(world, "the world");
  test_vector_collectives(world, "the world");
  if (!quickly) {
    stage("communicators");
    test_communicators();
    stage("windows");
    test_windows();
  }
  stage("every value was right");
}

}  // namespace

}  // namespace weft::mpi_test

int main(int argc, char** argv) {
  if (MPI_Init(&argc, &argv) != MPI_SUCCESS) return 1;
  weft::mpi_test::run_all(argc > 1 && std::string_view(argv[1]) == "quickly");
  return MPI_Finalize() == MPI_SUCCESS ? 0 : 1;
}
