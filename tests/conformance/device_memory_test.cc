// SPDX-License-Identifier: BSD-2-Clause
// Do transfers from, to and between kinds of memory work, and does the processor touch none of a
// device? (fi_mr(3), FI_HMEM)
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <cstring>
#include <memory>
#include <string>
#include <tuple>

#include "support/devices.h"

namespace weft::conformance {
namespace {

using ::testing::Combine;
using ::testing::Values;

// Which sides are memory of a device.
struct Kinds {
  const char* name;
  bool source;
  bool target;
};
std::ostream& operator<<(std::ostream& out, const Kinds& kinds) { return out << kinds.name; }
constexpr Kinds kKinds[] = {
    {"DeviceToHost", true, false}, {"HostToDevice", false, true}, {"DeviceToDevice", true, true}};

using DeviceCase = std::tuple<Way, fi_ep_type, Kinds>;

std::string device_case_name(const testing::TestParamInfo<DeviceCase>& one) {
  const auto& [way, type, kinds] = one.param;
  return std::string(way.name) + (type == FI_EP_MSG ? "_Msg_" : "_Rdm_") + kinds.name;
}

// Inline, eager, in several packets, by rendezvous.
constexpr std::size_t kSizes[] = {0, 8, 100, 1000, 4096, 20'000, 65'539, 300'001};

class DeviceMessages : public testing::TestWithParam<DeviceCase>, protected Devices {
 protected:
  DeviceMessages()
      : Devices(std::get<0>(GetParam()), std::get<1>(GetParam()), kCaps, kCaps),
        kinds_(std::get<2>(GetParam())) {}
  static constexpr std::uint64_t kCaps = FI_MSG | FI_TAGGED | FI_MULTI_RECV;

  ssize_t send(const Memory& from, std::size_t length, std::uint64_t tag, void* context) {
    return post([&] {
      return fi_tsend(a_.ep(), from.at(), length, from.descriptor(), to_b_, tag, context);
    });
  }
  ssize_t receive(const Memory& to, std::size_t length, std::uint64_t tag, void* context) {
    return post([&] {
      return fi_trecv(b_.ep(), to.at(), length, to.descriptor(), FI_ADDR_UNSPEC, tag, 0, context);
    });
  }

  const Kinds kinds_;
};

TEST_P(DeviceMessages, ArriveInReceivesThatWait) {
  unsigned seed = 0;
  for (const std::size_t size : kSizes) {
    const auto source = memory(a_, kinds_.source, size);
    const auto target = memory(b_, kinds_.target, size + 16);
    source->fill(++seed);
    int contexts[2];
    ASSERT_EQ(receive(*target, size + 16, seed, &contexts[0]), 0);
    ASSERT_EQ(send(*source, size, seed, &contexts[1]), 0);
    const Completion received = await(b_, &contexts[0]);
    EXPECT_EQ(received.err, 0);
    EXPECT_EQ(received.length, size);
    EXPECT_EQ(await(a_, &contexts[1]).err, 0);
    EXPECT_EQ(target->complaint(seed, 0, size), "") << size;
    EXPECT_EQ(target->bytes()[size], std::byte{0});
  }
}

TEST_P(DeviceMessages, ArriveInReceivesThatCameLater) {
  unsigned seed = 0;
  for (const std::size_t size : kSizes) {
    const auto source = memory(a_, kinds_.source, size);
    const auto target = memory(b_, kinds_.target, size + 16);
    source->fill(++seed);
    int contexts[2];
    ASSERT_EQ(send(*source, size, seed, &contexts[1]), 0);
    pump_.settle();
    ASSERT_EQ(receive(*target, size + 16, seed, &contexts[0]), 0);
    EXPECT_EQ(await(b_, &contexts[0]).err, 0);
    EXPECT_EQ(await(a_, &contexts[1]).err, 0);
    EXPECT_EQ(target->complaint(seed, 0, size), "") << size;
  }
}

TEST_P(DeviceMessages, AreGatheredAndScattered) {
  for (const std::size_t size : {300, 30'000, 300'000}) {
    const std::size_t part = size / 3;
    std::unique_ptr<Memory> from[3];
    std::unique_ptr<Memory> to[2];
    iovec sources[3];
    iovec targets[2];
    void* source_descriptors[3];
    void* target_descriptors[2];
    for (std::size_t i = 0; i < 3; ++i) {
      from[i] = memory(a_, kinds_.source == (i != 1), part);
      std::byte* const bytes = from[i]->bytes();
      for (std::size_t j = 0; j < part; ++j) bytes[j] = Memory::pattern(5, i * part + j);
      sources[i] = {from[i]->at(), part};
      source_descriptors[i] = from[i]->descriptor();
    }
    const std::size_t lengths[2] = {part + part / 2, size - part - part / 2};
    for (std::size_t i = 0; i < 2; ++i) {
      to[i] = memory(b_, kinds_.target == (i == 1), lengths[i]);
      targets[i] = {to[i]->at(), lengths[i]};
      target_descriptors[i] = to[i]->descriptor();
    }
    int contexts[2];
    ASSERT_EQ(post([&] {
                return fi_trecvv(b_.ep(), targets, target_descriptors, 2, FI_ADDR_UNSPEC, 9, 0,
                                 &contexts[0]);
              }),
              0);
    ASSERT_EQ(post([&] {
                return fi_tsendv(a_.ep(), sources, source_descriptors, 3, to_b_, 9, &contexts[1]);
              }),
              0);
    EXPECT_EQ(await(b_, &contexts[0]).length, 3 * part);
    EXPECT_EQ(await(a_, &contexts[1]).err, 0);
    EXPECT_EQ(to[0]->complaint(5, 0, lengths[0]), "");
    EXPECT_EQ(to[1]->complaint(5, 0, lengths[1], lengths[0]), "");
  }
}

// The completions name the program's buffer, not what stood for it.
TEST_P(DeviceMessages, ShareAMultiReceive) {
  const std::size_t size = 3000;
  const auto source = memory(a_, kinds_.source, size);
  const auto target = memory(b_, kinds_.target, 2 * size + 100);
  source->fill(3);
  std::size_t least = 200;
  ASSERT_EQ(fi_setopt(&b_.ep()->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof least),
            0);
  int contexts[3];
  const iovec whole{target->at(), target->length()};
  void* descriptor = target->descriptor();
  const fi_msg msg{&whole, &descriptor, 1, FI_ADDR_UNSPEC, &contexts[0], 0};
  ASSERT_EQ(post([&] { return fi_recvmsg(b_.ep(), &msg, FI_MULTI_RECV); }), 0);
  for (int i = 1; i < 3; ++i) {
    ASSERT_EQ(post([&] {
                return fi_send(a_.ep(), source->at(), size, source->descriptor(), to_b_,
                               &contexts[i]);
              }),
              0);
    fi_cq_tagged_entry entry{};
    ASSERT_TRUE(pump_.until([&] {
      a_.poll();
      return fi_cq_read(b_.cq(), &entry, 1) == 1;
    }));
    EXPECT_EQ(entry.buf, target->at((i - 1) * size));
    EXPECT_EQ(entry.len, size);
    EXPECT_EQ(target->complaint(3, (i - 1) * size, size), "");
    EXPECT_EQ(await(a_, &contexts[i]).err, 0);
  }
}

TEST_P(DeviceMessages, ThatAreTooLongFillTheirReceive) {
  for (const std::size_t size : {64, 5000, 200'000}) {
    const auto source = memory(a_, kinds_.source, size);
    const auto target = memory(b_, kinds_.target, size);
    source->fill(6);
    int contexts[2];
    ASSERT_EQ(receive(*target, size / 2, 1, &contexts[0]), 0);
    ASSERT_EQ(send(*source, size, 1, &contexts[1]), 0);
    const Completion received = await(b_, &contexts[0]);
    EXPECT_EQ(received.err, FI_ETRUNC);
    EXPECT_EQ(await(a_, &contexts[1]).err, 0);
    EXPECT_EQ(target->complaint(6, 0, size / 2), "");
    EXPECT_EQ(target->bytes()[size / 2], std::byte{0});
  }
}

TEST_P(DeviceMessages, MayBeInjectedWithTheirDescriptor) {
  const auto source = memory(a_, kinds_.source, 64);
  const auto target = memory(b_, kinds_.target, 64);
  source->fill(8);
  int contexts[2];
  ASSERT_EQ(receive(*target, 64, 1, &contexts[0]), 0);
  const iovec iov{source->at(), 64};
  void* descriptor = source->descriptor();
  const fi_msg_tagged msg{&iov, &descriptor, 1, to_b_, 1, 0, &contexts[1], 0};
  ASSERT_EQ(post([&] { return fi_tsendmsg(a_.ep(), &msg, FI_INJECT | FI_COMPLETION); }), 0);
  std::memset(source->bytes(), 0, 64);
  EXPECT_EQ(await(b_, &contexts[0]).err, 0);
  EXPECT_EQ(target->complaint(8, 0, 64), "");
}

// Each copy of a message fails once; the next message arrives.
TEST_P(DeviceMessages, EndWithTheErrorOfACopy) {
  for (const std::size_t size : {64, 5000, 200'000}) {
    const unsigned copies = (kinds_.source ? 1 : 0) + (kinds_.target ? 1 : 0);
    for (unsigned number = 1; number <= copies; ++number) {
      const auto source = memory(a_, kinds_.source, size);
      const auto target = memory(b_, kinds_.target, size);
      source->fill(number);
      int contexts[3];
      ASSERT_EQ(receive(*target, size, 1, &contexts[0]), 0);
      fail_copy(number);
      ASSERT_EQ(send(*source, size, 1, &contexts[1]), 0);
      if (kinds_.source && number == 1) {
        EXPECT_EQ(await(a_, &contexts[1]).err, FI_EIO);
        fail_no_more();
        ASSERT_EQ(send(*source, size, 1, &contexts[2]), 0);
        EXPECT_EQ(await(a_, &contexts[2]).err, 0);
        EXPECT_EQ(await(b_, &contexts[0]).err, 0);
        EXPECT_EQ(target->complaint(number, 0, size), "");
      } else {
        EXPECT_EQ(await(b_, &contexts[0]).err, FI_EIO);
        EXPECT_EQ(await(a_, &contexts[1]).err, 0);
        fail_no_more();
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceMessages,
                         Combine(testing::ValuesIn(kWays), Values(FI_EP_RDM, FI_EP_MSG),
                                 testing::ValuesIn(kKinds)),
                         device_case_name);

// Accesses: a is the initiator, b the target.
class DeviceAccesses : public testing::TestWithParam<DeviceCase>, protected Devices {
 protected:
  DeviceAccesses()
      : Devices(std::get<0>(GetParam()), std::get<1>(GetParam()), kInitiator, kTarget),
        kinds_(std::get<2>(GetParam())) {}
  static constexpr std::uint64_t kInitiator = FI_MSG | FI_RMA | FI_ATOMIC | FI_READ | FI_WRITE;
  static constexpr std::uint64_t kTarget =
      FI_MSG | FI_RMA | FI_ATOMIC | FI_REMOTE_READ | FI_REMOTE_WRITE;

  ssize_t write(const Memory& from, const Memory& to, std::size_t length, void* context) {
    return post([&] {
      return fi_write(a_.ep(), from.at(), length, from.descriptor(), to_b_, to.address(), to.key(),
                      context);
    });
  }
  ssize_t read(const Memory& to, const Memory& from, std::size_t length, void* context) {
    return post([&] {
      return fi_read(a_.ep(), to.at(), length, to.descriptor(), to_b_, from.address(), from.key(),
                     context);
    });
  }

  // access(from, to, context) moves all bytes of a buffer at `from` to one at `to`.
  template <class Access>
  void move_all_sizes(const Endpoint& from, const Endpoint& to, unsigned seed, Access access) {
    for (const std::size_t size : kSizes) {
      if (size == 0) continue;
      const auto source = memory(from, kinds_.source, size);
      const auto target = memory(to, kinds_.target, size);
      source->fill(++seed);
      int context;
      ASSERT_EQ(access(*source, *target, &context), 0);
      EXPECT_EQ(await(a_, &context).err, 0);
      EXPECT_EQ(target->complaint(seed, 0, size), "") << size;
    }
  }

  const Kinds kinds_;
};

TEST_P(DeviceAccesses, WriteEveryByte) {
  move_all_sizes(a_, b_, 10, [this](const Memory& from, const Memory& to, void* context) {
    return write(from, to, from.length(), context);
  });
}

// The initiator's buffer is the target of the bytes here.
TEST_P(DeviceAccesses, ReadEveryByte) {
  move_all_sizes(b_, a_, 20, [this](const Memory& from, const Memory& to, void* context) {
    return read(to, from, from.length(), context);
  });
}

TEST_P(DeviceAccesses, AddAndFetchAndCompare) {
  const auto operand = memory(a_, kinds_.source, 16);
  const auto compare = memory(a_, kinds_.source, 16);
  const auto result = memory(a_, kinds_.source, 16);
  const auto target = memory(b_, kinds_.target, 16);
  const auto put = [](const Memory& memory, std::uint64_t value) {
    std::memcpy(memory.bytes() + 8, &value, sizeof value);
  };
  const auto get = [](const Memory& memory) {
    std::uint64_t value = 0;
    std::memcpy(&value, memory.bytes() + 8, sizeof value);
    return value;
  };
  put(*operand, 5);
  put(*target, 100);
  int contexts[3];
  ASSERT_EQ(post([&] {
              return fi_atomic(a_.ep(), operand->at(8), 1, operand->descriptor(), to_b_,
                               target->address(8), target->key(), FI_UINT64, FI_SUM, &contexts[0]);
            }),
            0);
  EXPECT_EQ(await(a_, &contexts[0]).err, 0);
  EXPECT_EQ(get(*target), 105U);
  ASSERT_EQ(post([&] {
              return fi_fetch_atomic(a_.ep(), operand->at(8), 1, operand->descriptor(),
                                     result->at(8), result->descriptor(), to_b_, target->address(8),
                                     target->key(), FI_UINT64, FI_SUM, &contexts[1]);
            }),
            0);
  EXPECT_EQ(await(a_, &contexts[1]).err, 0);
  EXPECT_EQ(get(*target), 110U);
  EXPECT_EQ(get(*result), 105U);
  put(*compare, 110);
  put(*operand, 7);
  ASSERT_EQ(post([&] {
              return fi_compare_atomic(a_.ep(), operand->at(8), 1, operand->descriptor(),
                                       compare->at(8), compare->descriptor(), result->at(8),
                                       result->descriptor(), to_b_, target->address(8),
                                       target->key(), FI_UINT64, FI_CSWAP, &contexts[2]);
            }),
            0);
  EXPECT_EQ(await(a_, &contexts[2]).err, 0);
  EXPECT_EQ(get(*target), 7U);
  EXPECT_EQ(get(*result), 110U);
}

TEST_P(DeviceAccesses, AreCheckedLikeThoseOfTheHost) {
  const auto source = memory(a_, kinds_.source, 64);
  const auto target = memory(b_, kinds_.target, 64, FI_REMOTE_READ);
  int contexts[2];
  ASSERT_EQ(write(*source, *target, 64, &contexts[0]), 0);
  EXPECT_EQ(await(a_, &contexts[0]).err, FI_EACCES);
  ASSERT_EQ(post([&] {
              return fi_read(a_.ep(), source->at(), 32, source->descriptor(), to_b_,
                             target->address(48), target->key(), &contexts[1]);
            }),
            0);
  EXPECT_EQ(await(a_, &contexts[1]).err, FI_EACCES);
}

// Each copy of a write and of a read fails once, at either end.
TEST_P(DeviceAccesses, EndWithTheErrorOfACopy) {
  const unsigned copies = (kinds_.source ? 1 : 0) + (kinds_.target ? 1 : 0);
  for (unsigned number = 1; number <= copies; ++number) {
    const auto source = memory(a_, kinds_.source, 512);
    const auto target = memory(b_, kinds_.target, 512);
    source->fill(number);
    int contexts[3];
    fail_copy(number);
    ASSERT_EQ(write(*source, *target, 512, &contexts[0]), 0);
    EXPECT_EQ(await(a_, &contexts[0]).err, FI_EIO) << "write, copy " << number;
    fail_copy(number);
    ASSERT_EQ(read(*source, *target, 512, &contexts[1]), 0);
    EXPECT_EQ(await(a_, &contexts[1]).err, FI_EIO) << "read, copy " << number;
    fail_no_more();
    source->fill(number);
    ASSERT_EQ(write(*source, *target, 512, &contexts[2]), 0);
    EXPECT_EQ(await(a_, &contexts[2]).err, 0);
    EXPECT_EQ(target->complaint(number, 0, 512), "");
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceAccesses,
                         Combine(testing::ValuesIn(kWays), Values(FI_EP_RDM, FI_EP_MSG),
                                 testing::ValuesIn(kKinds)),
                         device_case_name);

}  // namespace
}  // namespace weft::conformance
