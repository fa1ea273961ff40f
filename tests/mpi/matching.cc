// SPDX-License-Identifier: BSD-2-Clause
// Does a message meet the right receive: wildcards, order between two processes, probes, cancelled
// receives?
#include <array>
#include <string>
#include <utility>

#include "check.h"

namespace weft::mpi_test {

namespace {

constexpr int kPerSender = 200;
constexpr int kLateTag = 7777;

std::size_t length_of(int number) {
  constexpr std::array<std::size_t, 5> kLengths{4, 100, 3000, 20000, 150000};
  return kLengths[static_cast<std::size_t>(number) % kLengths.size()];
}

void send_numbered(const Group& world, int peer, int number, int tag) {
  const auto out = pattern_bytes(stream_of(world.rank, peer, number), length_of(number));
  succeeded(MPI_Send(out.data(), static_cast<int>(out.size()), MPI_BYTE, peer, tag, world.comm),
            "MPI_Send");
}

void check_numbered(const Group& world, const std::vector<std::uint8_t>& in,
                    const MPI_Status& status, int number, const std::string& what) {
  int count = -1;
  MPI_Get_count(&status, MPI_BYTE, &count);
  require_equal(static_cast<std::size_t>(count), length_of(number), what + ": length");
  require_pattern({in.data(), static_cast<std::size_t>(count)},
                  stream_of(status.MPI_SOURCE, world.rank, number), what);
}

// Everybody sends to rank 0, which takes anything; between two processes order must hold.
void take_anything(const Group& world) {
  if (world.rank != 0) {
    for (int number = 0; number < kPerSender; ++number) send_numbered(world, 0, number, number % 3);
    return;
  }
  std::vector<int> next(static_cast<std::size_t>(world.size), 0);
  for (int left = kPerSender * (world.size - 1); left > 0; --left) {
    std::vector<std::uint8_t> in(150000);
    MPI_Status status{};
    succeeded(MPI_Recv(in.data(), static_cast<int>(in.size()), MPI_BYTE, MPI_ANY_SOURCE,
                       MPI_ANY_TAG, world.comm, &status),
              "MPI_Recv from any source");
    const int number = next.at(static_cast<std::size_t>(status.MPI_SOURCE))++;
    require_equal(status.MPI_TAG, number % 3, "tag of a message taken by wildcard");
    check_numbered(world, in, status, number, "message taken by wildcard");
  }
}

// A receive for one tag must pass over earlier messages with another.
void pass_over(const Group& world) {
  const int next = (world.rank + 1) % world.size;
  const int before = (world.rank + world.size - 1) % world.size;
  MPI_Request sends[2];
  const auto first = pattern_bytes(stream_of(world.rank, next, 1), length_of(1));
  const auto second = pattern_bytes(stream_of(world.rank, next, 2), length_of(2));
  MPI_Isend(first.data(), static_cast<int>(first.size()), MPI_BYTE, next, 11, world.comm,
            &sends[0]);
  MPI_Isend(second.data(), static_cast<int>(second.size()), MPI_BYTE, next, 22, world.comm,
            &sends[1]);
  std::vector<std::uint8_t> in(150000);
  MPI_Status status{};
  for (const auto& [tag, number] : {std::pair{22, 2}, std::pair{11, 1}}) {
    MPI_Recv(in.data(), static_cast<int>(in.size()), MPI_BYTE, MPI_ANY_SOURCE, tag, world.comm,
             &status);
    require_equal(status.MPI_SOURCE, before, "source of a message taken by tag");
    check_numbered(world, in, status, number, "message taken by tag");
  }
  succeeded(MPI_Waitall(2, sends, MPI_STATUSES_IGNORE), "MPI_Waitall");
}

enum class Look { kProbe, kIprobe, kMprobe, kImprobe };

// Looks for the next message in the given way, then receives exactly what was seen.
void look_and_take(const Group& world, Look look, int source, int number) {
  MPI_Status status{};
  MPI_Message message = MPI_MESSAGE_NULL;
  int seen = 0;
  switch (look) {
    case Look::kProbe:
      succeeded(MPI_Probe(source, number, world.comm, &status), "MPI_Probe");
      break;
    case Look::kIprobe:
      while (seen == 0)
        succeeded(MPI_Iprobe(source, number, world.comm, &seen, &status), "MPI_Iprobe");
      break;
    case Look::kMprobe:
      succeeded(MPI_Mprobe(source, MPI_ANY_TAG, world.comm, &message, &status), "MPI_Mprobe");
      break;
    case Look::kImprobe:
      while (seen == 0) {
        succeeded(MPI_Improbe(source, number, world.comm, &seen, &message, &status), "MPI_Improbe");
      }
      break;
  }
  int count = -1;
  MPI_Get_count(&status, MPI_BYTE, &count);
  std::vector<std::uint8_t> in(static_cast<std::size_t>(count));
  MPI_Status taken{};
  if (message == MPI_MESSAGE_NULL) {
    MPI_Recv(in.data(), count, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, world.comm, &taken);
  } else {
    succeeded(MPI_Mrecv(in.data(), count, MPI_BYTE, &message, &taken), "MPI_Mrecv");
  }
  check_numbered(world, in, taken, number,
                 "message seen by probe " + std::to_string(static_cast<int>(look)));
}

void nothing_to_probe(const Group& world) {
  int seen = 0;
  for (int i = 0; i < 20; ++i) {
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, world.comm, &seen, MPI_STATUS_IGNORE);
    require_equal(seen, 0, "MPI_Iprobe with nothing sent");
  }
}

// Waits for a cancelled receive and requires that it was cancelled, not completed.
void await_cancelled(MPI_Request* request, const std::string& what) {
  succeeded(MPI_Cancel(request), "MPI_Cancel");
  MPI_Status status{};
  succeeded(MPI_Wait(request, &status), "MPI_Wait for a cancelled receive");
  int cancelled = 0;
  MPI_Test_cancelled(&status, &cancelled);
  require(cancelled != 0, what + " was not cancelled");
}

// A message longer than its receive is an error of the receive, fills what there is, and costs
// nothing else.
void too_long(const Group& world) {
  const int next = (world.rank + 1) % world.size;
  const int before = (world.rank + world.size - 1) % world.size;
  MPI_Comm_set_errhandler(world.comm, MPI_ERRORS_RETURN);
  for (const int number : {1, 2, 3, 4}) {
    std::vector<std::uint8_t> in(50, 0xaa);
    MPI_Request arrival = MPI_REQUEST_NULL;
    MPI_Irecv(in.data(), 42, MPI_BYTE, before, number, world.comm, &arrival);
    send_numbered(world, next, number, number);
    int kind = MPI_SUCCESS;
    MPI_Error_class(MPI_Wait(&arrival, MPI_STATUS_IGNORE), &kind);
    require_equal(kind, static_cast<int>(MPI_ERR_TRUNCATE),
                  "class of the error of a too short receive");
    require_equal(in[42], std::uint8_t{0xaa}, "byte past a too short receive");
  }
  MPI_Comm_set_errhandler(world.comm, MPI_ERRORS_ARE_FATAL);
}

}  // namespace

