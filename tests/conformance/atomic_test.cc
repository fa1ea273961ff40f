// SPDX-License-Identifier: BSD-2-Clause
// Does every atomic call do to its target what the manual page says? (fi_atomic(3))
#include <algorithm>
#include <tuple>

#include "support/atomic.h"
#include "support/placements.h"

namespace weft::conformance {
namespace {

constexpr std::uint64_t kBoth = FI_REMOTE_READ | FI_REMOTE_WRITE;
constexpr std::size_t kRegion = 16384;

Options atomic_options() {
  Options options;
  options.caps |= FI_ATOMIC;
  options.order |=
      FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW;
  return options;
}

// Two sides, and memory of the target that the initiator can look at by RMA.
class AtomicWorld {
 public:
  explicit AtomicWorld(Placement placement, Options options = atomic_options())
      : world(placement, options) {
    if (!world.ok()) return;
    region = world.target().expose({.length = kRegion, .access = kBoth, .misalignment = 3});
  }

  void write(std::uint64_t offset, const Bytes& bytes) {
    await("fi_write", [&](void* context) {
      return fi_write(world.ep(), bytes.data(), bytes.size(), nullptr, world.to_target(),
                      region.base + offset, region.key, context);
    });
  }
  Bytes read(std::uint64_t offset, std::size_t length) {
    Bytes bytes(length);
    await("fi_read", [&](void* context) {
      return fi_read(world.ep(), bytes.data(), length, nullptr, world.to_target(),
                     region.base + offset, region.key, context);
    });
    return bytes;
  }
  // Posts while the answer is -FI_EAGAIN.
  template <class Call>
  ssize_t post(Call call) {
    ssize_t rc = -FI_EAGAIN;
    world.pump().until([&] { return (rc = call(&context)) != -FI_EAGAIN; });
    return rc;
  }
  ssize_t post(Atomic& atomic) {
    return post([&](void* own) { return issue(world.ep(), atomic, own); });
  }
  std::optional<Completion> completion() {
    std::optional<Completion> c;
    world.pump().until([&] { return (c = world.endpoint().take(&context)).has_value(); });
    EXPECT_TRUE(c.has_value()) << "no completion";
    return c;
  }
  template <class Call>
  Completion await(const char* what, Call call) {
    EXPECT_EQ(post(call), 0) << what;
    const Completion c = completion().value_or(Completion{});
    EXPECT_EQ(c.err, 0) << what << ": " << fi_strerror(c.err);
    return c;
  }
  // Makes the call and waits for its success.
  Completion perform(Atomic& atomic) {
    const Completion c =
        await("atomic call", [&](void* own) { return issue(world.ep(), atomic, own); });
    collect(atomic);
    return c;
  }
  Atomic call(Form form, fi_datatype type, fi_op op, std::uint64_t offset = 0) const {
    Atomic atomic;
    atomic.form = form;
    atomic.type = type;
    atomic.op = op;
    atomic.peer = world_peer();
    atomic.address = region.base + offset;
    atomic.key = region.key;
    return atomic;
  }
  std::uint64_t counter_at(std::uint64_t offset) {
    std::uint64_t value = 0;
    const Bytes bytes = read(offset, 8);
    std::copy(bytes.begin(), bytes.end(), reinterpret_cast<std::uint8_t*>(&value));
    return value;
  }

  World world;
  Region region;
  fi_context2 context{};

