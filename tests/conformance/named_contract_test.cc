// SPDX-License-Identifier: BSD-2-Clause
// Does FI_WEFT_CONTRACT make fi_getinfo demand, and the domain enforce, what the named provider
// does?
#include <rdma/fi_rma.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "support/placements.h"

namespace weft::conformance {
namespace {

constexpr int kAllBits = ~(FI_MR_BASIC | FI_MR_SCALABLE);
constexpr std::uint32_t kNow = FI_VERSION(1, 17);
constexpr std::uint32_t kOld = FI_VERSION(1, 4);

// A row of the table in docs/design/contracts.md, as far as Weft enforces it. 0: Weft's own limit.
struct Row {
  const char* name;
  int modes;
  std::size_t key_size;
  std::size_t segments;
  std::size_t regions;
  std::size_t inject_size;
  std::size_t message_size;
  fi_progress data_progress;  // without a hint
  bool manual;                // FI_PROGRESS_AUTO cannot be had
};

constexpr Row kRows[] = {
    {"verbs", kMapModes | FI_MR_LOCAL, 4, 1, 0, 256, std::size_t{1} << 30, FI_PROGRESS_AUTO, false},
    {"efa", kMapModes | FI_MR_LOCAL, 4, 1, 0, 0, 0, FI_PROGRESS_AUTO, false},
    {"cxi", FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT, 8, 1, 100, 192, 0xffff'ffff,
     FI_PROGRESS_MANUAL, true},
    {"ucx", kMapModes | FI_MR_RAW, 64, 1, 65536, 1024, 0, FI_PROGRESS_MANUAL, true},
    {"local,allocated", FI_MR_LOCAL | FI_MR_ALLOCATED, 8, 8, 0, 0, 0, FI_PROGRESS_MANUAL, false},
};

std::string names_of(int modes) { return fi_tostr(&modes, FI_TYPE_MR_MODE); }

class NamedContract : public testing::Test {
 protected:
  NamedContract() {
    const char* const name = std::getenv("FI_WEFT_CONTRACT");
    const auto* const found =
        std::ranges::find(kRows, std::string(name != nullptr ? name : ""),
                          [](const Row& row) { return std::string(row.name); });
    EXPECT_NE(found, std::end(kRows)) << "FI_WEFT_CONTRACT names none of the contracts";
    if (found != std::end(kRows)) row_ = *found;
  }

  static Options options(int modes = kAllBits) {
    Options options;
    options.mr_mode = modes;
    return options;
  }
  // Those that an endpoint without remote accesses needs.
  int modes_of_messages() const {
    const bool local = (row_.modes & FI_MR_LOCAL) != 0;
    return local ? row_.modes & ~(FI_MR_VIRT_ADDR | FI_MR_PROV_KEY) : 0;
  }
  // FI_MR_BASIC says no other bits than these.
  bool fits_basic() const { return (row_.modes & ~(kMapModes | FI_MR_LOCAL)) == 0; }
  static std::vector<int> bits_of(int modes) {
    std::vector<int> bits;
    for (int bit = FI_MR_LOCAL; bit <= FI_MR_ENDPOINT; bit <<= 1) {
      if ((modes & bit) != 0) bits.push_back(bit);
    }
    return bits;
  }
  // The answer of fi_getinfo to hints, and what it has logged.
  int ask(const Options& options, const fi_info* hints) {
    testing::internal::CaptureStderr();
    int rc = 0;
    answer_ = get_info(options, hints, &rc);
    log_ = testing::internal::GetCapturedStderr();
    return rc;
  }
  void expect_refused(const Options& options, const fi_info* hints, const std::string& what) {
    EXPECT_EQ(ask(options, hints), -FI_ENODATA) << what;
    EXPECT_NE(log_.find("contract " + std::string(row_.name)), std::string::npos) << log_;
    EXPECT_NE(log_.find(what), std::string::npos) << log_;
  }
  template <class Change>
  void expect_refused(const std::string& what, Change change) {
    const Options asked = options();
    const Info hints = make_hints(asked);
    change(*hints);
    expect_refused(asked, hints.get(), what);
  }

