// SPDX-License-Identifier: BSD-2-Clause
// How much memory, and how many descriptors and threads, does a process need for many connections?
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "os/descriptor_count_support.h"
#include "os/thread_count_support.h"
#include "support/peer_process.h"
#include "support/place.h"

namespace weft::conformance {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kMemoryIsMeasured = false;
#else
constexpr bool kMemoryIsMeasured = true;
#endif

constexpr std::size_t kMeasuredConnections = 1024;

// Resident memory of this process in KiB, by proc(5).
struct ResidentMemory {
  double private_kib = 0;  // anonymous pages, and pages of files that were written privately
  double shared_kib = 0;   // mapped pages of files in memory, such as those of /dev/shm
};

bool is_in_memory(const std::string& path) {
  return path.starts_with("/dev/shm/") || path.starts_with("/memfd:");
}

ResidentMemory resident_memory() {
  ResidentMemory all;
  bool shared = false;
  std::ifstream mappings("/proc/self/smaps");
  for (std::string line; std::getline(mappings, line);) {
    std::istringstream words(line);
    std::string first;
    words >> first;
    if (!first.ends_with(':')) {  // a mapping: range, rights, offset, device, inode, path
      std::string path;
      for (int skipped = 0; skipped < 5; ++skipped) words >> path;
      shared = is_in_memory(path);
      continue;
    }
    double kib = 0;
    words >> kib;
    if (first == "Anonymous:") all.private_kib += kib;
    if (first == "Rss:" && shared) all.shared_kib += kib;
  }
  EXPECT_GT(all.private_kib, 0);
  return all;
}

struct Footprint {
  ResidentMemory memory = resident_memory();
  std::size_t descriptors = os::count_descriptors();
  std::size_t threads = os::count_threads();
};

// What kMeasuredConnections have added to this process.
void expect_little(const Footprint& before) {
  const Footprint after;
  const double private_kib =
      (after.memory.private_kib - before.memory.private_kib) / kMeasuredConnections;
  const double shared_kib =
      (after.memory.shared_kib - before.memory.shared_kib) / kMeasuredConnections;
  testing::Test::RecordProperty("private_kib", std::to_string(private_kib));
  testing::Test::RecordProperty("shared_kib", std::to_string(shared_kib));
  EXPECT_LE(private_kib, 8);
  EXPECT_LE(shared_kib, 64);
  EXPECT_LT(after.descriptors, before.descriptors + 100);
  EXPECT_LE(after.threads, before.threads + 1) << "one may make progress on the network";
}

// Accepts that many connections, sends and takes a message over each, and waits for their ends.
void accept_many(Channel& to_test) {
  Place place;
  const Fid<fid_pep> pep = place.listen();
  const Footprint before;
  to_test.send(name_of(&pep->fid));
  std::vector<Fid<fid_ep>> accepted;
  std::vector<std::uint64_t> values(kMeasuredConnections);
  for (std::size_t i = 0; i < kMeasuredConnections && !testing::Test::HasFailure(); ++i) {
    const Event request = place.expect(FI_CONNREQ, &pep->fid);
    ASSERT_NE(request.info, nullptr);
    accepted.push_back(place.open(request.info.get()));
    fid_ep* const ep = accepted.back().get();
    ASSERT_EQ(fi_accept(ep, nullptr, 0), 0);
    place.expect(FI_CONNECTED, &ep->fid);
    values[i] = i;
    ASSERT_EQ(fi_recv(ep, &values[i], sizeof values[i], nullptr, 0, nullptr), 0);
    EXPECT_EQ(place.completion().err, 0);
    ASSERT_EQ(fi_send(ep, &values[i], sizeof values[i], nullptr, 0, nullptr), 0);
    EXPECT_EQ(place.completion().err, 0);
  }
  expect_little(before);
  for (std::size_t ended = 0; ended < accepted.size() && !testing::Test::HasFailure(); ++ended)
    EXPECT_EQ(place.next().what, static_cast<std::uint32_t>(FI_SHUTDOWN));
}

// Both ends of a connection use it, and its memory.
TEST(ConnectionsOfTwoProcesses, NeedLittleMemory) {
  if (!kMemoryIsMeasured) GTEST_SKIP() << "a sanitizer's own memory is part of what is measured";
  Place place;
  ASSERT_TRUE(place.ok());
  PeerProcess peer(accept_many);
  Address listener;
  ASSERT_TRUE(peer.channel().receive(&listener));
  std::vector<Fid<fid_ep>> connected;
  const Footprint before;
  for (std::size_t i = 0; i < kMeasuredConnections && !HasFailure(); ++i) {
    connected.push_back(place.connect(listener));
    fid_ep* const ep = connected.back().get();
    place.expect(FI_CONNECTED, &ep->fid);
    std::uint64_t value = i;
    std::uint64_t answer = ~value;
    ASSERT_EQ(fi_recv(ep, &answer, sizeof answer, nullptr, 0, nullptr), 0);
    ASSERT_EQ(fi_send(ep, &value, sizeof value, nullptr, 0, nullptr), 0);
    for (int done = 0; done < 2; ++done) EXPECT_EQ(place.completion().err, 0);
    EXPECT_EQ(answer, i);
  }
  expect_little(before);
  connected.clear();
  peer.finish([&] { place.read(); });
}

}  // namespace
}  // namespace weft::conformance