 private:
  fi_addr_t world_peer() const { return world.to_target(); }
};

class AtomicMatrix : public testing::TestWithParam<std::tuple<Form, int, Placement>> {
 protected:
  Form form() const { return std::get<0>(GetParam()); }
  fi_datatype type() const { return static_cast<fi_datatype>(std::get<1>(GetParam())); }
  Placement placement() const { return std::get<2>(GetParam()); }
};

std::string matrix_name(const testing::TestParamInfo<std::tuple<Form, int, Placement>>& one) {
  const auto& [form, type, placement] = one.param;
  return std::string(form_name(form)) + "_type" + std::to_string(type) + "_" + to_string(placement);
}

// One call, its result and the memory around it, against the model.
void check(AtomicWorld& w, Atomic& atomic, std::uint64_t offset, std::mt19937_64& random) {
  atomic.fill(random);
  const Bytes before = random_elements(atomic.type, atomic.count, random);
  // Equal elements make swaps happen.
  const std::size_t equal = random() % (atomic.count + 1) * element_size(atomic.type);
  if (!atomic.compare.empty()) std::copy_n(before.begin(), equal, atomic.compare.begin());
  const Bytes guard(16, 0xa5);
  w.write(offset - 16, guard);
  w.write(offset, before);
  w.write(offset + before.size(), guard);
  const Completion c = w.perform(atomic);
  const std::uint64_t way = atomic.form == Form::kBase ? FI_WRITE : FI_READ;
  EXPECT_EQ(c.flags & (FI_ATOMIC | FI_RMA | FI_READ | FI_WRITE), FI_ATOMIC | way);
  EXPECT_TRUE(same_elements(atomic.type, w.read(offset, before.size()), outcome(atomic, before)));
  if (atomic.form != Form::kBase) {
    EXPECT_TRUE(same_elements(atomic.type, atomic.result, before)) << "not the initial value";
  }
  EXPECT_EQ(w.read(offset - 16, 16), guard);
  EXPECT_EQ(w.read(offset + before.size(), 16), guard);
}

TEST_P(AtomicMatrix, EveryOperationInEveryShapeAndLengthFollowsTheManualPage) {
  AtomicWorld w(placement());
  ASSERT_TRUE(w.world.ok());
  std::mt19937_64 random(7);
  for (int number = 0; number < kOpNumbers; ++number) {
    const auto op = static_cast<fi_op>(number);
    fi_atomic_attr attributes{};
    const int rc = fi_query_atomic(w.world.endpoint().domain()->get(), type(), op, &attributes,
                                   query_flag(form()));
    ASSERT_EQ(rc, makes_sense(form(), type(), op) ? 0 : -FI_EOPNOTSUPP) << number;
    if (rc != 0) continue;
    EXPECT_EQ(attributes.size, element_size(type()));
    for (const Shape shape : {Shape::kPlain, Shape::kVector, Shape::kMessage}) {
      for (const std::size_t count : {std::size_t{1}, std::size_t{3}, attributes.count}) {
        SCOPED_TRACE(testing::Message() << "operation " << number << ", shape "
                                        << static_cast<int>(shape) << ", " << count);
        // At an odd address, and across a page.
        const std::uint64_t offset = count == 3 ? 4091 - count : 101;
        Atomic atomic = w.call(form(), type(), op, offset);
        atomic.shape = shape;
        atomic.count = count;
        check(w, atomic, offset, random);
        if (HasFailure()) return;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Atomics, AtomicMatrix,
    testing::Combine(testing::ValuesIn(kForms), testing::Range(0, kTypeNumbers),
                     testing::Values(Placement::kTwoProcesses, Placement::kConnected)),
    matrix_name);

class Atomics : public PlacementTest {
 protected:
  Atomics() : w_(GetParam()) {}
  AtomicWorld w_;
};

TEST_P(Atomics, InjectedOperationsLeaveNoCompletionAndTheirOperandIsFree) {
  ASSERT_TRUE(w_.world.ok());
  w_.write(0, Bytes(8));
  for (std::uint64_t i = 1; i <= 100; ++i) {
    Atomic add = w_.call(Form::kBase, FI_UINT64, FI_SUM);
    add.shape = Shape::kInject;
    add.operand.assign(8, 0);
    add.operand[0] = static_cast<std::uint8_t>(i);
    ASSERT_EQ(w_.post(add), 0);
    std::fill(add.operand.begin(), add.operand.end(), 0xff);
  }
  EXPECT_EQ(w_.counter_at(0), 5050u);
  EXPECT_EQ(w_.world.initiator().leftovers(), 0u);
}

TEST_P(Atomics, ValidCallsAgreeWithTheQuery) {
  ASSERT_TRUE(w_.world.ok());
  fid_ep* ep = w_.world.ep();
  for (const Form form : kForms) {
    for (int type = 0; type < kTypeNumbers; ++type) {
      for (int op = 0; op < kOpNumbers; ++op) {
        const auto t = static_cast<fi_datatype>(type);
        const auto o = static_cast<fi_op>(op);
        fi_atomic_attr attributes{};
        std::size_t count = 0;
        const int rc = fi_query_atomic(w_.world.endpoint().domain()->get(), t, o, &attributes,
                                       query_flag(form));
        const int valid = form == Form::kBase    ? fi_atomicvalid(ep, t, o, &count)
                          : form == Form::kFetch ? fi_fetch_atomicvalid(ep, t, o, &count)
                                                 : fi_compare_atomicvalid(ep, t, o, &count);
        EXPECT_EQ(valid, rc);
        EXPECT_EQ(count, attributes.count);
      }
    }
  }
}

TEST_P(Atomics, OperationsThatMakeNoSenseAreRefusedByTheCall) {
  ASSERT_TRUE(w_.world.ok());
  std::mt19937_64 random(3);
  for (const Form form : kForms) {
    for (int type = 0; type < kTypeNumbers; ++type) {
      for (int op = 0; op < kOpNumbers; ++op) {
        Atomic atomic = w_.call(form, static_cast<fi_datatype>(type), static_cast<fi_op>(op));
        if (makes_sense(form, atomic.type, atomic.op)) continue;
        atomic.fill(random);
        atomic.operand.resize(32);
        EXPECT_EQ(issue(w_.world.ep(), atomic, &w_.context), -FI_EOPNOTSUPP) << type << " " << op;
      }
    }
  }
  EXPECT_EQ(w_.world.initiator().leftovers(), 0u);
}

TEST_P(Atomics, CountsFromOneToTheLimitAreTaken) {
  ASSERT_TRUE(w_.world.ok());
  std::size_t most = 0;
  ASSERT_EQ(fi_atomicvalid(w_.world.ep(), FI_UINT32, FI_SUM, &most), 0);
  Atomic add = w_.call(Form::kBase, FI_UINT32, FI_SUM);
  add.operand.resize(4 * (most + 1));
  add.count = 0;
  EXPECT_EQ(issue(w_.world.ep(), add, &w_.context), -FI_EINVAL);
  add.count = most + 1;
  EXPECT_EQ(issue(w_.world.ep(), add, &w_.context), -FI_EMSGSIZE);
  add.count = SIZE_MAX / 2;
  EXPECT_EQ(issue(w_.world.ep(), add, &w_.context), -FI_EMSGSIZE);
  add.count = most;
  w_.perform(add);
}

TEST_P(Atomics, ListsThatDoNotAgreeAreRefused) {
  ASSERT_TRUE(w_.world.ok());
  fid_ep* ep = w_.world.ep();
  const fi_addr_t to = w_.world.to_target();
  std::uint64_t words[4]{};
  fi_ioc two{words, 2};
  fi_ioc one{words + 2, 1};
  fi_ioc null{nullptr, 2};
  const auto fetch = [&](const fi_ioc* list, std::size_t count, fi_ioc* results,
                         std::size_t result_count) {
    return fi_fetch_atomicv(ep, list, nullptr, count, results, nullptr, result_count, to,
                            w_.region.base, w_.region.key, FI_UINT64, FI_SUM, &w_.context);
  };
  EXPECT_EQ(fetch(&two, 1, &one, 1), -FI_EINVAL);
  EXPECT_EQ(fetch(&null, 1, &two, 1), -FI_EINVAL);
  EXPECT_EQ(fetch(&two, 1, &null, 1), -FI_EINVAL);
  EXPECT_EQ(fetch(nullptr, 1, &two, 1), -FI_EINVAL);
  EXPECT_EQ(fetch(&two, 1, nullptr, 1), -FI_EINVAL);
  EXPECT_EQ(fetch(&two, 1, &two, 0), -FI_EINVAL);
  EXPECT_EQ(fetch(&two, 1000, &two, 1), -FI_EINVAL);
  EXPECT_EQ(fi_atomicmsg(ep, nullptr, 0), -FI_EINVAL);
  fi_msg_atomic message{};
  EXPECT_EQ(fi_atomicmsg(ep, &message, FI_TAGGED), -FI_EBADFLAGS);
  EXPECT_EQ(w_.world.initiator().leftovers(), 0u);
}

// The right, the range and the key decide, and nothing else is touched.
TEST_P(Atomics, OperationsThatTheTargetDidNotGrantAreRefused) {
  ASSERT_TRUE(w_.world.ok());
  const auto expose = [&](std::uint64_t access) {
    return w_.world.target().expose({.length = 64, .access = access, .seed = 5});
  };
  const Region readable = expose(FI_REMOTE_READ);
  const Region writable = expose(FI_REMOTE_WRITE);
  const auto attempt = [&](Form form, fi_op op, const Region& region, std::uint64_t offset) {
    std::mt19937_64 random(1);
    Atomic atomic = w_.call(form, FI_UINT64, op);
    atomic.fill(random);
    atomic.address = region.base + offset;
    atomic.key = region.key;
    EXPECT_EQ(w_.post(atomic), 0);
    const auto c = w_.completion().value_or(Completion{});
    if (c.err != 0) {
      EXPECT_TRUE(std::all_of(atomic.result.begin(), atomic.result.end(),
                              [](std::uint8_t byte) { return byte == 0xcd; }));
    }
    return c.err;
  };
  EXPECT_EQ(attempt(Form::kBase, FI_SUM, readable, 0), FI_EACCES);
  EXPECT_EQ(attempt(Form::kFetch, FI_SUM, readable, 0), FI_EACCES);
  EXPECT_EQ(attempt(Form::kCompare, FI_CSWAP, readable, 0), FI_EACCES);
  EXPECT_EQ(attempt(Form::kFetch, FI_SUM, writable, 0), FI_EACCES);
  EXPECT_EQ(attempt(Form::kFetch, FI_ATOMIC_READ, writable, 0), FI_EACCES);
  EXPECT_EQ(attempt(Form::kBase, FI_SUM, writable, 57), FI_EACCES);
  EXPECT_EQ(attempt(Form::kBase, FI_SUM, writable, std::uint64_t{0} - 4), FI_EACCES);
  Region unknown = writable;
  unknown.key += 999;
  EXPECT_EQ(attempt(Form::kBase, FI_SUM, unknown, 0), FI_EACCES);
  w_.world.exchange();
  w_.world.target().expect_region(readable, 5, 0, 64);
  w_.world.target().expect_region(writable, 5, 0, 64);
  EXPECT_EQ(attempt(Form::kFetch, FI_ATOMIC_READ, readable, 0), 0);
  EXPECT_EQ(attempt(Form::kBase, FI_SUM, writable, 56), 0);
  w_.world.target().expect_region(writable, 5, 0, 56);
}

TEST_P(Atomics, OperationsOfOneInitiatorTakeEffectInOrder) {
  ASSERT_TRUE(w_.world.ok());
  w_.write(0, Bytes(8));
  for (std::uint64_t i = 0; i < 200; ++i) {
    Atomic add = w_.call(Form::kBase, FI_UINT64, FI_SUM);
    add.shape = Shape::kInject;
    add.operand.assign(8, 0);
    add.operand[0] = 1;
    ASSERT_EQ(w_.post(add), 0);
    Atomic fetch = w_.call(Form::kFetch, FI_UINT64, FI_ATOMIC_READ);
    fetch.result.resize(8);
    w_.perform(fetch);
    ASSERT_EQ(fetch.result[0], i + 1);
  }
}

TEST_P(Atomics, FlagsOfMessageCallsAreTaken) {
  ASSERT_TRUE(w_.world.ok());
  std::mt19937_64 random(1);
  for (const std::uint64_t flags :
       {std::uint64_t{FI_COMPLETION}, std::uint64_t{FI_INJECT}, std::uint64_t{FI_MORE},
        std::uint64_t{FI_FENCE}, std::uint64_t{FI_DELIVERY_COMPLETE},
        std::uint64_t{FI_TRANSMIT_COMPLETE | FI_INJECT}}) {
    for (const Form form : kForms) {
      Atomic atomic = w_.call(form, FI_INT32, form == Form::kCompare ? FI_MSWAP : FI_BXOR, 200);
      atomic.shape = Shape::kMessage;
      atomic.count = 4;
      atomic.flags = flags;
      check(w_, atomic, 200, random);
    }
  }
}

TEST_P(Atomics, RemoteDataIsReportedAfterTheOperation) {
  ASSERT_TRUE(w_.world.ok());
  std::mt19937_64 random(1);
  for (const Form form : kForms) {
    Atomic atomic = w_.call(form, FI_UINT64, form == Form::kCompare ? FI_CSWAP : FI_SUM);
    atomic.shape = Shape::kMessage;
    atomic.fill(random);
    atomic.flags = FI_REMOTE_CQ_DATA | FI_COMPLETION;
    atomic.data = 0xfeed0000 + static_cast<std::uint64_t>(form);
    w_.perform(atomic);
    const Completion c = w_.world.target().wait_success(kNoToken);
    EXPECT_EQ(c.data, atomic.data);
    const std::uint64_t way = form == Form::kBase ? FI_REMOTE_WRITE : FI_REMOTE_READ;
    EXPECT_EQ(c.flags & (FI_ATOMIC | FI_REMOTE_CQ_DATA | FI_REMOTE_WRITE | FI_REMOTE_READ),
              FI_ATOMIC | FI_REMOTE_CQ_DATA | way);
  }
}

INSTANTIATE_TEST_SUITE_P(Atomics, Atomics, every_placement(), placement_name);

class AtomicCounters : public PlacementTest {};

// fi_endpoint(3), fi_ep_bind: fetching and comparing operations are reads.
TEST_P(AtomicCounters, CountAtBothSidesByWhatTheOperationBrings) {
  Options options = atomic_options();
  options.caps |= FI_RMA_EVENT;
  options.counters = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
  AtomicWorld w(GetParam(), options);
  ASSERT_TRUE(w.world.ok());
  std::mt19937_64 random(1);
  const auto perform = [&](Form form, fi_op op) {
    Atomic atomic = w.call(form, FI_UINT64, op);
    atomic.fill(random);
    w.perform(atomic);
  };
  for (int i = 0; i < 3; ++i) perform(Form::kBase, FI_SUM);
  perform(Form::kFetch, FI_SUM);
  perform(Form::kCompare, FI_CSWAP);
  w.world.initiator().expect_counter(FI_WRITE, 3);
  w.world.initiator().expect_counter(FI_READ, 2);
  w.world.target().expect_counter(FI_REMOTE_WRITE, 3);
  w.world.target().expect_counter(FI_REMOTE_READ, 2);
  Atomic refused = w.call(Form::kFetch, FI_UINT64, FI_SUM);
  refused.fill(random);
  refused.key += 77;
  ASSERT_EQ(w.post(refused), 0);
  EXPECT_EQ(w.completion()->err, FI_EACCES);
  EXPECT_EQ(w.world.initiator().counter_error(FI_READ), 1u);
  EXPECT_EQ(w.world.initiator().counter(FI_READ), 2u);
  EXPECT_EQ(w.world.target().counter(FI_REMOTE_READ), 2u);
}

INSTANTIATE_TEST_SUITE_P(Atomics, AtomicCounters, both_process_counts(), placement_name);

class AtomicSelective : public PlacementTest {};

TEST_P(AtomicSelective, OnlyCallsThatAskForItComplete) {
  Options options = atomic_options();
  options.cq_flags = FI_SELECTIVE_COMPLETION;
  AtomicWorld w(GetParam(), options);
  ASSERT_TRUE(w.world.ok());
  std::mt19937_64 random(1);
  Atomic silent = w.call(Form::kFetch, FI_UINT64, FI_SUM);
  silent.fill(random);
  ASSERT_EQ(w.post(silent), 0);
  Atomic message = w.call(Form::kFetch, FI_UINT64, FI_SUM);
  message.shape = Shape::kMessage;
  message.flags = FI_COMPLETION;
  message.fill(random);
  w.perform(message);
  EXPECT_EQ(w.world.initiator().leftovers(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Atomics, AtomicSelective, both_process_counts(), placement_name);

TEST(AtomicCaps, AreGrantedWithTheirModifiersAndOrders) {
  Options options = atomic_options();
  options.caps = FI_ATOMIC | FI_READ | FI_REMOTE_READ;
  int rc = 0;
  const Info hints = make_hints(options);
  const Info info = get_info(options, hints.get(), &rc);
  ASSERT_EQ(rc, 0);
  EXPECT_EQ(info->caps & (FI_ATOMIC | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE),
            FI_ATOMIC | FI_READ | FI_REMOTE_READ);
  EXPECT_EQ(info->tx_attr->msg_order & options.order, options.order);
}

TEST(AtomicCaps, AnEndpointWithoutThemRefusesTheCalls) {
  World world(Placement::kOneProcess, Options{});
  ASSERT_TRUE(world.ok());
  std::uint64_t operand = 1;
  EXPECT_EQ(fi_atomic(world.ep(), &operand, 1, nullptr, world.to_target(), 0, 0, FI_UINT64, FI_SUM,
                      nullptr),
            -FI_ENOSYS);
}

}  // namespace
}  // namespace weft::conformance
