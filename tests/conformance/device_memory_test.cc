// SPDX-License-Identifier: BSD-2-Clause
// Do transfers from, to and between kinds of memory work, and does the processor touch none of a
// device? (fi_mr(3), FI_HMEM)
//
// The devices are those of tests/device: one access by the processor ends the test.
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "../device/stand_in.h"
#include "support/endpoint.h"

namespace weft::conformance {
namespace {

using devices::StandIn;
using ::testing::Combine;
using ::testing::Values;

// How copies are made, and of which memory.
struct Way {
  const char* name;
  fi_hmem_iface iface;
  std::uint64_t device;
  const char* library;
  bool overrides;
};
std::ostream& operator<<(std::ostream& out, const Way& way) { return out << way.name; }

constexpr Way kWays[] = {{"Cuda", FI_HMEM_CUDA, 1, "libcuda.so.1", false},
                         {"Rocr", FI_HMEM_ROCR, 0, "libhsa-runtime64.so.1", false},
                         {"Ze", FI_HMEM_ZE, 1, "libze_loader.so.1", false},
                         {"Override", FI_HMEM_CUDA, 77, "libcuda.so.1", true}};

// The program's own functions for copies, to memory of the stand-in.
unsigned override_calls = 0;
unsigned override_fails_at = 0;

std::byte* bytes_of(const iovec* list, std::size_t count, std::size_t offset) {
  static const StandIn stand_in("libcuda.so.1");
  for (std::size_t i = 0; i < count; ++i) {
    if (offset < list[i].iov_len) {
      return stand_in.bytes(static_cast<std::byte*>(list[i].iov_base) + offset, 1);
    }
    offset -= list[i].iov_len;
  }
  return nullptr;
}

ssize_t copy_from(void* to, std::size_t size, fi_hmem_iface iface, std::uint64_t device,
                  const iovec* list, std::size_t count, std::uint64_t offset) {
  EXPECT_EQ(iface, FI_HMEM_CUDA);
  EXPECT_EQ(device, 77U);
  if (++override_calls == override_fails_at) return -FI_EIO;
  auto* out = static_cast<std::byte*>(to);
  for (std::size_t i = 0; i < size; ++i) out[i] = *bytes_of(list, count, offset + i);
  return static_cast<ssize_t>(size);
}

ssize_t copy_to(fi_hmem_iface iface, std::uint64_t device, const iovec* list, std::size_t count,
                std::uint64_t offset, const void* from, std::size_t size) {
  EXPECT_EQ(iface, FI_HMEM_CUDA);
  EXPECT_EQ(device, 77U);
  if (++override_calls == override_fails_at) return -FI_EIO;
  const auto* in = static_cast<const std::byte*>(from);
  for (std::size_t i = 0; i < size; ++i) *bytes_of(list, count, offset + i) = in[i];
  return static_cast<ssize_t>(size);
}

fi_hmem_override_ops overriding() { return {sizeof(fi_hmem_override_ops), copy_from, copy_to}; }

Options device_options(fi_ep_type type, std::uint64_t caps) {
  Options options;
  options.type = type;
  options.caps = caps | FI_HMEM;
  options.mr_mode |= FI_MR_HMEM;
  return options;
}

constexpr std::uint64_t kAllRights =
    FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;

// A registered buffer, in memory of the host or of a device.
class Memory {
 public:
  Memory(const Endpoint& endpoint, const Way* way, std::size_t length,
         std::uint64_t rights = kAllRights)
      : length_(length) {
    if (way != nullptr) {
      stand_in_ = std::make_unique<StandIn>(way->library);
      base_ = stand_in_->allocate(std::max<std::size_t>(length, 1),
                                  way->overrides ? 0 : static_cast<int>(way->device));
    } else {
      host_.resize(std::max<std::size_t>(length, 1));
      base_ = host_.data();
    }
    const iovec iov{base_, length};
    fi_mr_attr attributes{};
    attributes.mr_iov = &iov;
    attributes.iov_count = 1;
    attributes.access = rights;
    attributes.requested_key = Endpoint::next_key();
    attributes.iface = way != nullptr ? way->iface : FI_HMEM_SYSTEM;
    attributes.device.reserved = way != nullptr ? way->device : 0;
    region_ = open_fid<fid_mr>(
        [&](fid_mr** mr) { return fi_mr_regattr(endpoint.domain()->get(), &attributes, 0, mr); });
    const int mode = endpoint.info()->domain_attr->mr_mode;
    address_ = (mode & FI_MR_VIRT_ADDR) != 0 ? reinterpret_cast<std::uint64_t>(base_) : 0;
  }
  ~Memory() {
    region_.reset();
    if (stand_in_ != nullptr) stand_in_->free(base_);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  void* at(std::size_t offset = 0) const { return static_cast<std::byte*>(base_) + offset; }
  std::size_t length() const { return length_; }
  void* descriptor() const { return fi_mr_desc(region_.get()); }
  std::uint64_t key() const { return fi_mr_key(region_.get()); }
  std::uint64_t address(std::size_t offset = 0) const { return address_ + offset; }
  void deregister() { region_.reset(); }
  std::byte* bytes() const {
    return stand_in_ != nullptr ? stand_in_->bytes(base_, std::max<std::size_t>(length_, 1))
                                : static_cast<std::byte*>(base_);
  }
  void fill(unsigned seed) const {
    for (std::size_t i = 0; i < length_; ++i) bytes()[i] = pattern(seed, i);
  }
  // The first byte of [offset, offset + length) that is not the pattern's, from `first` on.
  std::string complaint(unsigned seed, std::size_t offset, std::size_t length,
                        std::size_t first = 0) const {
    for (std::size_t i = 0; i < length; ++i) {
      if (bytes()[offset + i] != pattern(seed, first + i)) {
        return "byte " + std::to_string(i) + " of " + std::to_string(length);
      }
    }
    return "";
  }
  static std::byte pattern(unsigned seed, std::size_t i) {
    return static_cast<std::byte>(seed * 37 + i * 7 + (i >> 8) + 1);
  }

 private:
  const std::size_t length_;
  std::unique_ptr<StandIn> stand_in_;
  std::vector<std::byte> host_;
  void* base_ = nullptr;
  Fid<fid_mr> region_;
  std::uint64_t address_ = 0;
};

// Two endpoints of two domains that reach each other.
class Devices {
 protected:
  Devices(const Way& way, fi_ep_type type, std::uint64_t caps_a, std::uint64_t caps_b)
      : way_(way),
        a_(opened(device_options(type, caps_a)), device_options(type, caps_a)),
        b_(opened(device_options(type, caps_b)), device_options(type, caps_b)) {
    pump_.add(&a_);
    pump_.add(&b_);
    if (type == FI_EP_MSG) {
      a_.connect(b_.name());
      EXPECT_TRUE(pump_.until([&] {
        b_.accept();
        return a_.connected() && b_.connected();
      }));
      return;
    }
    to_b_ = a_.insert(b_.name());
    to_a_ = b_.insert(a_.name());
  }
  ~Devices() {
    pump_.remove(&a_);
    pump_.remove(&b_);
    override_fails_at = 0;
  }

