// SPDX-License-Identifier: BSD-2-Clause
// Do messages of every size arrive whole, alone and in numbers, by every mode of sending?
#include <array>
#include <string>

#include "check.h"

namespace weft::mpi_test {

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr int kFloodCount = 600;
constexpr std::size_t kFloodBytes = 96;

// Every power of two with its neighbours below 256 KiB: wherever a protocol switches, both sides
// are hit.
std::vector<std::size_t> sizes() {
  std::vector<std::size_t> result{0};
  for (std::size_t size = 1; size <= kMiB / 4; size *= 2) {
    for (const std::size_t near : {size - 1, size, size + 1}) {
      if (near > result.back()) result.push_back(near);
    }
  }
  for (const std::size_t size : {kMiB, 4 * kMiB + 3, 16 * kMiB, 64 * kMiB}) result.push_back(size);
  return result;
}

// Each rank sends to the next and receives from the one before.
void ring(const Group& world, std::size_t bytes, int number) {
  const int next = (world.rank + 1) % world.size;
  const int before = (world.rank + world.size - 1) % world.size;
  const auto out = pattern_bytes(stream_of(world.rank, next, number), bytes);
  std::vector<std::uint8_t> in(bytes + 8, 0xee);  // eight more: what is past the message must stay
  std::array<MPI_Request, 2> requests{};
  MPI_Irecv(in.data(), static_cast<int>(in.size()), MPI_BYTE, before, number, world.comm,
            &requests[0]);
  MPI_Isend(out.data(), static_cast<int>(bytes), MPI_BYTE, next, number, world.comm, &requests[1]);
  std::array<MPI_Status, 2> statuses{};
  succeeded(MPI_Waitall(2, requests.data(), statuses.data()), "MPI_Waitall");
  int count = -1;
  MPI_Get_count(&statuses[0], MPI_BYTE, &count);
  const std::string what = "ring message of " + std::to_string(bytes) + " bytes";
  require_equal(static_cast<std::size_t>(count), bytes, what + ": length");
  require_equal(statuses[0].MPI_SOURCE, before, what + ": source");
  require_pattern({in.data(), bytes}, stream_of(before, world.rank, number), what);
  require_equal(
      std::vector<std::uint8_t>(in.begin() + static_cast<std::ptrdiff_t>(bytes), in.end()),
      std::vector<std::uint8_t>(8, 0xee), what + ": bytes past the end");
}

// No rank receives before all have sent: every message is unexpected. They are taken in reverse
// order.
void flood(const Group& world) {
  std::vector<std::vector<std::uint8_t>> out;
  std::vector<MPI_Request> requests;
  for (int peer = 0; peer < world.size; ++peer) {
    for (int number = 0; number < kFloodCount; ++number) {
      out.push_back(pattern_bytes(stream_of(world.rank, peer, number), kFloodBytes));
      MPI_Isend(out.back().data(), static_cast<int>(kFloodBytes), MPI_BYTE, peer, number,
                world.comm, &requests.emplace_back());
    }
  }
  for (int peer = world.size - 1; peer >= 0; --peer) {
    for (int number = kFloodCount - 1; number >= 0; --number) {
      std::array<std::uint8_t, kFloodBytes> in{};
      succeeded(MPI_Recv(in.data(), static_cast<int>(in.size()), MPI_BYTE, peer, number, world.comm,
                         MPI_STATUS_IGNORE),
                "MPI_Recv");
      require_pattern(in, stream_of(peer, world.rank, number),
                      "unexpected message " + std::to_string(number));
    }
  }
  succeeded(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE),
            "MPI_Waitall after the flood");
}

}  // namespace

void test_message_sizes() {
  const Group world(MPI_COMM_WORLD);
  int number = 0;
  for (const std::size_t bytes : sizes()) ring(world, bytes, number++);
  flood(world);
}

void test_send_modes() {
  const Group world(MPI_COMM_WORLD);
  const int next = (world.rank + 1) % world.size;
  const int before = (world.rank + world.size - 1) % world.size;
  for (const int bytes : {8, 5000, 300000}) {
    const auto out =
        pattern_bytes(stream_of(world.rank, next, bytes), static_cast<std::size_t>(bytes));
    std::vector<std::uint8_t> buffer(static_cast<std::size_t>(bytes) + MPI_BSEND_OVERHEAD);
    MPI_Buffer_attach(buffer.data(), static_cast<int>(buffer.size()));
    for (const char mode : {'s', 'b', 'r'}) {
      std::vector<std::uint8_t> in(static_cast<std::size_t>(bytes));
      MPI_Request arrival = MPI_REQUEST_NULL;
      MPI_Irecv(in.data(), bytes, MPI_BYTE, before, 1, world.comm, &arrival);
      MPI_Barrier(world.comm);  // a ready send is only allowed once the receive is there
      if (mode == 's')
        succeeded(MPI_Ssend(out.data(), bytes, MPI_BYTE, next, 1, world.comm), "MPI_Ssend");
      if (mode == 'b')
        succeeded(MPI_Bsend(out.data(), bytes, MPI_BYTE, next, 1, world.comm), "MPI_Bsend");
      if (mode == 'r')
        succeeded(MPI_Rsend(out.data(), bytes, MPI_BYTE, next, 1, world.comm), "MPI_Rsend");
      succeeded(MPI_Wait(&arrival, MPI_STATUS_IGNORE), "MPI_Wait");
      require_pattern(in, stream_of(before, world.rank, bytes), std::string("send mode ") + mode);
    }
    void* detached = nullptr;
    int detached_bytes = 0;
    MPI_Buffer_detach(static_cast<void*>(&detached), &detached_bytes);
  }
}

}  // namespace weft::mpi_test
