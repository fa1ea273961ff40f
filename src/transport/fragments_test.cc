// SPDX-License-Identifier: BSD-2-Clause
// Does a packet become whole again, and nothing else?
#include "transport/fragments.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "test_flow.h"

namespace weft::transport::testing {
namespace {

constexpr std::size_t kLongest = wire::kMaxHeaderBytes + wire::kMaxReliableDatagramMtu;
constexpr std::uint32_t kFirst = 0xFFFF'FFFE;

Settings of_flow() {
  Settings settings = datagrams();
  settings.context = 0x12'3456;
  return settings;
}

std::vector<Bytes> fragments_of(Fragmenter& fragmenter, const Bytes& packet, std::size_t path_mtu) {
  std::vector<Bytes> fragments;
  fragmenter.cut(packet, path_mtu);
  Bytes place(wire::kMaxHeaderBytes + path_mtu);
  while (const std::size_t length = fragmenter.next(place)) {
    fragments.emplace_back(place.begin(), place.begin() + static_cast<std::ptrdiff_t>(length));
  }
  return fragments;
}

// What the reassembler makes of a fragment: nothing, or as much of a packet as it has.
std::optional<Bytes> taken(Reassembler& reassembler, const Bytes& fragment) {
  const Sent sent = read_packet(fragment);
  const auto packet = reassembler.take(sent.packet.payload);
  if (!packet) return std::nullopt;
  Bytes bytes(packet->begin(), packet->end());
  if (!bytes.empty()) bytes.resize(bytes.size() - wire::kIcrcBytes);
  return bytes;
}

TEST(Fragments, FitTheWayAndAreForTheEndOfTheFlow) {
  Fragmenter fragmenter(of_flow(), kFirst);
  for (const std::size_t path_mtu : {256U, 512U, 1024U, 2048U}) {
    const Bytes packet = pattern(kLongest);
    EXPECT_FALSE(goes_whole(packet.size(), path_mtu));
    for (const Bytes& fragment : fragments_of(fragmenter, packet, path_mtu)) {
      EXPECT_TRUE(goes_whole(fragment.size(), path_mtu));
      const Sent sent = read_packet(fragment);
      EXPECT_EQ(sent.packet.destination, of_flow().destination);
      EXPECT_EQ(sent.packet.queue_key, of_flow().queue_key);
      EXPECT_EQ(sent.packet.source, of_flow().source);
      EXPECT_EQ(context_of_fragment(sent.packet.payload), of_flow().context);
    }
  }
  EXPECT_TRUE(goes_whole(wire::kMaxHeaderBytesOfPayload + 1024, 1024));
  EXPECT_FALSE(goes_whole(wire::kMaxHeaderBytesOfPayload + 1025, 1024));
}

TEST(Fragments, BecomeThePacketInWhateverOrderTheyCome) {
  std::mt19937 random(1);
  Fragmenter fragmenter(of_flow(), kFirst);
  Reassembler reassembler;
  for (const std::size_t path_mtu : {256U, 512U, 1024U, 2048U}) {
    for (const std::size_t length : {path_mtu + 53, 2 * path_mtu, 4136UL, kLongest - 3, kLongest}) {
      if (length > kLongest) continue;
      const Bytes packet = pattern(length, static_cast<unsigned>(length));
      std::vector<Bytes> fragments = fragments_of(fragmenter, packet, path_mtu);
      EXPECT_GT(fragments.size(), 1U);
      std::ranges::shuffle(fragments, random);
      for (std::size_t i = 0; i < fragments.size(); ++i) {
        const auto got = taken(reassembler, fragments[i]);
        ASSERT_TRUE(got);
        EXPECT_TRUE(*got == (i + 1 == fragments.size() ? packet : Bytes())) << length << " " << i;
      }
      EXPECT_TRUE(taken(reassembler, fragments[0])->empty()) << "it is whole once";
    }
  }
}

TEST(Fragments, OfSeveralPacketsAreNotMixed) {
  Fragmenter fragmenter(of_flow(), kFirst);
  Reassembler reassembler;
  const Bytes one = pattern(4136, 1);
  const Bytes same_length = pattern(4136, 2);
  const auto first = fragments_of(fragmenter, one, 1024);
  const auto again = fragments_of(fragmenter, same_length, 1024);
  EXPECT_TRUE(taken(reassembler, first[0])->empty());
  EXPECT_TRUE(taken(reassembler, again[0])->empty());
  for (std::size_t i = 1; i + 1 < first.size(); ++i) {
    EXPECT_TRUE(taken(reassembler, first[i])->empty());
    EXPECT_TRUE(taken(reassembler, again[i])->empty());
  }
  EXPECT_TRUE(*taken(reassembler, again.back()) == same_length);
  EXPECT_TRUE(*taken(reassembler, first.back()) == one);
}

// Memory does not grow with what never becomes whole.
TEST(Fragments, OfAPacketThatIsTooOldAreForgotten) {
  Fragmenter fragmenter(of_flow(), kFirst);
  Reassembler reassembler;
  const Bytes packet = pattern(4136);
  const auto old = fragments_of(fragmenter, packet, 1024);
  EXPECT_TRUE(taken(reassembler, old[0])->empty());
  for (std::size_t i = 0; i < Reassembler::kAtOnce; ++i) {
    EXPECT_TRUE(taken(reassembler, fragments_of(fragmenter, packet, 1024)[0])->empty());
  }
  for (std::size_t i = 1; i < old.size(); ++i) EXPECT_TRUE(taken(reassembler, old[i])->empty());
  EXPECT_TRUE(*taken(reassembler, old[0]) == packet) << "all of it came after that";
  EXPECT_TRUE(taken(reassembler, old[1])->empty());
  reassembler.trim();
  for (std::size_t i = 1; i < old.size(); ++i) EXPECT_TRUE(taken(reassembler, old[i])->empty());
}

// Each field of the header with a value that only a forger would write.
TEST(Fragments, ThatAreNoneAreRefused) {
  Fragmenter fragmenter(of_flow(), kFirst);
  const auto fragments = fragments_of(fragmenter, pattern(4136), 1024);
  const Sent sent = read_packet(fragments[0]);
  const Bytes payload(sent.packet.payload.begin(), sent.packet.payload.end());
  const auto refused = [](const Bytes& bytes) { return !Reassembler().take(bytes); };
  EXPECT_FALSE(refused(payload));
  for (std::size_t length = 0; length < payload.size(); ++length) {
    EXPECT_TRUE(refused({payload.begin(), payload.begin() + static_cast<std::ptrdiff_t>(length)}));
  }
  Bytes longer = payload;
  longer.emplace_back();
  EXPECT_TRUE(refused(longer));
  for (const auto& [at, value] : {std::pair{0, 4},
                                  {0, 255},
                                  {8, 1},
                                  {9, 0},
                                  {9, 3},
                                  {9, 33},
                                  {9, 255},
                                  {10, 0},
                                  {10, 255},
                                  {11, 0}}) {
    Bytes wrong = payload;
    wrong[static_cast<std::size_t>(at)] = static_cast<std::byte>(value);
    EXPECT_TRUE(refused(wrong)) << at << ": " << value;
  }
}

TEST(Fragments, RandomOnesAreHarmless) {
  std::mt19937_64 random(1);
  Reassembler reassembler;
  for (int i = 0; i < 20'000; ++i) {
    Bytes payload(random() % 600);
    for (std::byte& byte : payload) byte = static_cast<std::byte>(random());
    if (payload.size() > 12) {
      payload[0] = static_cast<std::byte>(random() % 8);
      payload[8] = std::byte{0};
      payload[9] = static_cast<std::byte>(random() % 40);
      payload[10] = static_cast<std::byte>(random() % 17);
    }
    const auto packet = reassembler.take(payload);
    EXPECT_LE(packet ? packet->size() : 0, kLongest + wire::kIcrcBytes);
  }
}

}  // namespace
}  // namespace weft::transport::testing
