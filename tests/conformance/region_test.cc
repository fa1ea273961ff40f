// SPDX-License-Identifier: BSD-2-Clause
// What does each registration contract promise about keys, addresses and descriptors? (fi_mr(3))
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <set>
#include <vector>

#include "support/placements.h"

namespace weft::conformance {
namespace {

struct Contract {
  const char* name;
  std::uint32_t api;
  int hinted;
};
constexpr std::uint32_t kNow = FI_VERSION(1, 17);
constexpr Contract kContracts[] = {
    {"Scalable", kNow, 0},
    {"ScalableByName", kNow, FI_MR_SCALABLE},
    {"BasicByName", kNow, FI_MR_BASIC},
    {"VirtualAddress", kNow, FI_MR_VIRT_ADDR},
    {"ProviderKey", kNow, FI_MR_PROV_KEY},
    {"Allocated", kNow, FI_MR_ALLOCATED},
    {"AddressAndKey", kNow, FI_MR_VIRT_ADDR | FI_MR_PROV_KEY},
    {"Mapped", kNow, kMapModes},
    {"Everything", kNow, kRequirableModes | FI_MR_LOCAL | FI_MR_HMEM | FI_MR_COLLECTIVE},
    {"OldBasic", FI_VERSION(1, 4), FI_MR_BASIC},
    {"OldScalable", FI_VERSION(1, 4), FI_MR_SCALABLE},
};

// Whether a program that offers these bits is served.
bool is_met(const Contract& contract) {
  if (!map_contract() || contract.hinted == FI_MR_BASIC) return true;
  return contract.api >= FI_VERSION(1, 5) && (contract.hinted & kMapModes) == kMapModes;
}

std::vector<Contract> met_contracts() {
  std::vector<Contract> met;
  std::copy_if(std::begin(kContracts), std::end(kContracts), std::back_inserter(met), is_met);
  return met;
}

std::ostream& operator<<(std::ostream& out, const Contract& contract) {
  return out << contract.name;
}

using RegionCase = std::tuple<Contract, Placement>;

class RegionContract : public testing::TestWithParam<RegionCase> {
 protected:
  RegionContract() : world_(std::get<1>(GetParam()), options()) {}

  static Contract contract() { return std::get<0>(GetParam()); }
  static Options options() {
    Options options;
    options.api = std::get<0>(GetParam()).api;
    options.mr_mode = std::get<0>(GetParam()).hinted;
    return options;
  }
  int mode() { return world_.endpoint().info()->domain_attr->mr_mode; }
  bool provider_chooses_keys() { return mode() == FI_MR_BASIC || (mode() & FI_MR_PROV_KEY) != 0; }
  fid_domain* domain() { return world_.endpoint().domain()->get(); }
  int reg(std::vector<std::uint8_t>* memory, std::uint64_t key, Fid<fid_mr>* mr) {
    fid_mr* raw = nullptr;
    const int rc = fi_mr_reg(domain(), memory->data(), memory->size(),
                             FI_REMOTE_READ | FI_REMOTE_WRITE, 0, key, 0, &raw, nullptr);
    if (rc == 0) mr->reset(raw);
    return rc;
  }

