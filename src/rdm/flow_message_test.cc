// SPDX-License-Identifier: BSD-2-Clause
// Is what messages say of a flow read back as it was written, and nothing else taken for it?
#include "rdm/flow_message.h"

#include <gtest/gtest.h>

#include <random>
#include <span>
#include <string_view>

#include "os/loopback_support.h"

namespace weft::rdm {
namespace {

Introduction introduction(std::size_t path_mtu) {
  Introduction me;
  me.endpoint_id = 0xFEDC'BA98'7654'3211;
  me.queue_pair = 0xFF'FF01;
  me.context = 0xAB'CDEF;
  me.queue_key = 0x9999'0001;
  me.path_mtu = path_mtu;
  me.room = 0xFFFF'FFFE;
  return me;
}

FlowRequest request(const os::SocketAddress& name, std::size_t path_mtu = 4096) {
  FlowRequest said;
  said.me = introduction(path_mtu);
  said.name = name;
  return said;
}

void expect_same(const Introduction& got, const Introduction& said) {
  EXPECT_EQ(got.endpoint_id, said.endpoint_id);
  EXPECT_EQ(got.queue_pair, said.queue_pair);
  EXPECT_EQ(got.context, said.context);
  EXPECT_EQ(got.queue_key, said.queue_key);
  EXPECT_EQ(got.path_mtu, said.path_mtu);
  EXPECT_EQ(got.room, said.room);
}

// As a packet carries it.
template <class Message>
Message carried(const Message& message) {
  const auto mad = wire::parse_cm(wire::write_cm({0, 1, 0, message}));
  if (mad && std::holds_alternative<Message>(mad->message)) return std::get<Message>(mad->message);
  ADD_FAILURE() << "it is not read as what it is";
  return {};
}

FlowRequest again(const FlowRequest& said) {
  const auto got = read_request(carried(write_request(said)));
  EXPECT_TRUE(got.has_value());
  return got.value_or(FlowRequest{});
}

TEST(FlowMessage, ARequestIsReadBackWithEveryPathMtu) {
  for (const std::size_t mtu : {256u, 320u, 1024u, 1408u, 4096u, 8896u}) {
    const FlowRequest said = request(os::loopback(50000), mtu);
    const FlowRequest got = again(said);
    expect_same(got.me, said.me);
    EXPECT_EQ(got.continued.identity, 0U);
    EXPECT_TRUE(got.name == said.name) << got.name.text();
  }
}

TEST(FlowMessage, AChangeOfThePathMtuIsReadBack) {
  FlowRequest said = request(os::address_of("2001:db8::1", 9, 0));
  said.continued = {0x8000'0000'0000'0001, 0xC350'0001};
  said.first = Psn(0xFF'FFFE);
  const FlowRequest got = again(said);
  EXPECT_EQ(got.continued.identity, said.continued.identity);
  EXPECT_EQ(got.continued.connection, said.continued.connection);
  EXPECT_EQ(got.first, said.first);
  EXPECT_EQ(got.name, said.name);
}

TEST(FlowMessage, ARequestBringsNamesOfBothFamilies) {
  for (const os::SocketAddress& name :
       {os::loopback(1), os::loopback(65535), os::address_of("::1", 4791, 0),
        os::address_of("0.0.0.0", 7), os::address_of("fe80::1:2", 65535, 3)}) {
    const FlowRequest got = again(request(name));
    EXPECT_TRUE(got.name == name) << got.name.text() << " instead of " << name.text();
  }
}

TEST(FlowMessage, ARequestMayNameTheListenerThatIsAsked) {
  FlowRequest said = request(os::loopback(1));
  EXPECT_EQ(again(said).listener.length(), 0U);
  for (const os::SocketAddress& listener :
       {os::loopback(65535), os::address_of("2001:db8::1", 4791, 0)}) {
    said.listener = listener;
    EXPECT_EQ(again(said).listener, listener);
    EXPECT_EQ(again(said).name, said.name);
  }
}

TEST(FlowMessage, ARequestProvesTheKeyOfItsSenderForOnePort) {
  Authorizations keys;
  const auto take = [&](std::string_view text) {
    return keys.take(std::as_bytes(std::span(text))).value();
  };
  const AuthorizationPtr key = take("a job");
  FlowRequest said = request(os::loopback(1));
  EXPECT_TRUE(is_proven(nullptr, again(said), 7));
  EXPECT_FALSE(is_proven(key, again(said), 7));
  said.proof = prove(key, 0x0123'4567'89AB'CDEF, said.me, 7);
  EXPECT_EQ(write_request(said).data[0], std::byte{7}) << "its version";
  EXPECT_TRUE(is_proven(key, again(said), 7));
  EXPECT_FALSE(is_proven(key, again(said), 8));
  EXPECT_FALSE(is_proven(take("another"), again(said), 7));
  EXPECT_FALSE(is_proven(nullptr, again(said), 7));
  FlowRequest of_another = said;
  of_another.me.queue_pair ^= 1;
  EXPECT_FALSE(is_proven(key, again(of_another), 7));
  EXPECT_NE(prove(key, 1, said.me, 7).hash, said.proof.hash);
}

TEST(FlowMessage, AReplyIsReadBack) {
  const FlowReply said{introduction(2048), Psn(0xFF'FFFF)};
  const auto got = read_reply(carried(write_reply(said)));
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(got->first, said.first);
  expect_same(got->me, said.me);
}

TEST(FlowMessage, AnEndSaysWhatHasComeAndWhetherThePeerIsRefused) {
  for (const Psn expected : {Psn(0), Psn(Psn::kMask)}) {
    const FlowEnd got = read_end(write_end({expected}));
    ASSERT_TRUE(got.expected.has_value());
    EXPECT_EQ(*got.expected, expected);
    EXPECT_FALSE(got.refuses);
  }
  const FlowEnd refusal = read_end(write_end({{}, true}));
  EXPECT_TRUE(refusal.refuses);
  EXPECT_FALSE(refusal.other_key);
  EXPECT_TRUE(read_end(write_end({{}, true, true})).other_key);
  EXPECT_FALSE(refusal.expected.has_value());
  for (std::size_t length = 0; length < 4; ++length) {
    const std::array<std::byte, 4> ones{std::byte{0xFF}, std::byte{0xFF}, std::byte{0xFF}};
    const FlowEnd none = read_end(std::span(ones).first(length));
    EXPECT_FALSE(none.expected.has_value() || none.refuses);
  }
}

// A REQ with a proof has a version of its own.
template <class Message, class Read>
void expect_only_this_version(const Message& right, Read read, unsigned last = 6) {
  ASSERT_TRUE(read(right).has_value());
  for (unsigned value = 0; value < 256; ++value) {
    Message other = right;
    other.data[0] = static_cast<std::byte>(value);
    EXPECT_EQ(read(other).has_value(), value >= 6 && value <= last) << value;
    other = right;
    other.data[1] = static_cast<std::byte>(value);
    EXPECT_EQ(read(other).has_value(), value >= 4 && value <= 139) << value;
  }
}

TEST(FlowMessage, AnotherVersionOrPathMtuIsNone) {
  expect_only_this_version(write_request(request(os::loopback(1))), read_request, 7);
  expect_only_this_version(write_reply({introduction(1024), Psn(3)}), read_reply);
}

TEST(FlowMessage, ARequestForAnotherServiceOrOfAnotherTypeIsNone) {
  const wire::CmReq right = write_request(request(os::loopback(1)));
  for (std::uint8_t type = 0; type < 4; ++type) {
    wire::CmReq other = right;
    other.transport = type;
    EXPECT_EQ(read_request(other).has_value(), type == 2);
  }
  for (unsigned bit = 32; bit < 64; ++bit) {
    wire::CmReq other = right;
    other.service ^= std::uint64_t{1} << bit;
    EXPECT_FALSE(read_request(other).has_value()) << bit;
  }
}

// Whatever the private data say, what is read can be said again, and means the same.
TEST(FlowMessage, ChangedOnesAreReadAsSomethingSensibleOrNotAtAll) {
  std::mt19937_64 random(2);
  const wire::CmReq right = write_request(request(os::loopback(4791)));
  for (int i = 0; i < 20'000; ++i) {
    wire::CmReq changed = right;
    for (int changes = 0; changes < 4; ++changes) {
      changed.data[random() % changed.data.size()] = static_cast<std::byte>(random());
    }
    const auto read = read_request(changed);
    if (!read) continue;
    const auto once = write_request(*read);
    const auto twice = read_request(once);
    ASSERT_TRUE(twice.has_value());
    EXPECT_EQ(write_request(*twice).data, once.data);
  }
}

}  // namespace
}  // namespace weft::rdm