  Row row_{};
  Info answer_;
  std::string log_;
};

TEST_F(NamedContract, IsToldToProgramsWithoutHints) {
  fi_info* found = nullptr;
  ASSERT_EQ(fi_getinfo(kNow, nullptr, nullptr, 0, nullptr, &found), 0);
  const Info list(found);
  int seen = 0;
  for (const fi_info* info = found; info != nullptr; info = info->next) {
    if (provider_name() != info->fabric_attr->prov_name) continue;
    ++seen;
    const bool datagrams = info->ep_attr->type == FI_EP_DGRAM;
    const fi_domain_attr& domain = *info->domain_attr;
    EXPECT_EQ(domain.mr_mode, datagrams ? modes_of_messages() : row_.modes);
    EXPECT_EQ(domain.mr_key_size, row_.key_size);
    EXPECT_EQ(domain.mr_iov_limit, row_.segments);
    EXPECT_EQ(domain.data_progress, row_.data_progress);
    if (row_.regions != 0) {
      EXPECT_EQ(domain.mr_cnt, row_.regions);
    }
    if (row_.inject_size != 0) {
      EXPECT_EQ(info->tx_attr->inject_size, row_.inject_size);
    }
    if (row_.message_size != 0 && !datagrams) {
      EXPECT_EQ(info->ep_attr->max_msg_size, row_.message_size);
    }
    EXPECT_EQ(info->mode, 0u);
  }
  EXPECT_GE(seen, 3);
}

TEST_F(NamedContract, HintsNeedEveryDemandedBit) {
  for (const fi_ep_type type : {FI_EP_RDM, FI_EP_MSG}) {
    Options asked = options(row_.modes);
    asked.type = type;
    EXPECT_EQ(ask(asked, make_hints(asked).get()), 0);
    for (const int bit : bits_of(row_.modes)) {
      asked.mr_mode = kAllBits & ~bit;
      expect_refused(asked, make_hints(asked).get(), names_of(bit));
    }
    asked.mr_mode = 0;
    expect_refused(asked, make_hints(asked).get(), names_of(row_.modes));
  }
  Options asked = datagrams();
  asked.mr_mode = modes_of_messages();
  EXPECT_EQ(ask(asked, make_hints(asked).get()), 0);
  for (const int bit : bits_of(modes_of_messages())) {
    asked.mr_mode = kAllBits & ~bit;
    expect_refused(asked, make_hints(asked).get(), names_of(bit));
  }
}

// fi_mr(3): FI_MR_LOCAL replaces FI_LOCAL_MR, which is ignored beside it.
TEST_F(NamedContract, FiLocalMrIsNothingBesideTheBits) {
  Options asked = options();
  const Info hints = make_hints(asked);
  for (const std::uint64_t mode : {std::uint64_t{0}, std::uint64_t{FI_LOCAL_MR}}) {
    hints->mode = mode;
    ASSERT_EQ(ask(asked, hints.get()), 0) << log_;
    EXPECT_EQ(answer_->domain_attr->mr_mode, row_.modes);
    EXPECT_EQ(answer_->mode, 0u);
  }
  if ((row_.modes & FI_MR_LOCAL) == 0) return;
  hints->domain_attr->mr_mode = kAllBits & ~FI_MR_LOCAL;
  expect_refused(asked, hints.get(), names_of(FI_MR_LOCAL));
}

// Before API 1.5 FI_MR_LOCAL is FI_LOCAL_MR of fi_info::mode; with FI_MR_BASIC it still is.
TEST_F(NamedContract, OldProgramsKeepItByFiLocalMr) {
  if (!fits_basic()) {
    for (const int mode : {0, +FI_MR_BASIC, +FI_MR_SCALABLE}) {
      Options asked = options(mode);
      asked.api = kOld;
      const Info hints = make_hints(asked);
      hints->mode |= FI_LOCAL_MR;
      expect_refused(asked, hints.get(), names_of(row_.modes & ~(kMapModes | FI_MR_LOCAL)));
    }
    return;
  }
  const bool local = (row_.modes & FI_MR_LOCAL) != 0;
  for (const auto& [api, mode] : {std::pair{kOld, 0}, {kOld, FI_MR_BASIC}, {kNow, FI_MR_BASIC}}) {
    Options asked = options(mode);
    asked.api = api;
    const Info hints = make_hints(asked);
    hints->mode |= FI_LOCAL_MR;
    ASSERT_EQ(ask(asked, hints.get()), 0) << log_;
    EXPECT_EQ(answer_->domain_attr->mr_mode, FI_MR_BASIC);
    EXPECT_EQ(answer_->mode, local ? FI_LOCAL_MR : 0u);
    hints->mode &= ~FI_LOCAL_MR;
    if (local) {
      expect_refused(asked, hints.get(), "FI_LOCAL_MR");
    } else {
      EXPECT_EQ(ask(asked, hints.get()), 0) << log_;
    }
    hints->mode |= FI_LOCAL_MR;
    hints->domain_attr->mr_mode = FI_MR_SCALABLE;
    expect_refused(asked, hints.get(), names_of(FI_MR_ALLOCATED));
    hints->domain_attr->mr_mode = FI_MR_BASIC | FI_MR_LOCAL;
    EXPECT_EQ(ask(asked, hints.get()), -FI_ENODATA);
  }
}

TEST_F(NamedContract, HintsBeyondALimitAreRefused) {
  expect_refused("mr_key_size",
                 [&](fi_info& i) { i.domain_attr->mr_key_size = row_.key_size + 1; });
  expect_refused("mr_iov_limit",
                 [&](fi_info& i) { i.domain_attr->mr_iov_limit = row_.segments + 1; });
  if (row_.regions != 0) {
    expect_refused("mr_cnt", [&](fi_info& i) { i.domain_attr->mr_cnt = row_.regions + 1; });
  }
  if (row_.inject_size != 0) {
    expect_refused("inject_size",
                   [&](fi_info& i) { i.tx_attr->inject_size = row_.inject_size + 1; });
  }
  if (row_.message_size != 0) {
    expect_refused("max_msg_size",
                   [&](fi_info& i) { i.ep_attr->max_msg_size = row_.message_size + 1; });
  }
  if (row_.manual) {
    expect_refused("data_progress",
                   [](fi_info& i) { i.domain_attr->data_progress = FI_PROGRESS_AUTO; });
  }
}

// A program that keeps the contract, with a buffer and a region that every rule allows.
class KeptContract : public NamedContract {
 protected:
  KeptContract() : world_(Placement::kSelf, options()) {}
  ~KeptContract() override {
    for (std::uint64_t key : mapped_) EXPECT_EQ(fi_mr_unmap_key(domain(), key), 0);
  }