  std::shared_ptr<Domain> opened(const Options& options) const {
    auto domain = std::make_shared<Domain>(options);
    fi_hmem_override_ops functions = overriding();
    if (way_.overrides) {
      EXPECT_EQ(fi_set_ops(&domain->get()->fid, FI_SET_OPS_HMEM_OVERRIDE, 0, &functions, nullptr),
                0);
    }
    return domain;
  }
  std::unique_ptr<Memory> memory(const Endpoint& endpoint, bool of_device, std::size_t length,
                                 std::uint64_t rights = kAllRights) const {
    return std::make_unique<Memory>(endpoint, of_device ? &way_ : nullptr, length, rights);
  }
  // Posts until it is taken, and drives progress meanwhile.
  template <class Post>
  ssize_t post(Post call) {
    ssize_t rc = -FI_EAGAIN;
    pump_.until([&] { return (rc = call()) != -FI_EAGAIN; });
    return rc;
  }
  Completion await(Endpoint& endpoint, const void* context) {
    std::optional<Completion> found;
    EXPECT_TRUE(pump_.until([&] { return (found = endpoint.take(context)).has_value(); }));
    return found.value_or(Completion{});
  }
  // The copy of that number from now on fails.
  void fail_copy(unsigned number) const {
    if (way_.overrides) {
      override_fails_at = override_calls + number;
    } else {
      StandIn(way_.library).fail(number);
    }
  }
  void fail_no_more() const {
    override_fails_at = 0;
    StandIn(way_.library).fail_no_more();
  }

