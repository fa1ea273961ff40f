// SPDX-License-Identifier: BSD-2-Clause
// What does each completion format say about each kind of operation? (fi_cq(3))
#include "support/placements.h"

namespace weft::conformance {
namespace {

constexpr std::uint64_t kTypes = FI_SEND | FI_RECV | FI_MSG | FI_TAGGED | FI_RMA | FI_READ |
                                 FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA |
                                 FI_ATOMIC;
constexpr std::uint64_t kTag = 0xABCDEF0123456789u;
constexpr std::uint64_t kData = 0x0102030405060708u;

class CqFormat : public testing::TestWithParam<std::tuple<fi_cq_format, Placement>> {
 protected:
  CqFormat() : world_(std::get<1>(GetParam()), options()) {}

  static fi_cq_format format() { return std::get<0>(GetParam()); }
  static Options options() {
    Options options;
    options.format = format();
    return options;
  }
  static bool has(fi_cq_format least) { return format() >= least; }

  // What the format cannot carry stays zero in our decoded entry, so it is compared with zero.
  static void expect_entry(const Completion& c, std::uint64_t flags, std::uint64_t length,
                           std::uint64_t data, std::uint64_t tag) {
    EXPECT_EQ(c.flags & kTypes, has(FI_CQ_FORMAT_MSG) ? flags : 0)
        << fi_tostr(&c.flags, FI_TYPE_CAPS);
    if ((flags & FI_RECV) == 0) return;
    EXPECT_EQ(c.length, has(FI_CQ_FORMAT_MSG) ? length : 0);
    const bool carries_data = (flags & FI_REMOTE_CQ_DATA) != 0 && has(FI_CQ_FORMAT_DATA);
    EXPECT_EQ(c.data, carries_data ? data : c.data);
    const bool carries_tag = (flags & FI_TAGGED) != 0 && has(FI_CQ_FORMAT_TAGGED);
    EXPECT_EQ(c.tag, carries_tag ? tag : c.tag);
  }

  void message(Kind send, Kind receive, std::uint64_t type, std::uint64_t extra) {
    const Token received = world_.target().post({.kind = receive, .length = 100, .tag = kTag});
    const Token sent = world_.initiator().post({.kind = send,
                                                .length = 60,
                                                .seed = 1,
                                                .peer = world_.to_target(),
                                                .tag = kTag,
                                                .data = kData});
    expect_entry(world_.initiator().wait_success(sent), FI_SEND | type, 0, 0, 0);
    expect_entry(world_.target().wait_success(received), FI_RECV | type | extra, 60, kData, kTag);
    world_.target().expect_data(received, 1, 60);
  }

  Token rma(Kind kind, const Region& region) {
    return world_.initiator().post({.kind = kind,
                                    .length = 60,
                                    .seed = 1,
                                    .peer = world_.to_target(),
                                    .data = kData,
                                    .remote_address = region.base,
                                    .key = region.key});
  }

  World world_;
};

TEST_P(CqFormat, MessagesAreDescribed) {
  ASSERT_TRUE(world_.ok());
  message(Kind::kSend, Kind::kRecv, FI_MSG, 0);
  message(Kind::kSenddata, Kind::kRecv, FI_MSG, FI_REMOTE_CQ_DATA);
  message(Kind::kTsend, Kind::kTrecv, FI_TAGGED, 0);
  message(Kind::kTsenddata, Kind::kTrecvmsg, FI_TAGGED, FI_REMOTE_CQ_DATA);
}

TEST_P(CqFormat, RemoteAccessIsDescribed) {
  ASSERT_TRUE(world_.ok());
  const Region region = world_.target().expose({});
  expect_entry(world_.initiator().wait_success(rma(Kind::kWrite, region)), FI_RMA | FI_WRITE, 0, 0,
               0);
  expect_entry(world_.initiator().wait_success(rma(Kind::kRead, region)), FI_RMA | FI_READ, 0, 0,
               0);
  expect_entry(world_.initiator().wait_success(rma(Kind::kWritedata, region)), FI_RMA | FI_WRITE, 0,
               0, 0);
  const Completion c = world_.target().wait_success(kNoToken);
  expect_entry(c, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA, 0, 0, 0);
  EXPECT_EQ(c.data, has(FI_CQ_FORMAT_DATA) ? kData : 0);
}

TEST_P(CqFormat, ManyEntriesCanBeReadAtOnce) {
  ASSERT_TRUE(world_.ok());
  std::vector<Token> received;
  for (int i = 0; i < 40; ++i) {
    received.push_back(world_.target().post({.kind = Kind::kRecv, .length = 8}));
  }
  for (std::uint64_t i = 0; i < 40; ++i) {
    world_.initiator().wait_success(world_.initiator().post(
        {.kind = Kind::kSend, .length = 8, .seed = i, .peer = world_.to_target()}));
  }
  for (std::uint64_t i = 0; i < 40; ++i) {
    world_.target().wait_success(received[i]);
    world_.target().expect_data(received[i], i, 8);
  }
}

const char* format_name(fi_cq_format format) {
  switch (format) {
    case FI_CQ_FORMAT_CONTEXT:
      return "Context";
    case FI_CQ_FORMAT_MSG:
      return "Msg";
    case FI_CQ_FORMAT_DATA:
      return "Data";
    case FI_CQ_FORMAT_TAGGED:
      return "Tagged";
    case FI_CQ_FORMAT_UNSPEC:
      break;
  }
  return "Unspec";
}

INSTANTIATE_TEST_SUITE_P(
    Completion, CqFormat,
    testing::Combine(testing::Values(FI_CQ_FORMAT_CONTEXT, FI_CQ_FORMAT_MSG, FI_CQ_FORMAT_DATA,
                                     FI_CQ_FORMAT_TAGGED),
                     both_process_counts()),
    [](const testing::TestParamInfo<std::tuple<fi_cq_format, Placement>>& one) {
      return std::string(format_name(std::get<0>(one.param))) + "_" +
             to_string(std::get<1>(one.param));
    });

}  // namespace
}  // namespace weft::conformance