  fid_domain* domain() { return world_.endpoint().domain()->get(); }

  Fid<fid_mr> reg(void* base, std::size_t length) {
    auto made = open_fid<fid_mr>([&](fid_mr** out) { return try_reg(base, length, out); });
    if ((row_.modes & FI_MR_ENDPOINT) != 0) {
      EXPECT_EQ(fi_mr_bind(made.get(), &world_.ep()->fid, 0), 0);
      EXPECT_EQ(fi_mr_enable(made.get()), 0);
    }
    return made;
  }
  // As the program's peers know the region.
  std::uint64_t key_of(fid_mr* region) {
    if ((row_.modes & FI_MR_RAW) == 0) return fi_mr_key(region);
    std::array<std::uint8_t, 64> raw{};
    std::size_t size = raw.size();
    std::uint64_t base = 0;
    std::uint64_t key = 0;
    EXPECT_EQ(fi_mr_raw_attr(region, &base, raw.data(), &size, 0), 0);
    EXPECT_EQ(fi_mr_map_raw(domain(), base, raw.data(), size, &key, 0), 0);
    mapped_.push_back(key);
    return key;
  }
  int try_reg(void* base, std::size_t length, fid_mr** out) {
    constexpr std::uint64_t kRights =
        FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
    return fi_mr_reg(domain(), base, length, kRights, 0, Endpoint::next_key(), 0, out, nullptr);
  }
  std::uint64_t address(const void* base) const {
    return (row_.modes & FI_MR_VIRT_ADDR) != 0 ? reinterpret_cast<std::uint64_t>(base) : 0;
  }
  int ending(ssize_t rc) {
    EXPECT_EQ(rc, 0);
    std::optional<Completion> found;
    if (rc != 0) return static_cast<int>(-rc);
    EXPECT_TRUE(world_.pump().until(
        [&] { return (found = world_.endpoint().take(&context_)).has_value(); }));
    return found.value_or(Completion{}).err;
  }
  int write(std::uint64_t to, std::uint64_t key) {
    return ending(fi_write(world_.ep(), memory_.data(), 64, fi_mr_desc(region_.get()),
                           world_.to_target(), to, key, &context_));
  }