  const Way way_;
  Endpoint a_;
  Endpoint b_;
  Pump pump_;
  fi_addr_t to_b_ = FI_ADDR_UNSPEC;
  fi_addr_t to_a_ = FI_ADDR_UNSPEC;
};

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
      for (std::size_t j = 0; j < part; ++j) {
        from[i]->bytes()[j] = Memory::pattern(5, i * part + j);
      }
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

  const Kinds kinds_;
};

TEST_P(DeviceAccesses, WriteEveryByte) {
  unsigned seed = 10;
  for (const std::size_t size : kSizes) {
    if (size == 0) continue;
    const auto source = memory(a_, kinds_.source, size);
    const auto target = memory(b_, kinds_.target, size);
    source->fill(++seed);
    int context;
    ASSERT_EQ(write(*source, *target, size, &context), 0);
    EXPECT_EQ(await(a_, &context).err, 0);
    EXPECT_EQ(target->complaint(seed, 0, size), "") << size;
  }
}

// The initiator's buffer is the target of the bytes here.
TEST_P(DeviceAccesses, ReadEveryByte) {
  unsigned seed = 20;
  for (const std::size_t size : kSizes) {
    if (size == 0) continue;
    const auto remote = memory(b_, kinds_.source, size);
    const auto local = memory(a_, kinds_.target, size);
    remote->fill(++seed);
    int context;
    ASSERT_EQ(read(*local, *remote, size, &context), 0);
    EXPECT_EQ(await(a_, &context).err, 0);
    EXPECT_EQ(local->complaint(seed, 0, size), "") << size;
  }
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

// Rules of registration and descriptors.
class DeviceRules : public testing::Test, protected Devices {
 protected:
  DeviceRules() : Devices(kWays[0], FI_EP_RDM, FI_MSG | FI_TAGGED, FI_MSG | FI_TAGGED) {}

  int register_with(fi_hmem_iface iface, std::uint64_t device, std::uint64_t flags = 0) {
    std::byte bytes[64];
    const iovec iov{bytes, sizeof bytes};
    fi_mr_attr attributes{};
    attributes.mr_iov = &iov;
    attributes.iov_count = 1;
    attributes.access = FI_SEND;
    attributes.iface = iface;
    attributes.device.reserved = device;
    fid_mr* mr = nullptr;
    const int rc = fi_mr_regattr(a_.domain()->get(), &attributes, flags, &mr);
    if (mr != nullptr) fi_close(&mr->fid);
    return rc;
  }
  int error_of_send(void* buffer, void* descriptor) {
    int context;
    EXPECT_EQ(fi_send(a_.ep(), buffer, 64, descriptor, to_b_, &context), 0);
    return await(a_, &context).err;
  }
};

TEST_F(DeviceRules, BuffersOfDevicesNeedALiveDescriptor) {
  const auto source = memory(a_, true, 64);
  EXPECT_EQ(error_of_send(source->at(), nullptr), FI_EACCES);
  void* const descriptor = source->descriptor();
  source->deregister();
  EXPECT_EQ(error_of_send(source->at(), descriptor), FI_EACCES);
}

TEST_F(DeviceRules, BuffersOfTheHostNeedNone) {
  const auto target = memory(b_, false, 64);
  std::byte bytes[64] = {};
  int context;
  ASSERT_EQ(fi_recv(b_.ep(), target->at(), 64, nullptr, FI_ADDR_UNSPEC, &context), 0);
  EXPECT_EQ(error_of_send(bytes, nullptr), 0);
  EXPECT_EQ(await(b_, &context).err, 0);
}

TEST_F(DeviceRules, OtherInterfacesAreNotOffered) {
  EXPECT_EQ(register_with(FI_HMEM_NEURON, 0), -FI_ENOSYS);
  EXPECT_EQ(register_with(FI_HMEM_SYNAPSEAI, 0), -FI_ENOSYS);
  EXPECT_EQ(register_with(static_cast<fi_hmem_iface>(99), 0), -FI_ENOSYS);
  EXPECT_EQ(register_with(FI_HMEM_CUDA, 2), -FI_EINVAL);
  EXPECT_EQ(register_with(FI_HMEM_ZE, 2), -FI_EINVAL);
}

TEST_F(DeviceRules, FlagsSayOnlyOneOwner) {
  EXPECT_EQ(register_with(FI_HMEM_CUDA, 0, FI_HMEM_DEVICE_ONLY), 0);
  EXPECT_EQ(register_with(FI_HMEM_CUDA, 9, FI_HMEM_HOST_ALLOC), 0);
  EXPECT_EQ(register_with(FI_HMEM_CUDA, 0, FI_HMEM_DEVICE_ONLY | FI_HMEM_HOST_ALLOC), -FI_EINVAL);
  EXPECT_EQ(register_with(FI_HMEM_SYSTEM, 0, FI_HMEM_DEVICE_ONLY), -FI_EINVAL);
}

// It is memory that the processor may touch: no copy goes through the driver.
TEST_F(DeviceRules, MemoryThatADeviceAllocatedOnTheHostIsTheHosts) {
  std::vector<std::byte> bytes(64, std::byte{3});
  const iovec iov{bytes.data(), bytes.size()};
  fi_mr_attr attributes{};
  attributes.mr_iov = &iov;
  attributes.iov_count = 1;
  attributes.access = FI_SEND;
  attributes.iface = FI_HMEM_CUDA;
  const auto region = open_fid<fid_mr>([&](fid_mr** mr) {
    return fi_mr_regattr(a_.domain()->get(), &attributes, FI_HMEM_HOST_ALLOC, mr);
  });
  const StandIn stand_in("libcuda.so.1");
  const std::uint64_t before = stand_in.copies();
  EXPECT_EQ(error_of_send(bytes.data(), fi_mr_desc(region.get())), 0);
  EXPECT_EQ(stand_in.copies(), before);
}

TEST_F(DeviceRules, PeerToPeerTransfersAreNotRequired) {
  int value = 9;
  std::size_t length = sizeof value;
  ASSERT_EQ(fi_getopt(&a_.ep()->fid, FI_OPT_ENDPOINT, FI_OPT_FI_HMEM_P2P, &value, &length), 0);
  EXPECT_EQ(value, FI_HMEM_P2P_ENABLED);
  const auto set = [&](int wanted) {
    return fi_setopt(&a_.ep()->fid, FI_OPT_ENDPOINT, FI_OPT_FI_HMEM_P2P, &wanted, sizeof wanted);
  };
  EXPECT_EQ(set(FI_HMEM_P2P_REQUIRED), -FI_EOPNOTSUPP);
  EXPECT_EQ(set(17), -FI_EINVAL);
  EXPECT_EQ(set(FI_HMEM_P2P_PREFERRED), 0);
  EXPECT_EQ(set(FI_HMEM_P2P_DISABLED), 0);
  ASSERT_EQ(fi_getopt(&a_.ep()->fid, FI_OPT_ENDPOINT, FI_OPT_FI_HMEM_P2P, &value, &length), 0);
  EXPECT_EQ(value, FI_HMEM_P2P_DISABLED);
}

TEST_F(DeviceRules, AnOverrideIsWholeAndBeforeTheFirstRegion) {
  const auto domain = std::make_shared<Domain>(device_options(FI_EP_RDM, FI_MSG));
  fid* const object = &domain->get()->fid;
  const auto set = [&](fi_hmem_override_ops functions, const char* name) {
    return fi_set_ops(object, name, 0, &functions, nullptr);
  };
  fi_hmem_override_ops functions = overriding();
  EXPECT_EQ(set(functions, "weft_no_such_operations"), -FI_ENOSYS);
  functions.size = sizeof functions - 1;
  EXPECT_EQ(set(functions, FI_SET_OPS_HMEM_OVERRIDE), -FI_EINVAL);
  functions = overriding();
  functions.copy_from_hmem_iov = nullptr;
  EXPECT_EQ(set(functions, FI_SET_OPS_HMEM_OVERRIDE), -FI_EINVAL);
  functions = overriding();
  functions.copy_to_hmem_iov = nullptr;
  EXPECT_EQ(set(functions, FI_SET_OPS_HMEM_OVERRIDE), -FI_EINVAL);
  EXPECT_EQ(fi_set_ops(object, FI_SET_OPS_HMEM_OVERRIDE, 0, nullptr, nullptr), -FI_EINVAL);
  EXPECT_EQ(set(overriding(), FI_SET_OPS_HMEM_OVERRIDE), 0);
  std::byte bytes[8];
  fid_mr* mr = nullptr;
  ASSERT_EQ(fi_mr_reg(domain->get(), bytes, sizeof bytes, FI_SEND, 0, 0, 0, &mr, nullptr), 0);
  EXPECT_EQ(set(overriding(), FI_SET_OPS_HMEM_OVERRIDE), -FI_EBUSY);
  EXPECT_EQ(fi_close(&mr->fid), 0);
  Options options;
  const Domain other(options);
  functions = overriding();
  EXPECT_EQ(fi_set_ops(&other.get()->fid, FI_SET_OPS_HMEM_OVERRIDE, 0, &functions, nullptr),
            -FI_ENOSYS);
}

TEST_F(DeviceRules, OperationsThatWaitForACounterTakeMemoryOfTheHostOnly) {
  Options options = device_options(FI_EP_RDM, FI_MSG | FI_TRIGGER);
  options.counters = FI_SEND;
  Endpoint endpoint(std::make_shared<Domain>(options), options);
  const fi_addr_t self = endpoint.insert(endpoint.name());
  const Memory source(endpoint, &way_, 64);
  fi_triggered_context context{};
  context.event_type = FI_TRIGGER_THRESHOLD;
  context.trigger.threshold.cntr = endpoint.counter(FI_SEND);
  context.trigger.threshold.threshold = 1;
  const iovec iov{source.at(), 64};
  void* descriptor = source.descriptor();
  const fi_msg msg{&iov, &descriptor, 1, self, &context, 0};
  EXPECT_EQ(fi_sendmsg(endpoint.ep(), &msg, FI_TRIGGER), -FI_ENOSYS);
}

// Runs where no driver is installed.
TEST(DeviceMemoryWithoutDrivers, IsNotRegistered) {
  const Options options = device_options(FI_EP_RDM, FI_MSG);
  const Domain domain(options);
  ASSERT_TRUE(domain.ok());
  EXPECT_NE(domain.info()->domain_attr->mr_mode & FI_MR_HMEM, 0);
  std::byte bytes[64];
  for (const fi_hmem_iface iface : {FI_HMEM_CUDA, FI_HMEM_ROCR, FI_HMEM_ZE}) {
    const iovec iov{bytes, sizeof bytes};
    fi_mr_attr attributes{};
    attributes.mr_iov = &iov;
    attributes.iov_count = 1;
    attributes.access = FI_SEND;
    attributes.iface = iface;
    fid_mr* mr = nullptr;
    EXPECT_EQ(fi_mr_regattr(domain.get(), &attributes, 0, &mr), -FI_ENOSYS) << iface;
  }
}

TEST(DeviceMemoryWithoutDrivers, NeedsItsModeBit) {
  Options options = device_options(FI_EP_RDM, FI_MSG);
  options.mr_mode &= ~FI_MR_HMEM;
  const Info hints = make_hints(options);
  int rc = 0;
  EXPECT_EQ(get_info(options, hints.get(), &rc), nullptr);
  EXPECT_EQ(rc, -FI_ENODATA);
  // A program that names no capabilities is offered none of devices.
  Options plain;
  const Info any = make_hints(plain);
  any->caps = 0;
  const Info info = get_info(plain, any.get(), &rc);
  ASSERT_NE(info, nullptr);
  EXPECT_EQ(info->caps & FI_HMEM, 0U);
  EXPECT_EQ(info->domain_attr->mr_mode & FI_MR_HMEM, 0);
}

}  // namespace
}  // namespace weft::conformance
