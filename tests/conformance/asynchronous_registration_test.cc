// SPDX-License-Identifier: BSD-2-Clause
// How is a registration reported to the event queue of its domain? fi_mr(3), FI_REG_MR
#include <sys/mman.h>

#include <thread>
#include <vector>

#include "os/thread_state_support.h"
#include "support/native_wait.h"
#include "support/own_region.h"

namespace weft::conformance {
namespace {

constexpr std::size_t kLength = 4096;
constexpr std::uint64_t kRights = FI_REMOTE_READ | FI_REMOTE_WRITE;

// An endpoint that is its own peer, in a domain that reports registrations.
class AsynchronousRegistrationBase : public testing::Test {
 protected:
  explicit AsynchronousRegistrationBase(const Options& options)
      : world_(Placement::kSelf, options) {}
  void SetUp() override { ASSERT_TRUE(world_.ok() && eq() != nullptr); }

  static Options reporting() {
    Options options;
    options.caps |= FI_RMA_EVENT;
    options.mr_mode = kRequirableModes;
    options.registrations = FI_WAIT_FD;
    return options;
  }
  bool required(int bit) { return (world_.endpoint().info()->domain_attr->mr_mode & bit) != 0; }
  fid_domain* domain() { return world_.endpoint().domain()->get(); }
  fid_eq* eq() { return world_.endpoint().domain()->registrations(); }
  Fid<fid_mr> reg(std::uint64_t key = Endpoint::next_key()) { return reg(memory_.data(), key); }
  Fid<fid_mr> reg(void* base, std::uint64_t key) {
    return open_fid<fid_mr>([&](fid_mr** out) {
      return fi_mr_reg(domain(), base, kLength, kRights, 0, key, 0, out, &context_);
    });
  }
  // Reads the event of a region that is registered now.
  void expect_complete(const fid_mr* mr, ssize_t got, std::uint32_t event,
                       const fi_eq_entry& entry) {
    EXPECT_EQ(got, static_cast<ssize_t>(sizeof entry));
    EXPECT_EQ(event, static_cast<std::uint32_t>(FI_MR_COMPLETE));
    EXPECT_EQ(entry.fid, &mr->fid);
    EXPECT_EQ(entry.context, &context_);
  }
  void read_complete(const fid_mr* mr) {
    fi_eq_entry entry{};
    std::uint32_t event = 0;
    const ssize_t got = fi_eq_read(eq(), &event, &entry, sizeof entry, 0);
    expect_complete(mr, got, event, entry);
  }
  void sleep_for_complete(const fid_mr* mr) {
    fi_eq_entry entry{};
    std::uint32_t event = 0;
    const int patience_ms = static_cast<int>(patience().count());
    const ssize_t got = fi_eq_sread(eq(), &event, &entry, sizeof entry, patience_ms, 0);
    expect_complete(mr, got, event, entry);
  }
  void expect_failed(const fid_mr* mr, int error) {
    fi_eq_entry entry{};
    std::uint32_t event = 0;
    EXPECT_EQ(fi_eq_read(eq(), &event, &entry, sizeof entry, 0), -FI_EAVAIL);
    fi_eq_err_entry failed{};
    EXPECT_EQ(fi_eq_readerr(eq(), &failed, 0), static_cast<ssize_t>(sizeof failed));
    EXPECT_EQ(failed.fid, &mr->fid);
    EXPECT_EQ(failed.context, &context_);
    EXPECT_EQ(failed.err, error);
    expect_nothing();
  }
  void expect_nothing() {
    fi_eq_entry entry{};
    std::uint32_t event = 0;
    EXPECT_EQ(fi_eq_read(eq(), &event, &entry, sizeof entry, 0), -FI_EAGAIN);
  }
  void expect_unusable(fid_mr* mr) {
    EXPECT_EQ(fi_mr_key(mr), FI_KEY_NOTAVAIL);
    EXPECT_EQ(fi_mr_desc(mr), nullptr);
    std::array<std::uint8_t, 64> raw{};
    std::size_t size = raw.size();
    std::uint64_t base = 0;
    EXPECT_EQ(fi_mr_raw_attr(mr, &base, raw.data(), &size, 0), -FI_EOPBADSTATE);
    EXPECT_EQ(fi_mr_bind(mr, &world_.ep()->fid, 0), -FI_EOPBADSTATE);
    EXPECT_EQ(fi_mr_enable(mr), -FI_EOPBADSTATE);
    EXPECT_EQ(fi_mr_refresh(mr, nullptr, 0, 0), -FI_EOPBADSTATE);
  }
  int write(std::uint64_t key) {
    const auto base = reinterpret_cast<std::uint64_t>(memory_.data());
    Party& peer = world_.target();
    const Token token = peer.post({.kind = Kind::kWrite,
                                   .length = 64,
                                   .seed = 3,
                                   .peer = world_.to_target(),
                                   .remote_address = required(FI_MR_VIRT_ADDR) ? base : 0,
                                   .key = key});
    const std::optional<Completion> ending = peer.wait(token);
    return ending ? ending->err : -1;
  }