void test_matching() {
  const Group world(MPI_COMM_WORLD);
  take_anything(world);
  MPI_Barrier(world.comm);
  pass_over(world);
  MPI_Barrier(world.comm);
  too_long(world);
  MPI_Barrier(world.comm);
}

void test_probing() {
  const Group world(MPI_COMM_WORLD);
  MPI_Barrier(world.comm);
  nothing_to_probe(world);
  MPI_Barrier(world.comm);
  for (const Look look : {Look::kProbe, Look::kIprobe, Look::kMprobe, Look::kImprobe}) {
    if (world.rank != 0) {
      for (int number = 0; number < 20; ++number) send_numbered(world, 0, number, number);
    } else {
      for (int number = 0; number < 20; ++number) {
        for (int source = 1; source < world.size; ++source)
          look_and_take(world, look, source, number);
      }
    }
    MPI_Barrier(world.comm);
  }
}

void test_cancelled_receives() {
  const Group world(MPI_COMM_WORLD);
  const int next = (world.rank + 1) % world.size;
  for (int round = 0; round < 50; ++round) {
    std::vector<std::uint8_t> unused(150000, 0xaa);
    std::vector<std::uint8_t> in(150000);
    MPI_Request requests[2];
    MPI_Irecv(unused.data(), 150000, MPI_BYTE, MPI_ANY_SOURCE, kLateTag, world.comm, &requests[0]);
    MPI_Irecv(in.data(), 150000, MPI_BYTE, MPI_ANY_SOURCE, kLateTag, world.comm, &requests[1]);
    await_cancelled(&requests[0], "the first of two receives");
    MPI_Barrier(world.comm);
    send_numbered(world, next, round, kLateTag);
    MPI_Status status{};
    succeeded(MPI_Wait(&requests[1], &status), "MPI_Wait for the receive that stayed");
    check_numbered(world, in, status, round, "message after a cancelled receive");
    require_equal(unused, std::vector<std::uint8_t>(150000, 0xaa), "buffer of a cancelled receive");
  }
}

}  // namespace weft::mpi_test