  std::array<char, 8192> memory_{};
  std::vector<std::uint64_t> mapped_;
  World world_;
  Fid<fid_mr> region_ = world_.ok() ? reg(memory_.data(), memory_.size()) : nullptr;
  fi_context2 context_{};
};

TEST_F(KeptContract, Works) {
  ASSERT_TRUE(world_.ok());
  std::array<char, 64> exposed{};
  const auto target = reg(exposed.data(), exposed.size());
  std::ranges::fill(memory_, 'k');
  EXPECT_EQ(write(address(exposed.data()), key_of(target.get())), 0);
  EXPECT_TRUE(world_.pump().until([&] { return exposed[63] == 'k'; }));
  const std::size_t inject = world_.endpoint().info()->tx_attr->inject_size;
  EXPECT_EQ(fi_inject(world_.ep(), memory_.data(), inject, world_.to_target()), 0);
}

TEST_F(KeptContract, WithAnUnmappedRegionIsRefused) {
  ASSERT_TRUE(world_.ok());
  // Far from where the kernel would map something else in its place.
  void* const far = reinterpret_cast<void*>(0x2000'0000'0000);
  void* const page = ::mmap(far, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  void* const missing = static_cast<char*>(page) + 4096;
  ASSERT_EQ(::munmap(missing, 4096), 0);
  fid_mr* opened = nullptr;
  testing::internal::CaptureStderr();
  EXPECT_EQ(try_reg(page, 8192, &opened), -FI_EFAULT);
  const std::string log = testing::internal::GetCapturedStderr();
  std::ostringstream bad;
  bad << "the page of " << missing << " is not mapped";
  EXPECT_NE(log.find("contract " + std::string(row_.name)), std::string::npos) << log;
  EXPECT_NE(log.find(bad.str()), std::string::npos) << log;
  ::munmap(page, 4096);
}

TEST_F(KeptContract, WithKeysOrAddressesOfItsOwnIsRefused) {
  ASSERT_TRUE(world_.ok());
  std::array<char, 64> exposed{};
  const auto target = reg(exposed.data(), exposed.size());
  const std::uint64_t key = key_of(target.get());
  if (row_.key_size < 8) {
    EXPECT_LT(key, std::uint64_t{1} << (8 * row_.key_size));
  }
  const bool provider_keys = (row_.modes & FI_MR_PROV_KEY) != 0;
  if (provider_keys) {
    EXPECT_EQ(write(address(exposed.data()), Endpoint::next_key()), FI_EACCES);
  }
  const auto other_kind = (row_.modes & FI_MR_VIRT_ADDR) != 0
                              ? std::uint64_t{0}
                              : reinterpret_cast<std::uint64_t>(exposed.data());
  EXPECT_EQ(write(other_kind, key), FI_EACCES);
}

TEST_F(KeptContract, WithMoreSegmentsIsRefused) {
  ASSERT_TRUE(world_.ok());
  std::vector<iovec> parts(row_.segments + 1, iovec{memory_.data(), 64});
  fid_mr* opened = nullptr;
  testing::internal::CaptureStderr();
  EXPECT_EQ(fi_mr_regv(domain(), parts.data(), parts.size(), FI_SEND, 0, Endpoint::next_key(), 0,
                       &opened, nullptr),
            -FI_EINVAL);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("contract " + std::string(row_.name)), std::string::npos) << log;
}

TEST_F(KeptContract, WithMoreRegionsIsRefused) {
  ASSERT_TRUE(world_.ok());
  if (row_.regions == 0) GTEST_SKIP() << "no limit of this contract's own";
  std::vector<Fid<fid_mr>> regions(row_.regions - 1);
  for (auto& region : regions) region = reg(memory_.data(), 64);
  fid_mr* opened = nullptr;
  EXPECT_EQ(try_reg(memory_.data(), 64, &opened), -FI_ENOSPC);
  regions.pop_back();
  EXPECT_EQ(try_reg(memory_.data(), 64, &opened), 0) << "room after one close";
  EXPECT_EQ(fi_close(&opened->fid), 0);
}

TEST_F(KeptContract, WithLongerMessagesIsRefused) {
  ASSERT_TRUE(world_.ok());
  const fi_addr_t peer = world_.to_target();
  const fi_info& info = *world_.endpoint().info();
  std::vector<char> bytes(info.tx_attr->inject_size + 1);
  const iovec one{bytes.data(), bytes.size()};
  void* none = nullptr;
  const fi_msg msg{&one, &none, 1, peer, &context_, 0};
  EXPECT_EQ(fi_inject(world_.ep(), bytes.data(), bytes.size(), peer), -FI_EMSGSIZE);
  EXPECT_EQ(fi_sendmsg(world_.ep(), &msg, FI_INJECT), -FI_EMSGSIZE);
  EXPECT_EQ(fi_inject_write(world_.ep(), bytes.data(), bytes.size(), peer, 0, 1), -FI_EMSGSIZE);
  const std::size_t longer = info.ep_attr->max_msg_size + 1;
  EXPECT_EQ(fi_send(world_.ep(), memory_.data(), longer, nullptr, peer, &context_), -FI_EMSGSIZE);
  EXPECT_EQ(fi_write(world_.ep(), memory_.data(), longer, nullptr, peer, 0, 1, &context_),
            -FI_EMSGSIZE);
}

// fi_domain(3) takes what fi_getinfo answers, and nothing that demands less.
TEST_F(NamedContract, DomainsAreOpenedWithItAlone) {
  const Domain domain(options());
  ASSERT_TRUE(domain.ok());
  const auto open_with = [&](int mode) {
    const Info info(fi_dupinfo(domain.info()));
    info->domain_attr->mr_mode = mode;
    fid_domain* opened = nullptr;
    const int rc = fi_domain(domain.fabric(), info.get(), &opened, nullptr);
    if (rc == 0) fi_close(&opened->fid);
    return rc;
  };
  EXPECT_EQ(open_with(row_.modes), 0);
  EXPECT_EQ(open_with(FI_MR_BASIC), fits_basic() ? 0 : -FI_EINVAL);
  EXPECT_EQ(open_with(FI_MR_SCALABLE), -FI_EINVAL);
  EXPECT_EQ(open_with(0), -FI_EINVAL);
  for (const int bit : bits_of(row_.modes)) {
    EXPECT_EQ(open_with(row_.modes & ~bit), -FI_EINVAL) << names_of(bit);
  }
}

// What fi_getinfo answers for messages opens a domain, in which no endpoint accesses memory.
TEST_F(NamedContract, DomainsOfMessagesHaveNoEndpointsForRma) {
  Options asked = options();
  asked.caps = FI_MSG;
  const Domain domain(asked);
  ASSERT_TRUE(domain.ok());
  EXPECT_EQ(domain.info()->domain_attr->mr_mode, modes_of_messages());
  const Info info(fi_dupinfo(domain.info()));
  info->caps |= FI_RMA | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
  fid_ep* opened = nullptr;
  const int rc = fi_endpoint(domain.get(), info.get(), &opened, nullptr);
  EXPECT_EQ(rc, row_.modes == modes_of_messages() ? 0 : -FI_EINVAL);
  if (rc == 0) fi_close(&opened->fid);
}

// A key that the provider chooses has all bytes.
TEST_F(NamedContract, SmallerKeysAreNotHadByAHint) {
  Options asked = options();
  const Info hints = make_hints(asked);
  hints->domain_attr->mr_key_size = 1;
  ASSERT_EQ(ask(asked, hints.get()), 0) << log_;
  EXPECT_EQ(answer_->domain_attr->mr_key_size, row_.key_size);
}

}  // namespace
}  // namespace weft::conformance
