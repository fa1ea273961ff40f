// SPDX-License-Identifier: BSD-2-Clause
// Does every transfer call move exactly its bytes, at every completion level and size?
#include <algorithm>
#include <tuple>

#include "support/level.h"

namespace weft::conformance {
namespace {

constexpr std::size_t kMiB = 1 << 20;
constexpr std::uint64_t kTag = 0x7A6;

// Around every place where a provider may switch protocols, and odd ones between.
std::vector<std::size_t> sizes_for(Kind kind, std::size_t inject_size) {
  std::vector<std::size_t> sizes{0,     1,     8,     40,    41,    63,     64,    65,    4095,
                                 4096,  4097,  8191,  8192,  8193,  16383,  16384, 16385, 32767,
                                 32768, 32769, 65535, 65536, 65537, 200001, kMiB};
  sizes.insert(sizes.end(), {inject_size - 1, inject_size, inject_size + 1});
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  if (traits(kind).inject) std::erase_if(sizes, [&](std::size_t s) { return s > inject_size; });
  return sizes;
}

// Where the call takes flags the level goes there, else it is the endpoint's default.
Options options_for(Kind kind, const Level& level, Placement placement) {
  Options options;
  if (!traits(kind).message) options.tx_flags = level.flag;
  if (placement == Placement::kOneProcess) {
    options.mr_mode = FI_MR_BASIC;
  }
  return options;
}

class Transfer : public testing::TestWithParam<TransferCase> {
 protected:
  Transfer()
      : kind_(std::get<0>(GetParam())),
        level_(std::get<1>(GetParam())),
        world_(std::get<2>(GetParam()), options_for(kind_, level_, std::get<2>(GetParam()))) {}

  Operation operation(std::size_t size) {
    Operation o;
    o.kind = kind_;
    o.length = size;
    o.seed = size + 1;
    o.peer = world_.to_target();
    o.tag = kTag;
    o.data = 0x1122334455667788u + size;
    if (traits(kind_).message) o.flags = level_.flag;
    o.misalignment = static_cast<std::uint32_t>(size % 3);
    return o;
  }

  // Injected operations report nothing on success.
  void await(Token token, std::uint64_t flags) {
    if (traits(kind_).inject) return;
    const Completion c = world_.initiator().wait_success(token);
    EXPECT_EQ(c.flags & flags, flags) << fi_tostr(&c.flags, FI_TYPE_CAPS);
  }

  const Kind kind_;
  const Level level_;
  World world_;
};

class MessageTransfer : public Transfer {
 protected:
  Token post_receive(Kind kind, std::size_t size) {
    Operation receive;
    receive.kind = kind;
    receive.length = size;
    receive.tag = kTag;
    return world_.target().post(receive);
  }