  World world_;
};

// fi_mr(3): "A provider will clear an mr_mode bit if it is not needed."
TEST_P(RegionContract, AnswerIsWhatIsNeeded) {
  ASSERT_TRUE(world_.ok());
  const int hinted = contract().hinted;
  const bool by_name = hinted == FI_MR_BASIC || hinted == FI_MR_SCALABLE;
  EXPECT_EQ(mode(), by_name ? hinted : usual_mr_mode());
  EXPECT_NE(world_.endpoint().info()->caps & FI_RMA, 0u);
}

TEST(Contracts, ThatAreNotMetAreRefused) {
  for (const Contract& contract : kContracts) {
    if (is_met(contract)) continue;
    Options options;
    options.api = contract.api;
    options.mr_mode = contract.hinted;
    int rc = 0;
    get_info(options, make_hints(options).get(), &rc);
    EXPECT_EQ(rc, -FI_ENODATA) << contract.name;
  }
}

TEST(Contracts, AreToldToProgramsWithoutAHint) {
  fi_info* found = nullptr;
  ASSERT_EQ(fi_getinfo(kNow, nullptr, nullptr, 0, nullptr, &found), 0);
  const Info list(found);
  for (const fi_info* info = found; info != nullptr; info = info->next) {
    if (provider_name() != info->fabric_attr->prov_name) continue;
    EXPECT_EQ(info->domain_attr->mr_mode, info->ep_attr->type == FI_EP_DGRAM ? 0 : usual_mr_mode());
    EXPECT_EQ(info->domain_attr->av_type, FI_AV_UNSPEC);
  }
}

// The answer of fi_mr_reg(3), for a region that is closed again.
int try_registration(const Domain& domain, const void* from, std::size_t length,
                     std::uint64_t access) {
  fid_mr* mr = nullptr;
  const int rc =
      fi_mr_reg(domain.get(), from, length, access, 0, Endpoint::next_key(), 0, &mr, nullptr);
  if (rc == 0) fi_close(&mr->fid);
  return rc;
}

// FI_MR_ALLOCATED, which FI_MR_BASIC contains: memory is there when it is registered.
TEST(Contracts, OfAllocatedMemoryRefuseWhatIsNotMapped) {
  Options options;
  options.mr_mode = map_contract() ? kMapModes : FI_MR_BASIC;
  const Domain domain(options);
  ASSERT_TRUE(domain.ok());
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  // Far from where the kernel would map something else in its place.
  void* const far = reinterpret_cast<void*>(0x2000'0000'0000);
  void* const memory =
      mmap(far, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* const bytes = static_cast<std::uint8_t*>(memory);
  const auto reg = [&](const void* from, std::size_t length) {
    return try_registration(domain, from, length, FI_REMOTE_WRITE);
  };
  EXPECT_EQ(reg(bytes, 4 * page), 0);
  ASSERT_EQ(munmap(bytes + 2 * page, page), 0);
  EXPECT_EQ(reg(bytes, 4 * page), -FI_EFAULT);
  EXPECT_EQ(reg(bytes + 2 * page, 1), -FI_EFAULT);
  EXPECT_EQ(reg(bytes, 2 * page + 1), -FI_EFAULT);
  EXPECT_EQ(reg(bytes + 1, 2 * page - 1), 0);
  EXPECT_EQ(reg(bytes + 3 * page, page), 0);
  EXPECT_EQ(reg(bytes + 2 * page, 0), 0);
  EXPECT_EQ(munmap(memory, 4 * page), 0);
}

// The pages are mapped with what the access flags need.
TEST(Contracts, OfAllocatedMemoryRefuseWhatIsProtected) {
  Options options;
  options.mr_mode = map_contract() ? kMapModes : FI_MR_BASIC;
  const Domain domain(options);
  ASSERT_TRUE(domain.ok());
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* const memory = mmap(nullptr, 2 * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const auto reg = [&](std::uint64_t access) {
    return try_registration(domain, memory, 2 * page, access);
  };
  EXPECT_EQ(reg(FI_SEND | FI_WRITE | FI_REMOTE_READ), 0);
  for (const std::uint64_t writes : {FI_RECV, FI_READ, FI_REMOTE_WRITE}) {
    EXPECT_EQ(reg(FI_REMOTE_READ | writes), -FI_EFAULT) << writes;
  }
  ASSERT_EQ(mprotect(memory, page, PROT_READ | PROT_WRITE), 0);
  EXPECT_EQ(reg(FI_REMOTE_WRITE), -FI_EFAULT);
  ASSERT_EQ(mprotect(memory, 2 * page, PROT_NONE), 0);
  EXPECT_EQ(reg(FI_SEND), -FI_EFAULT);
  EXPECT_EQ(munmap(memory, 2 * page), 0);
}

// fi_mr(3): without FI_MR_LOCAL "the desc parameter into data transfer operations will be ignored".
TEST(Contracts, WithoutLocalIgnoreDescriptors) {
  World world(Placement::kSelf, Options{});
  ASSERT_TRUE(world.ok());
  char wrong = 0;
  std::array<char, 16> memory{};
  std::array<char, 16> sent{"descriptor"};
  fi_context2 contexts[2]{};
  const auto expect_success = [&](ssize_t rc, fi_context2* context) {
    ASSERT_EQ(rc, 0);
    std::optional<Completion> c;
    EXPECT_TRUE(
        world.pump().until([&] { return (c = world.endpoint().take(context)).has_value(); }));
    EXPECT_EQ(c.value_or(Completion{.err = 1}).err, 0);
  };
  const Region region = world.target().expose({});
  const auto remote = [&](auto call, std::array<char, 16>& local) {
    expect_success(call(world.ep(), local.data(), local.size(), &wrong, world.to_target(),
                        region.base, region.key, contexts),
                   contexts);
  };
  remote(fi_write, sent);
  remote(fi_read, memory);
  EXPECT_EQ(memory, sent);
  memory = {};
  const ssize_t posted =
      fi_recv(world.ep(), memory.data(), memory.size(), &wrong, FI_ADDR_UNSPEC, contexts);
  expect_success(
      fi_send(world.ep(), sent.data(), sent.size(), &wrong, world.to_target(), contexts + 1),
      contexts + 1);
  expect_success(posted, contexts);
  EXPECT_EQ(memory, sent);
}

// Writes and reads at both ends and in the middle, with the address form that the mode asks for.
TEST_P(RegionContract, GivesAccessToTheWholeRegion) {
  ASSERT_TRUE(world_.ok());
  constexpr std::size_t kLength = 10000;
  const Region region = world_.target().expose({.length = kLength, .misalignment = 5});
  for (const std::size_t at : {std::size_t{0}, std::size_t{4321}, kLength - 100}) {
    const auto rma = [&](Kind kind) {
      return world_.initiator().post({.kind = kind,
                                      .length = 100,
                                      .seed = at + 1,
                                      .peer = world_.to_target(),
                                      .remote_address = region.base + at,
                                      .key = region.key});
    };
    world_.initiator().wait_success(rma(Kind::kWrite));
    const Token read = rma(Kind::kRead);
    world_.initiator().wait_success(read);
    world_.initiator().expect_data(read, at + 1, 100);
  }
  world_.target().expect_region(region, 1, 0, 100);
  world_.target().expect_region(region, kLength - 99, kLength - 100, 100);
  world_.target().expect_region_blank(region, 100, 4000);
}

TEST_P(RegionContract, KeysAreChosenByTheSideThatTheModeSays) {
  ASSERT_TRUE(world_.ok());
  std::vector<std::uint8_t> memory(128);
  std::set<std::uint64_t> keys;
  std::vector<Fid<fid_mr>> regions(4);
  const std::uint64_t wishes[] = {0, 7, 0xC0DE, ~std::uint64_t{0} >> 1};
  for (std::size_t i = 0; i < 4; ++i) {
    ASSERT_EQ(reg(&memory, wishes[i], &regions[i]), 0);
    EXPECT_TRUE(provider_chooses_keys() || fi_mr_key(regions[i].get()) == wishes[i]);
    EXPECT_NE(fi_mr_key(regions[i].get()), FI_KEY_NOTAVAIL);
    keys.insert(fi_mr_key(regions[i].get()));
  }
  EXPECT_EQ(keys.size(), 4u);
  Fid<fid_mr> any;
  EXPECT_EQ(reg(&memory, FI_KEY_NOTAVAIL, &any), provider_chooses_keys() ? 0 : -FI_EKEYREJECTED);
}

TEST_P(RegionContract, SecondUseOfAKeyIsRefused) {
  ASSERT_TRUE(world_.ok());
  std::vector<std::uint8_t> memory(128);
  Fid<fid_mr> first;
  Fid<fid_mr> second;
  ASSERT_EQ(reg(&memory, 99, &first), 0);
  if (provider_chooses_keys()) {
    EXPECT_EQ(reg(&memory, 99, &second), 0);
    EXPECT_NE(fi_mr_key(first.get()), fi_mr_key(second.get()));
  } else {
    EXPECT_EQ(reg(&memory, 99, &second), -FI_ENOKEY);
    first.reset();
    EXPECT_EQ(reg(&memory, 99, &second), 0);
  }
}

// Programs that never expose their buffers ask for key 0 each time, or for none.
TEST_P(RegionContract, ARegionThatNoPeerMayAccessNeedsNoKey) {
  ASSERT_TRUE(world_.ok());
  std::vector<std::uint8_t> memory(128, 9);
  Fid<fid_mr> exposed;
  ASSERT_EQ(reg(&memory, 0, &exposed), 0);
  std::vector<Fid<fid_mr>> local;
  constexpr std::uint64_t kRights[] = {0, FI_SEND, FI_SEND | FI_RECV, FI_READ | FI_WRITE};
  for (const std::uint64_t access : kRights) {
    for (const std::uint64_t key : {std::uint64_t{0}, FI_KEY_NOTAVAIL}) {
      local.push_back(open_fid<fid_mr>([&](fid_mr** out) {
        return fi_mr_reg(domain(), memory.data(), memory.size(), access, 0, key, 0, out, nullptr);
      }));
      ASSERT_NE(local.back(), nullptr);
      EXPECT_EQ(fi_mr_key(local.back().get()), FI_KEY_NOTAVAIL);
      EXPECT_NE(fi_mr_desc(local.back().get()), nullptr);
    }
  }
  const bool by_offset = mode() != FI_MR_BASIC && (mode() & FI_MR_VIRT_ADDR) == 0;
  const auto read = [&](std::uint64_t key) {
    const auto address = reinterpret_cast<std::uint64_t>(memory.data());
    return world_.target().post({.kind = Kind::kRead,
                                 .length = 16,
                                 .peer = world_.to_initiator(),
                                 .remote_address = by_offset ? 0 : address,
                                 .key = key});
  };
  const std::uint64_t key = fi_mr_key(exposed.get());
  world_.target().wait_success(read(key));
  world_.target().wait_error(read(FI_KEY_NOTAVAIL), FI_EACCES);
  exposed.reset();
  world_.target().wait_error(read(key), FI_EACCES);
  EXPECT_EQ(reg(&memory, 0, &exposed), 0) << "a local region has the key";
}

TEST_P(RegionContract, DescriptorIsAcceptedByOperations) {
  ASSERT_TRUE(world_.ok());
  std::vector<std::uint8_t> memory(128, 9);
  fid_mr* raw = nullptr;
  ASSERT_EQ(
      fi_mr_reg(domain(), memory.data(), memory.size(), FI_SEND | FI_WRITE, 0, 3, 0, &raw, nullptr),
      0);
  const Fid<fid_mr> mr(raw);
  fi_context2 context{};
  const Region region = world_.target().expose({});
  ssize_t rc = -FI_EAGAIN;
  EXPECT_TRUE(world_.pump().until([&] {
    rc = fi_write(world_.ep(), memory.data(), memory.size(), fi_mr_desc(raw), world_.to_target(),
                  region.base, region.key, &context);
    return rc != -FI_EAGAIN;
  }));
  EXPECT_EQ(rc, 0);
  std::optional<Completion> c;
  EXPECT_TRUE(
      world_.pump().until([&] { return (c = world_.endpoint().take(&context)).has_value(); }));
  EXPECT_EQ(c.value_or(Completion{.err = 1}).err, 0);
}

TEST_P(RegionContract, VectorAndAttributeFormsRegisterToo) {
  ASSERT_TRUE(world_.ok());
  std::vector<std::uint8_t> memory(128);
  iovec part{memory.data(), memory.size()};
  fid_mr* raw = nullptr;
  ASSERT_EQ(fi_mr_regv(domain(), &part, 1, FI_REMOTE_READ, 0, 21, FI_RMA_EVENT, &raw, nullptr), 0);
  const Fid<fid_mr> by_vector(raw);
  fi_mr_attr attr{};
  attr.mr_iov = &part;
  attr.iov_count = 1;
  attr.access = FI_REMOTE_WRITE;
  attr.requested_key = 22;
  ASSERT_EQ(fi_mr_regattr(domain(), &attr, FI_RMA_EVENT, &raw), 0);
  const Fid<fid_mr> by_attribute(raw);
  EXPECT_NE(fi_mr_key(by_vector.get()), fi_mr_key(by_attribute.get()));
}

INSTANTIATE_TEST_SUITE_P(Regions, RegionContract,
                         testing::Combine(testing::ValuesIn(met_contracts()),
                                          both_process_counts()),
                         [](const testing::TestParamInfo<RegionCase>& one) {
                           return std::string(std::get<0>(one.param).name) + "_" +
                                  to_string(std::get<1>(one.param));
                         });

class Regions : public PlacementTest {};

TEST_P(Regions, HundredsAreKeptApart) {
  World world(GetParam(), Options{});
  ASSERT_TRUE(world.ok());
  std::vector<Region> regions;
  for (std::uint64_t i = 0; i < 300; ++i) {
    regions.push_back(world.target().expose({.length = 64 + i, .seed = i + 1}));
  }
  for (std::uint64_t i = 0; i < 300 && !HasFailure(); i += 7) {
    const Token read = world.initiator().post({.kind = Kind::kRead,
                                               .length = 64 + i,
                                               .peer = world.to_target(),
                                               .remote_address = regions[i].base,
                                               .key = regions[i].key});
    world.initiator().wait_success(read);
    world.initiator().expect_data(read, i + 1, 64 + i);
  }
  for (const Region& region : regions) EXPECT_EQ(world.target().close_region(region), 0);
}

// Two regions over the same bytes are two grants.
TEST_P(Regions, OverlappingRegionsKeepTheirOwnRights) {
  World world(GetParam(), Options{});
  ASSERT_TRUE(world.ok());
  std::vector<std::uint8_t> memory(256, 1);
  const auto grant = [&](std::uint64_t access) {
    return open_fid<fid_mr>([&](fid_mr** o) {
      return fi_mr_reg(world.endpoint().domain()->get(), memory.data(), memory.size(), access, 0,
                       Endpoint::next_key(), 0, o, nullptr);
    });
  };
  const Fid<fid_mr> readable = grant(FI_REMOTE_READ);
  const Fid<fid_mr> writable = grant(FI_REMOTE_WRITE);
  const auto write = [&](const Fid<fid_mr>& mr) {
    return world.target().post({.kind = Kind::kWrite,
                                .length = 16,
                                .seed = 1,
                                .peer = world.to_initiator(),
                                .key = fi_mr_key(mr.get())});
  };
  world.target().wait_error(write(readable), FI_EACCES);
  world.target().wait_success(write(writable));
}

INSTANTIATE_TEST_SUITE_P(Regions, Regions, both_process_counts(), placement_name);

// By the scalable contract a range may be registered that nothing backs; only access to it fails.
// The range stays reserved, so that nothing else can come to lie there meanwhile.
TEST(UnbackedRegion, AccessFailsWithoutHarmToEitherSide) {
  World world(Placement::kTwoProcesses, Options{});
  ASSERT_TRUE(world.ok());
  constexpr std::size_t kLength = 1 << 20;
  void* memory = mmap(nullptr, kLength, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  Fid<fid_mr> mr = open_fid<fid_mr>([&](fid_mr** o) {
    return fi_mr_reg(world.endpoint().domain()->get(), memory, kLength,
                     FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 17, 0, o, nullptr);
  });
  ASSERT_NE(mr, nullptr);
  for (const Kind kind : {Kind::kWrite, Kind::kRead}) {
    for (const std::size_t length : {std::size_t{8}, std::size_t{5000}, kLength}) {
      SCOPED_TRACE(testing::Message() << traits(kind).name << " of " << length);
      const Token token = world.target().post({.kind = kind,
                                               .length = length,
                                               .peer = world.to_initiator(),
                                               .key = fi_mr_key(mr.get())});
      world.target().wait_error(token, FI_EFAULT);
      world.exchange();
    }
  }
  mr.reset();
  EXPECT_EQ(munmap(memory, kLength), 0);
}

// fi_mr(3): "any range of addresses in their virtual address space, whether or not those addresses
// are backed by physical pages or have been allocated".
TEST(UnbackedRegion, IsAccessedOnceItIsMapped) {
  World world(Placement::kTwoProcesses, Options{});
  ASSERT_TRUE(world.ok());
  constexpr std::size_t kLength = 1 << 20;
  // Far from other mappings, so that nothing comes to lie there meanwhile.
  void* const usual = mmap(nullptr, kLength, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(usual, MAP_FAILED);
  ASSERT_EQ(munmap(usual, kLength), 0);
  void* const memory = static_cast<char*>(usual) - (std::size_t{64} << 30);
  Fid<fid_mr> mr = open_fid<fid_mr>([&](fid_mr** o) {
    return fi_mr_reg(world.endpoint().domain()->get(), memory, kLength,
                     FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 18, 0, o, nullptr);
  });
  ASSERT_NE(mr, nullptr);
  ASSERT_EQ(mmap(memory, kLength, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
            memory);
  for (const Kind kind : {Kind::kWrite, Kind::kRead}) {
    const Token token = world.target().post({.kind = kind,
                                             .length = kLength,
                                             .seed = 4,
                                             .peer = world.to_initiator(),
                                             .key = fi_mr_key(mr.get())});
    world.target().wait_success(token);
    if (kind == Kind::kRead) world.target().expect_data(token, 4, kLength);
  }
  mr.reset();
  EXPECT_EQ(munmap(memory, kLength), 0);
}

// Bad arguments get a documented error, and no object.
class Registration : public testing::Test {
 protected:
  Registration() : domain_(Options{}) {}
  int reg(const void* buffer, std::size_t length, std::uint64_t access, std::uint64_t offset,
          std::uint64_t flags) {
    fid_mr* raw = nullptr;
    const int rc = fi_mr_reg(domain_.get(), buffer, length, access, offset, Endpoint::next_key(),
                             flags, &raw, nullptr);
    if (rc == 0) fi_close(&raw->fid);
    return rc;
  }

  Domain domain_;
  std::array<std::uint8_t, 64> memory_{};
};

// fi_domain(3): mr_cnt is how many regions a domain may have.
TEST_F(Registration, BeyondMrCntIsRefusedUntilARegionIsClosed) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a million regions";
#endif
  ASSERT_TRUE(domain_.ok());
  ASSERT_EQ(domain_.info()->domain_attr->mr_cnt, std::size_t{1} << 20);
  std::vector<Fid<fid_mr>> regions(std::size_t{1} << 20);
  const auto open = [&](fid_mr** out) {
    return fi_mr_reg(domain_.get(), memory_.data(), memory_.size(), FI_REMOTE_READ, 0,
                     Endpoint::next_key(), 0, out, nullptr);
  };
  for (auto& region : regions) {
    fid_mr* made = nullptr;
    ASSERT_EQ(open(&made), 0);
    region.reset(made);
  }
  fid_mr* one_more = nullptr;
  EXPECT_EQ(open(&one_more), -FI_ENOSPC);
  regions.pop_back();
  EXPECT_EQ(open(&one_more), 0);
  fi_close(&one_more->fid);
}

TEST_F(Registration, OfNothingSucceeds) {
  ASSERT_TRUE(domain_.ok());
  EXPECT_EQ(reg(memory_.data(), 0, FI_REMOTE_READ, 0, 0), 0);
  EXPECT_EQ(reg(nullptr, 0, FI_REMOTE_WRITE, 0, 0), 0);
}

// Programs pass the capabilities of their endpoints.
TEST_F(Registration, IgnoresCapabilitiesAmongTheRights) {
  ASSERT_TRUE(domain_.ok());
  for (const std::uint64_t capability : {FI_RMA, FI_MSG, FI_TAGGED, FI_ATOMIC, FI_RMA_EVENT,
                                         FI_SOURCE, FI_DIRECTED_RECV, FI_COLLECTIVE | FI_SEND}) {
    const std::uint64_t access = capability | FI_REMOTE_READ;
    EXPECT_EQ(reg(memory_.data(), memory_.size(), access, 0, 0), 0)
        << fi_tostr(&access, FI_TYPE_CAPS);
  }
}

TEST_F(Registration, UnderAKeyThatCannotBeIsRejected) {
  ASSERT_TRUE(domain_.ok());
  fid_mr* mr = nullptr;
  const auto reg_as = [&](fid_domain* domain, std::uint64_t key) {
    const int rc =
        fi_mr_reg(domain, memory_.data(), memory_.size(), FI_REMOTE_READ, 0, key, 0, &mr, nullptr);
    if (rc == 0) fi_close(&mr->fid);
    return rc;
  };
  EXPECT_EQ(reg_as(domain_.get(), FI_KEY_NOTAVAIL), -FI_EKEYREJECTED);
  EXPECT_EQ(reg_as(domain_.get(), FI_KEY_NOTAVAIL - 1), 0);
  const Info narrow(fi_dupinfo(domain_.info()));
  narrow->domain_attr->mr_key_size = 4;
  const auto domain = open_fid<fid_domain>(
      [&](fid_domain** out) { return fi_domain(domain_.fabric(), narrow.get(), out, nullptr); });
  ASSERT_NE(domain, nullptr);
  EXPECT_EQ(reg_as(domain.get(), 0xFFFF'FFFF), 0);
  EXPECT_EQ(reg_as(domain.get(), 0x1'0000'0000), -FI_EKEYREJECTED);
}

// Without FI_HMEM the field means nothing (fi_mr(3)).
TEST_F(Registration, DoesNotHeedTheInterfaceOfDeviceMemory) {
  ASSERT_TRUE(domain_.ok());
  iovec part{memory_.data(), memory_.size()};
  for (const int iface : {int{FI_HMEM_CUDA}, int{FI_HMEM_ZE}, 0x7FFFFFFF}) {
    fi_mr_attr attr{};
    attr.mr_iov = &part;
    attr.iov_count = 1;
    attr.access = FI_REMOTE_READ;
    attr.requested_key = Endpoint::next_key();
    std::memcpy(&attr.iface, &iface, sizeof iface);
    attr.device.reserved = ~std::uint64_t{0};
    fid_mr* mr = nullptr;
    ASSERT_EQ(fi_mr_regattr(domain_.get(), &attr, 0, &mr), 0) << iface;
    EXPECT_EQ(fi_close(&mr->fid), 0);
  }
}

// fi_mr_attr has grown: a program passes what the API had that it was compiled for. Here that ends
// where the memory does.
TEST(OldRegistration, IsNotReadBehindItsEnd) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* const memory =
      mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* const end = static_cast<std::uint8_t*>(memory) + page;
  ASSERT_EQ(mprotect(end, page, PROT_NONE), 0);
  struct Age {
    std::uint32_t api;
    std::size_t bytes;
  };
  for (const Age age : {Age{FI_VERSION(1, 4), offsetof(fi_mr_attr, auth_key_size)},
                        Age{FI_VERSION(1, 8), offsetof(fi_mr_attr, iface)}}) {
    Options options;
    options.api = age.api;
    options.mr_mode = age.api < FI_VERSION(1, 5) ? FI_MR_SCALABLE : 0;
    const Domain domain(options);
    ASSERT_TRUE(domain.ok());
    iovec part{memory, 16};
    fi_mr_attr attr{};
    attr.mr_iov = &part;
    attr.iov_count = 1;
    attr.access = FI_REMOTE_READ;
    attr.requested_key = Endpoint::next_key();
    std::memcpy(end - age.bytes, &attr, age.bytes);
    fid_mr* mr = nullptr;
    ASSERT_EQ(fi_mr_regattr(domain.get(), reinterpret_cast<fi_mr_attr*>(end - age.bytes), 0, &mr),
              0);
    EXPECT_EQ(fi_close(&mr->fid), 0);
  }
  EXPECT_EQ(munmap(memory, 2 * page), 0);
}

TEST_F(Registration, WithAnOffsetIsRefused) {
  ASSERT_TRUE(domain_.ok());
  EXPECT_EQ(reg(memory_.data(), memory_.size(), FI_REMOTE_READ, 16, 0), -FI_EINVAL);
}

TEST_F(Registration, WithUnknownRightsOrFlagsIsRefused) {
  ASSERT_TRUE(domain_.ok());
  EXPECT_EQ(reg(memory_.data(), memory_.size(), FI_REMOTE_READ | (1ull << 55), 0, 0), -FI_EINVAL);
  EXPECT_EQ(reg(memory_.data(), memory_.size(), FI_REMOTE_READ, 0, 1ull << 55), -FI_EBADFLAGS);
}

// Neither persistent memory nor that of devices.
TEST_F(Registration, WithFlagsOfMemoryThatIsNotOfferedIsRefused) {
  ASSERT_TRUE(domain_.ok());
  for (const std::uint64_t flag : {FI_RMA_PMEM, FI_HMEM_DEVICE_ONLY, FI_HMEM_HOST_ALLOC}) {
    EXPECT_EQ(reg(memory_.data(), memory_.size(), FI_REMOTE_READ, 0, flag), -FI_EBADFLAGS) << flag;
    EXPECT_EQ(reg(memory_.data(), memory_.size(), FI_SEND, 0, flag | FI_RMA_EVENT), -FI_EBADFLAGS);
  }
}

TEST_F(Registration, OfARangeThatWrapsIsRefused) {
  ASSERT_TRUE(domain_.ok());
  for (const auto access : {FI_REMOTE_READ, FI_SEND})
    EXPECT_EQ(reg(memory_.data(), ~std::size_t{0}, access, 0, 0), -FI_EINVAL);
}

TEST_F(Registration, OfTooManyOrNoPartsIsRefused) {
  ASSERT_TRUE(domain_.ok());
  const std::size_t limit = domain_.info()->domain_attr->mr_iov_limit;
  std::vector<iovec> parts(limit + 1, iovec{memory_.data(), 8});
  fid_mr* raw = nullptr;
  for (const std::size_t count : {std::size_t{0}, limit + 1}) {
    EXPECT_EQ(
        fi_mr_regv(domain_.get(), parts.data(), count, FI_REMOTE_READ, 0, 1, 0, &raw, nullptr),
        -FI_EINVAL);
  }
  EXPECT_EQ(fi_mr_regv(domain_.get(), nullptr, 1, FI_REMOTE_READ, 0, 1, 0, &raw, nullptr),
            -FI_EINVAL);
  EXPECT_EQ(fi_mr_regattr(domain_.get(), nullptr, 0, &raw), -FI_EINVAL);
}

}  // namespace
}  // namespace weft::conformance
