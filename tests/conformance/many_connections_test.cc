// SPDX-License-Identifier: BSD-2-Clause
// What does a process need for many connections, and do those leave each other alone?
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <vector>

#include "os/descriptor_count_support.h"
#include "os/thread_count_support.h"
#include "support/place.h"

namespace weft::conformance {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t kManyConnections = 300;  // everything is slow
#else
constexpr std::size_t kManyConnections = 1024;
#endif

// Both ends of many connections in one process: one port takes a part of each.
struct ConnectionsOfOneProcess : testing::Test {
  Place place;
  Fid<fid_pep> pep;
  std::vector<Fid<fid_ep>> active;
  std::vector<Fid<fid_ep>> passive;
  std::map<void*, int> ended;  // errors by context

  void SetUp() override {
    ASSERT_TRUE(place.ok());
    pep = place.listen();
  }
  void connect(std::size_t count) {
    const Address listener = name_of(&pep->fid);
    for (std::size_t i = 0; i < count && !HasFailure(); ++i) {
      active.push_back(place.connect(listener));
      const Event request = place.expect(FI_CONNREQ, &pep->fid);
      ASSERT_NE(request.info, nullptr);
      passive.push_back(place.open(request.info.get()));
      ASSERT_EQ(fi_accept(passive.back().get(), nullptr, 0), 0);
      for (int told = 0; told < 2; ++told)
        EXPECT_EQ(place.next().what, static_cast<std::uint32_t>(FI_CONNECTED));
    }
  }
  void await(void* context) {
    while (!ended.contains(context) && !HasFailure()) {
      const Completion done = place.completion();
      ended[done.context] = done.err;
    }
  }
  void expect_message(fid_ep* from, fid_ep* to, std::size_t length) {
    std::vector<char> sent(length, 'x');
    std::vector<char> got(length);
    ended.clear();
    ASSERT_EQ(fi_recv(to, got.data(), length, nullptr, 0, got.data()), 0);
    ASSERT_EQ(fi_send(from, sent.data(), length, nullptr, 0, sent.data()), 0);
    await(got.data());
    await(sent.data());
    EXPECT_EQ(ended[got.data()], 0);
    EXPECT_EQ(got, sent);
  }
};

TEST_F(ConnectionsOfOneProcess, NeedFewDescriptorsAndNoThreads) {
  const std::size_t descriptors = os::count_descriptors();
  const std::size_t threads = os::count_threads();
  connect(kManyConnections);
  EXPECT_LT(os::count_descriptors() - descriptors, 100u);
  EXPECT_EQ(os::count_threads(), threads);
  for (std::size_t i = 0; i < kManyConnections && !HasFailure(); i += 93) {
    expect_message(active[i].get(), passive[i].get(), 8);
    expect_message(passive[i].get(), active[i].get(), 100000);
  }
}

TEST_F(ConnectionsOfOneProcess, GiveEverythingBack) {
  connect(1);
  expect_message(active[0].get(), passive[0].get(), 8);
  const std::size_t descriptors = os::count_descriptors();
  connect(50);
  active.resize(1);
  passive.resize(1);
  EXPECT_EQ(os::count_descriptors(), descriptors);
  expect_message(active[0].get(), passive[0].get(), 8);
  expect_message(passive[0].get(), active[0].get(), 8);
}

TEST_F(ConnectionsOfOneProcess, OneThatEndsLeavesTheOthersStreaming) {
  constexpr std::size_t kLength = 1 << 20;
  constexpr std::size_t kConnections = 6;
  connect(kConnections);
  std::vector<std::vector<char>> sent(kConnections, std::vector<char>(kLength));
  std::vector<std::vector<char>> got(kConnections, std::vector<char>(kLength));
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < kConnections; ++i) {
      if (round > 0 && i < 2) continue;
      sent[i].assign(kLength, static_cast<char>(17 * i + round));
      ASSERT_EQ(fi_recv(passive[i].get(), got[i].data(), kLength, nullptr, 0, got[i].data()), 0);
      ASSERT_EQ(fi_send(active[i].get(), sent[i].data(), kLength, nullptr, 0, sent[i].data()), 0);
    }
    if (round == 0) {
      ASSERT_EQ(fi_shutdown(passive[0].get(), 0), 0);
      ASSERT_EQ(fi_close(&active[1].release()->fid), 0);
    }
    for (std::size_t i = 2; i < kConnections; ++i) {
      await(got[i].data());
      await(sent[i].data());
      EXPECT_EQ(ended[got[i].data()], 0);
      EXPECT_EQ(got[i], sent[i]);
    }
    ended.clear();
  }
  // Both ends of the first, and the other end of the second.
  for (int told = 0; told < 3; ++told)
    EXPECT_EQ(place.next().what, static_cast<std::uint32_t>(FI_SHUTDOWN));
}

}  // namespace
}  // namespace weft::conformance