  void expect_received(Token token, const Operation& sent) {
    const Completion c = world_.target().wait_success(token);
    const std::uint64_t type = traits(kind_).tagged ? FI_TAGGED : FI_MSG;
    EXPECT_EQ(c.flags & (FI_RECV | type), FI_RECV | type);
    EXPECT_EQ(c.length, sent.length);
    EXPECT_EQ((c.flags & FI_REMOTE_CQ_DATA) != 0, traits(kind_).data);
    EXPECT_EQ(c.data, traits(kind_).data ? sent.data : c.data);
    EXPECT_EQ(c.tag, traits(kind_).tagged ? kTag : c.tag);
    world_.target().expect_data(token, sent.seed, sent.length);
  }
};

TEST_P(MessageTransfer, DeliversItsBytesOnce) {
  ASSERT_TRUE(world_.ok());
  const bool tagged = traits(kind_).tagged;
  const Kind forms[] = {tagged ? Kind::kTrecv : Kind::kRecv, tagged ? Kind::kTrecvv : Kind::kRecvv,
                        tagged ? Kind::kTrecvmsg : Kind::kRecvmsg};
  std::size_t round = 0;
  for (const std::size_t size : sizes_for(kind_, world_.endpoint().info()->tx_attr->inject_size)) {
    SCOPED_TRACE(size);
    const Token received = post_receive(forms[round++ % 3], size + size % 5);
    const Operation send = operation(size);
    const Token sent = world_.initiator().post(send);
    await(sent, FI_SEND | (tagged ? FI_TAGGED : FI_MSG));
    expect_received(received, send);
    if (HasFailure()) return;
  }
  EXPECT_EQ(world_.initiator().leftovers() + world_.target().leftovers(), 0u);
}

class WriteTransfer : public Transfer {
 protected:
  void expect_remote_data(const Operation& write) {
    const Completion c = world_.target().wait_success(kNoToken);
    const std::uint64_t wanted = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA;
    EXPECT_EQ(c.flags & wanted, wanted) << fi_tostr(&c.flags, FI_TYPE_CAPS);
    EXPECT_EQ(c.data, write.data);
  }
};

TEST_P(WriteTransfer, ChangesExactlyTheRangeThatItNames) {
  ASSERT_TRUE(world_.ok());
  for (const std::size_t size : sizes_for(kind_, world_.endpoint().info()->tx_attr->inject_size)) {
    SCOPED_TRACE(size);
    const std::size_t before = 24 + size % 7;
    const Region region = world_.target().expose({.length = before + size + 40});
    Operation write = operation(size);
    write.remote_address = region.base + before;
    write.key = region.key;
    if (kind_ == Kind::kWritemsg) {
      write.split_remote = true;
      write.second_key = region.key;
    }
    await(world_.initiator().post(write), FI_RMA | FI_WRITE);
    if (traits(kind_).data) {
      expect_remote_data(write);
    } else if (level_.flag != FI_DELIVERY_COMPLETE || traits(kind_).inject) {
      world_.exchange();  // Send after write: now the data has to be there.
    }
    world_.target().expect_region(region, write.seed, before, size);
    world_.target().expect_region_blank(region, 0, before);
    world_.target().expect_region_blank(region, before + size, 40);
    EXPECT_EQ(world_.target().close_region(region), 0);
    if (HasFailure()) return;
  }
  EXPECT_EQ(world_.initiator().leftovers() + world_.target().leftovers(), 0u);
}

using ReadTransfer = Transfer;

TEST_P(ReadTransfer, FetchesExactlyTheRangeThatItNames) {
  ASSERT_TRUE(world_.ok());
  for (const std::size_t size : sizes_for(kind_, world_.endpoint().info()->tx_attr->inject_size)) {
    SCOPED_TRACE(size);
    const std::size_t before = 8 * (size % 5);
    const Region region = world_.target().expose({.length = size + before + 16, .seed = size + 9});
    Operation read = operation(size);
    read.remote_address = region.base + before;
    read.key = region.key;
    if (kind_ == Kind::kReadmsg) {
      read.split_remote = true;
      read.second_key = region.key;
    }
    const Token token = world_.initiator().post(read);
    await(token, FI_RMA | FI_READ);
    world_.initiator().expect_data(token, size + 9, size, before);
    EXPECT_EQ(world_.target().close_region(region), 0);
    if (HasFailure()) return;
  }
  EXPECT_EQ(world_.initiator().leftovers() + world_.target().leftovers(), 0u);
}

const auto kEverywhere =
    testing::Values(Placement::kTwoProcesses, Placement::kOneProcess, Placement::kSelf,
                    Placement::kConnectedProcesses, Placement::kConnected);

INSTANTIATE_TEST_SUITE_P(
    Operations, MessageTransfer,
    testing::Combine(testing::Values(Kind::kSend, Kind::kSendv, Kind::kSendmsg, Kind::kInject,
                                     Kind::kSenddata, Kind::kInjectdata, Kind::kTsend,
                                     Kind::kTsendv, Kind::kTsendmsg, Kind::kTinject,
                                     Kind::kTsenddata, Kind::kTinjectdata),
                     testing::ValuesIn(kLevels), kEverywhere),
    transfer_name);
INSTANTIATE_TEST_SUITE_P(Operations, WriteTransfer,
                         testing::Combine(testing::Values(Kind::kWrite, Kind::kWritev,
                                                          Kind::kWritemsg, Kind::kInjectWrite,
                                                          Kind::kWritedata, Kind::kInjectWritedata),
                                          testing::ValuesIn(kLevels), kEverywhere),
                         transfer_name);
INSTANTIATE_TEST_SUITE_P(Operations, ReadTransfer,
                         testing::Combine(testing::Values(Kind::kRead, Kind::kReadv,
                                                          Kind::kReadmsg),
                                          testing::ValuesIn(kLevels), kEverywhere),
                         transfer_name);

// 64 MiB, between processes, at the weakest and the strongest level.
using HugeCase = std::tuple<Kind, Level, Placement>;
class HugeTransfer : public testing::TestWithParam<HugeCase> {};

TEST_P(HugeTransfer, MovesSixtyFourMegabytes) {
  const auto& [kind, level, placement] = GetParam();
  World world(placement, options_for(kind, level, placement));
  ASSERT_TRUE(world.ok());
  constexpr std::size_t kSize = 64 * kMiB;
  Operation o;
  o.kind = kind;
  o.length = kSize;
  o.seed = 4;
  o.peer = world.to_target();
  Region region;
  Token received = kNoToken;
  if (traits(kind).rma) {
    region = world.target().expose({.length = kSize, .seed = 5});
    o.key = region.key;
    o.remote_address = region.base;
  } else {
    Operation receive;
    receive.kind = traits(kind).tagged ? Kind::kTrecv : Kind::kRecv;
    receive.length = kSize;
    received = world.target().post(receive);
  }
  const Token token = world.initiator().post(o);
  world.initiator().wait_success(token);
  if (received != kNoToken) {
    world.target().wait_success(received);
    world.target().expect_data(received, o.seed, kSize);
  } else if (traits(kind).read) {
    world.initiator().expect_data(token, 5, kSize);
  } else {
    world.exchange();
    world.target().expect_region(region, o.seed, 0, kSize);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Operations, HugeTransfer,
    testing::Combine(testing::Values(Kind::kSend, Kind::kTsend, Kind::kWrite, Kind::kRead),
                     testing::Values(kLevels[0], kLevels[3]),
                     testing::Values(Placement::kTwoProcesses, Placement::kConnectedProcesses)),
    transfer_name);

}  // namespace
}  // namespace weft::conformance