  alignas(4096) std::array<std::uint8_t, kLength> memory_{};
  fi_context2 context_{};
  World world_;
};

// The thread that reads the queue registers.
class AsynchronousRegistration : public AsynchronousRegistrationBase,
                                 public testing::WithParamInterface<fi_progress> {
 protected:
  AsynchronousRegistration() : AsynchronousRegistrationBase(read()) {}

  static Options read() {
    Options options = reporting();
    options.data_progress = GetParam();
    options.control_progress = FI_PROGRESS_MANUAL;
    return options;
  }
};

TEST_P(AsynchronousRegistration, EndsWithAnEvent) {
  const std::uint64_t wanted = Endpoint::next_key();
  const Fid<fid_mr> mr = reg(wanted);
  expect_unusable(mr.get());
  EXPECT_EQ(write(wanted), FI_EACCES);
  read_complete(mr.get());
  expect_nothing();
  EXPECT_NE(fi_mr_desc(mr.get()), nullptr);
  if (required(FI_MR_RAW | FI_MR_ENDPOINT)) return;
  EXPECT_EQ(write(fi_mr_key(mr.get())), 0);
}

TEST_P(AsynchronousRegistration, IsToldInTheOrderOfTheCalls) {
  std::vector<Fid<fid_mr>> regions(20);
  for (auto& mr : regions) mr = reg();
  for (const auto& mr : regions) read_complete(mr.get());
  expect_nothing();
}

TEST_P(AsynchronousRegistration, MayBeLookedAtBeforeItIsRead) {
  const Fid<fid_mr> mr = reg();
  fi_eq_entry entry{};
  std::uint32_t event = 0;
  const ssize_t got = fi_eq_read(eq(), &event, &entry, sizeof entry, FI_PEEK);
  expect_complete(mr.get(), got, event, entry);
  read_complete(mr.get());
}

TEST_P(AsynchronousRegistration, OfAKeyInUseFailsByAnEvent) {
  if (required(FI_MR_PROV_KEY | FI_MR_RAW)) GTEST_SKIP() << "requested keys are ignored";
  const std::uint64_t wanted = Endpoint::next_key();
  const Fid<fid_mr> first = reg(wanted);
  const Fid<fid_mr> second = reg(wanted);
  read_complete(first.get());
  expect_failed(second.get(), FI_ENOKEY);
  expect_unusable(second.get());
}

TEST_P(AsynchronousRegistration, OfMissingPagesFailsByAnEvent) {
  if (!required(FI_MR_ALLOCATED)) GTEST_SKIP() << "pages may be mapped later";
  // Far from where the kernel would map something else in its place.
  void* const far = reinterpret_cast<void*>(0x2000'0000'0000);
  void* const page = ::mmap(far, kLength, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  const Fid<fid_mr> mr = reg(page, Endpoint::next_key());
  ::munmap(page, kLength);
  expect_failed(mr.get(), FI_EFAULT);
  expect_unusable(mr.get());
}

TEST_P(AsynchronousRegistration, BeyondTheLimitFailsByAnEvent) {
  const std::size_t most = world_.endpoint().info()->domain_attr->mr_cnt;
  if (most > 1000) GTEST_SKIP() << "too many for this test";
  std::vector<Fid<fid_mr>> regions(most);
  for (auto& mr : regions) {
    mr = reg();
    read_complete(mr.get());
  }
  const Fid<fid_mr> last = reg();
  expect_failed(last.get(), FI_ENOSPC);
  regions.pop_back();
  const Fid<fid_mr> next = reg();
  read_complete(next.get());
}

TEST_P(AsynchronousRegistration, WithWrongArgumentsFailsAtOnce) {
  fid_mr* none = nullptr;
  const auto call = [&](void* base, std::size_t length, std::uint64_t offset, std::uint64_t flags) {
    return fi_mr_reg(domain(), base, length, kRights, offset, 1, flags, &none, nullptr);
  };
  EXPECT_EQ(call(memory_.data(), kLength, 8, 0), -FI_EINVAL);
  EXPECT_EQ(call(memory_.data(), kLength, 0, FI_MORE), -FI_EBADFLAGS);
  EXPECT_EQ(call(memory_.data(), SIZE_MAX, 0, 0), -FI_EINVAL);
  EXPECT_EQ(fi_mr_regv(domain(), nullptr, 1, kRights, 0, 1, 0, &none, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_mr_reg(domain(), memory_.data(), kLength, 1ull << 55, 0, 1, 0, &none, nullptr),
            -FI_EINVAL);
  if (!required(FI_MR_PROV_KEY | FI_MR_RAW)) {
    EXPECT_EQ(fi_mr_reg(domain(), memory_.data(), kLength, kRights, 0, FI_KEY_NOTAVAIL, 0, &none,
                        nullptr),
              -FI_EKEYREJECTED);
  }
  EXPECT_EQ(none, nullptr);
  expect_nothing();
}

TEST_P(AsynchronousRegistration, OfARegionThatIsClosedIsNotReported) {
  Fid<fid_mr> mr = reg();
  const Fid<fid_mr> other = reg();
  mr.reset();
  read_complete(other.get());
  expect_nothing();
}

TEST_P(AsynchronousRegistration, WakesAThreadThatSleepsOnTheQueue) {
  fid_mr* made = nullptr;
  std::thread program = os::once_asleep([&] {
    EXPECT_EQ(fi_mr_reg(domain(), memory_.data(), kLength, kRights, 0, Endpoint::next_key(), 0,
                        &made, &context_),
              0);
  });
  fi_eq_entry entry{};
  std::uint32_t event = 0;
  const int patience_ms = static_cast<int>(patience().count());
  const ssize_t got = fi_eq_sread(eq(), &event, &entry, sizeof entry, patience_ms, 0);
  const Fid<fid_mr> mr(made);  // written before the event, whether the call has returned or not
  program.join();
  expect_complete(mr.get(), got, event, entry);
}

TEST_P(AsynchronousRegistration, SignalsTheWaitObject) {
  fid_fabric* const fabric = world_.endpoint().domain()->fabric();
  const Fid<fid_mr> mr = reg();
  EXPECT_EQ(block_on(fabric, &eq()->fid, FI_WAIT_FD, 1000), -FI_EAGAIN) << "it can be read";
  sleep_for_complete(mr.get());
}

TEST_P(AsynchronousRegistration, KeepsTheQueueInUse) {
  EXPECT_EQ(fi_close(&eq()->fid), -FI_EBUSY);
  const Fid<fid_mr> mr = reg();
  EXPECT_EQ(fi_close(&domain()->fid), -FI_EBUSY);
}

// The provider's thread registers, whether the queue is read or not.
class AutomaticRegistration : public AsynchronousRegistrationBase {
 protected:
  AutomaticRegistration() : AsynchronousRegistrationBase(automatic()) {}
  void SetUp() override {
    AsynchronousRegistrationBase::SetUp();
    if (world_.endpoint().info()->domain_attr->control_progress != FI_PROGRESS_AUTO)
      GTEST_SKIP() << "the contract has manual progress";
    if (required(FI_MR_RAW | FI_MR_ENDPOINT | FI_MR_PROV_KEY))
      GTEST_SKIP() << "the key is not known before";
  }

  static Options automatic() {
    Options options = reporting();
    options.data_progress = FI_PROGRESS_MANUAL;
    return options;
  }
  void expect_accessible(std::uint64_t key) {
    const auto deadline = std::chrono::steady_clock::now() + patience();
    int ending = FI_EACCES;
    while (ending == FI_EACCES && std::chrono::steady_clock::now() < deadline) ending = write(key);
    EXPECT_EQ(ending, 0);
  }
};

TEST_F(AutomaticRegistration, EndsThoughTheQueueIsNotRead) {
  const std::uint64_t wanted = Endpoint::next_key();
  const Fid<fid_mr> mr = reg(wanted);
  expect_accessible(wanted);
  sleep_for_complete(mr.get());
  EXPECT_NE(fi_mr_key(mr.get()), FI_KEY_NOTAVAIL);
  expect_nothing();
}

TEST_F(AutomaticRegistration, EndsBehindEventsThatAreNotRead) {
  std::vector<Fid<fid_mr>> regions(3);
  std::vector<std::uint64_t> keys;
  for (auto& mr : regions) mr = reg(keys.emplace_back(Endpoint::next_key()));
  for (const std::uint64_t key : keys) expect_accessible(key);
  const std::uint64_t late = Endpoint::next_key();
  const Fid<fid_mr> last = reg(late);
  expect_accessible(late);
  for (const auto& mr : regions) sleep_for_complete(mr.get());
  sleep_for_complete(last.get());
}

TEST_F(AutomaticRegistration, MayBeClosedWhileItIsUnderWay) {
  for (int i = 0; i < 200; ++i) reg().reset();
  expect_nothing();
}

TEST_F(AutomaticRegistration, IsReadOnceByOneOfSeveralThreads) {
  constexpr int kRegions = 300;
  std::atomic<int> read{0};
  std::atomic<int> wrong{0};
  const auto read_all = [&] {
    while (read < kRegions) {
      fi_eq_entry entry{};
      std::uint32_t event = 0;
      const ssize_t got = fi_eq_read(eq(), &event, &entry, sizeof entry, 0);
      if (got == sizeof entry && event == FI_MR_COMPLETE) ++read;
      if (got != sizeof entry && got != -FI_EAGAIN) ++wrong;
      std::this_thread::yield();
    }
  };
  std::thread one(read_all);
  std::thread other(read_all);
  std::vector<Fid<fid_mr>> regions(kRegions);
  for (auto& mr : regions) mr = reg();
  one.join();
  other.join();
  EXPECT_EQ(read, kRegions);
  EXPECT_EQ(wrong, 0);
  for (const auto& mr : regions) EXPECT_NE(fi_mr_key(mr.get()), FI_KEY_NOTAVAIL);
}

TEST(BindingForRegistrations, TakesNoOtherFlagsAndObjects) {
  Options options;
  options.mr_mode = kRequirableModes;
  options.registrations = FI_WAIT_UNSPEC;
  const Domain domain(options);
  ASSERT_TRUE(domain.ok());
  EXPECT_EQ(fi_domain_bind(domain.get(), &domain.registrations()->fid, FI_REG_MR), -FI_EINVAL);
  EXPECT_EQ(fi_domain_bind(domain.get(), &domain.registrations()->fid, FI_SEND), -FI_EBADFLAGS);
  EXPECT_EQ(fi_domain_bind(domain.get(), &domain.fabric()->fid, FI_REG_MR), -FI_EINVAL);
}

INSTANTIATE_TEST_SUITE_P(Registrations, AsynchronousRegistration,
                         testing::Values(FI_PROGRESS_MANUAL, FI_PROGRESS_AUTO),
                         [](const auto& one) {
                           return one.param == FI_PROGRESS_AUTO ? "Automatic" : "Manual";
                         });

}  // namespace
}  // namespace weft::conformance
