// SPDX-License-Identifier: BSD-2-Clause
// Does every refused access end with its error and reason, change nothing, and leave both endpoints
// usable? (fi_mr(3), docs/user/reasons.md)
//
// The peer accesses memory of this process. Points cover every pair of values of the dimensions;
// WEFT_TEST_MATRIX=full takes all points. A row that needs a bit of mr_mode takes part where
// FI_WEFT_CONTRACT lists the bit.
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "support/covering.h"
#include "support/level.h"
#include "support/own_region.h"

namespace weft::conformance {
namespace {

class BadAccess;

// Key and address of the peer's access.
struct Aim {
  std::uint64_t key = 0;
  std::uint64_t address = 0;
};

struct Row {
  const char* name;
  int err;
  int reason;
  const char* bit;  // of mr_mode, which the contract has to list; or null
  Aim (BadAccess::*aim)();
};

constexpr Kind kAccesses[] = {Kind::kWrite,           Kind::kWritedata,   Kind::kInjectWrite,
                              Kind::kInjectWritedata, Kind::kRead,        Kind::kAtomic,
                              Kind::kInjectAtomic,    Kind::kFetchAtomic, Kind::kCompareAtomic};

// The peer's process and endpoint type. A far peer is reached over the network.
struct Home {
  const char* name;
  Placement placement;
  bool far;
};
constexpr Home kHomes[] = {{"OneProcess", Placement::kOneProcess, false},
                           {"TwoProcesses", Placement::kTwoProcesses, false},
                           {"FarProcesses", Placement::kTwoProcesses, true},
                           {"Connected", Placement::kConnected, false},
                           {"ConnectedProcesses", Placement::kConnectedProcesses, false},
                           {"FarConnected", Placement::kConnectedProcesses, true}};

// The larger length takes several packets, and within a host exceeds the eager limit.
constexpr std::size_t kLengths[] = {64, 12000};

enum Dimension : std::size_t { kRow, kAccess, kHome, kReport, kLength };

struct BadPoint {
  const Row* row;
  Kind kind;
  Home home;
  Reporting report;
  std::size_t length;
};

std::string name_of(const BadPoint& point) {
  return std::string(point.row->name) + "_" + traits(point.kind).name + "_" + point.home.name +
         "_" + point.report.name + "_" + std::to_string(point.length);
}
std::ostream& operator<<(std::ostream& out, const BadPoint& point) { return out << name_of(point); }

class BadAccess : public testing::TestWithParam<BadPoint>, protected OwnRegions {
 public:
  Aim unknown_key() {
    fid_mr* const mr = reg_region();
    if (!required(FI_MR_RAW)) return {fi_mr_key(mr) + 0x10000, address(0)};
    Region wrong = seen_from_outside(mr);
    wrong.raw_key[wrong.raw_size - 1] ^= 1;
    return {map_key(wrong), address(0)};
  }
  // The peer has used the key before the region is closed.
  Aim closed_key() {
    const Aim aim{key_at_peer(reg_region()), address(0)};
    expect_good_read(aim);
    regions_.clear();
    return aim;
  }
  Aim other_domain() {
    open_other_domain();
    fid_mr* const mr = reg_pages(kFirst, kCount, kBoth, 0, other_domain_.get());
    if (required(FI_MR_ENDPOINT)) bind_to_other_endpoint(mr);
    return {key_at_peer(mr), address(0)};
  }
  Aim before_start() { return {key_at_peer(reg_region()), address(0) - 8}; }
  Aim past_end() {
    return {key_at_peer(reg_region()), address(kCount * page_size()) - point_.length + 8};
  }
  Aim wrapping() { return {key_at_peer(reg_region()), ~std::uint64_t{0} - 7}; }
  Aim no_right() {
    const bool reads = point_.kind == Kind::kRead;
    fid_mr* const mr = reg_pages(kFirst, kCount, reads ? FI_REMOTE_WRITE : FI_REMOTE_READ);
    make_ready(mr);
    return {key_at_peer(mr), address(0)};
  }
  Aim other_endpoint() {
    EXPECT_TRUE(required(FI_MR_ENDPOINT));
    other_endpoint_ = OwnRegions::other_endpoint(true);
    fid_mr* const mr = reg_pages(kFirst, kCount, kBoth);
    bind_to_other_endpoint(mr);
    return {key_at_peer(mr), address(0)};
  }
  Aim not_enabled() {
    EXPECT_TRUE(required(FI_MR_RMA_EVENT));
    return {key_at_peer(reg_pages(kFirst, kCount, kBoth, FI_RMA_EVENT)), address(0)};
  }
  // No endpoint has the region's authorization key.
  Aim other_authorization() {
    std::string secret = authorization_key(1);
    const iovec pages{page(kFirst), kCount * page_size()};
    fi_mr_attr attributes{};
    attributes.mr_iov = &pages;
    attributes.iov_count = 1;
    attributes.access = kBoth;
    attributes.requested_key = Endpoint::next_key();
    attributes.auth_key = reinterpret_cast<std::uint8_t*>(secret.data());
    attributes.auth_key_size = secret.size();
    regions_.push_back(open_fid<fid_mr>(
        [&](fid_mr** out) { return fi_mr_regattr(domain(), &attributes, 0, out); }));
    make_ready(regions_.back().get());
    return {key_at_peer(regions_.back().get()), address(0)};
  }
  // This access and those below begin 8 bytes before the bad page.
  Aim not_refreshed() {
    EXPECT_TRUE(required(FI_MR_MMU_NOTIFY));
    map(kBadPage, 1, PROT_NONE);
    const Aim aim{key_at_peer(reg_region()), at_bad_page()};
    map(kBadPage, 1, PROT_READ | PROT_WRITE);
    std::memset(page(kBadPage), kCanary, page_size());
    return aim;
  }
  Aim not_mapped() {
    EXPECT_TRUE(required(FI_MR_RAW));
    const std::uint64_t key = key_at_peer(reg_region());
    unmap_keys();
    return {key, address(0)};
  }
  Aim hole() {
    const Aim aim{key_at_peer(reg_region()), at_bad_page()};
    map(kBadPage, 1, PROT_NONE);
    return aim;
  }
  Aim read_only_page() {
    const Aim aim{key_at_peer(reg_region()), at_bad_page()};
    EXPECT_EQ(mprotect(page(kBadPage), page_size(), PROT_READ), 0);
    return aim;
  }

 protected:
  static constexpr std::uint64_t kBoth = FI_REMOTE_READ | FI_REMOTE_WRITE;
  static constexpr std::uint8_t kCanary = 0xa5;
  // Pages: the region under test is kFirst to kFirst + kCount - 1 with kBadPage; kGoodPage is the
  // good region.
  static constexpr std::size_t kFirst = 2;
  static constexpr std::size_t kCount = 4;
  static constexpr std::size_t kBadPage = 3;
  static constexpr std::size_t kGoodPage = 7;

  BadAccess() : OwnRegions(GetParam().home.placement, options_of(GetParam())) {
    std::memset(page(0), kCanary, kPages * page_size());
  }
  void TearDown() override { unmap_keys(); }

  static Options options_of(const BadPoint& point) {
    Options options = usual_options();
    point.report.choose(options);
    options.far = point.home.far;
    return options;
  }
  Party& peer() { return world_.target(); }

  fid_mr* reg_pages(std::size_t first, std::size_t count, std::uint64_t access,
                    std::uint64_t flags = 0, fid_domain* in = nullptr) {
    regions_.push_back(open_fid<fid_mr>([&](fid_mr** out) {
      return fi_mr_reg(in == nullptr ? domain() : in, page(first), count * page_size(), access, 0,
                       Endpoint::next_key(), flags, out, nullptr);
    }));
    return regions_.back().get();
  }
  fid_mr* reg_region() {
    fid_mr* const mr = reg_pages(kFirst, kCount, kBoth);
    make_ready(mr);
    return mr;
  }
  void bind_to_other_endpoint(fid_mr* mr) {
    EXPECT_EQ(fi_mr_bind(mr, &other_endpoint_->fid, 0), 0);
    EXPECT_EQ(fi_mr_enable(mr), 0);
  }
  void open_other_domain() {
    Endpoint& mine = world_.endpoint();
    other_domain_ = open_fid<fid_domain>([&](fid_domain** out) {
      return fi_domain(mine.domain()->fabric(), mine.info(), out, nullptr);
    });
    fi_cq_attr cq_attributes{};
    fi_av_attr av_attributes{};
    other_cq_ = open_fid<fid_cq>([&](fid_cq** out) {
      return fi_cq_open(other_domain_.get(), &cq_attributes, out, nullptr);
    });
    other_av_ = open_fid<fid_av>([&](fid_av** out) {
      return fi_av_open(other_domain_.get(), &av_attributes, out, nullptr);
    });
    other_endpoint_ = endpoint_of(other_domain_.get(), other_cq_.get(), other_av_.get(), true);
  }

  // The remote address of a byte of the region that begins at page `first`.
  std::uint64_t address(std::size_t offset, std::size_t first = kFirst) {
    const bool by_address = required(FI_MR_VIRT_ADDR);
    return (by_address ? reinterpret_cast<std::uint64_t>(page(first)) : 0) + offset;
  }
  std::uint64_t at_bad_page() { return address((kBadPage - kFirst) * page_size() - 8); }
  static Region seen_from_outside(fid_mr* mr) {
    Region region;
    region.raw_size = region.raw_key.size();
    EXPECT_EQ(fi_mr_raw_attr(mr, &region.raw_base, region.raw_key.data(), &region.raw_size, 0), 0);
    return region;
  }
  std::uint64_t map_key(const Region& region) {
    mapped_.push_back(peer().map_key(region));
    return mapped_.back();
  }
  std::uint64_t key_at_peer(fid_mr* mr) {
    return required(FI_MR_RAW) ? map_key(seen_from_outside(mr)) : fi_mr_key(mr);
  }
  void unmap_keys() {
    for (const std::uint64_t key : mapped_) peer().unmap_key(key);
    mapped_.clear();
  }

  void expect_error(const Posted& posted) {
    const bool injected = traits(point_.kind).inject;
    const bool far = point_.home.far || only_links("udp");
    if (injected && (!far || point_.row->aim == &BadAccess::not_mapped)) {
      EXPECT_EQ(posted.rc, -point_.row->err);
      return;
    }
    ASSERT_EQ(posted.rc, 0) << fi_strerror(static_cast<int>(-posted.rc));
    const Token token = injected ? kNoToken : posted.token;
    const Completion c = peer().wait_error(token, point_.row->err);
    EXPECT_EQ(c.prov_errno, point_.row->reason);
    const std::uint64_t what = (traits(point_.kind).atomic ? FI_ATOMIC : FI_RMA) |
                               (traits(point_.kind).read ? FI_READ : FI_WRITE);
    EXPECT_EQ(c.flags & what, what) << fi_tostr(&c.flags, FI_TYPE_CAPS);
  }
  // With FI_EFAULT the bytes before the bad page may have changed (docs/user/registration.md).
  void expect_nothing_written() {
    const bool began = point_.row->err == FI_EFAULT;
    const std::uint8_t* const bad = page(kBadPage);
    for (const std::uint8_t* at = page(0); at != page(kPages); ++at) {
      if (began && at >= bad - 8 && at < bad) continue;
      if (point_.row->aim == &BadAccess::hole && at == bad) at += page_size();
      ASSERT_EQ(*at, kCanary) << "byte " << at - page(0) << " of the memory";
    }
  }
  Operation good_access(Kind kind, const Aim& aim) {
    return {.kind = kind,
            .length = 64,
            .seed = 7,
            .peer = world_.to_initiator(),
            .flags = FI_COMPLETION,
            .remote_address = aim.address,
            .key = aim.key};
  }
  Token expect_good_read(const Aim& aim) {
    const Token read = peer().post(good_access(Kind::kReadmsg, aim));
    peer().wait_success(read);
    return read;
  }
  void expect_good_access() {
    fid_mr* const mr = reg_pages(kGoodPage, 1, kBoth);
    make_ready(mr);
    const Aim aim{key_at_peer(mr), address(0, kGoodPage)};
    peer().wait_success(peer().post(good_access(Kind::kWritemsg, aim)));
    peer().expect_data(expect_good_read(aim), 7, 64);
  }

  const BadPoint point_ = GetParam();
  Fid<fid_domain> other_domain_;
  Fid<fid_cq> other_cq_;
  Fid<fid_av> other_av_;
  Fid<fid_ep> other_endpoint_;
  std::vector<Fid<fid_mr>> regions_;
  std::vector<std::uint64_t> mapped_;
};

// The reason of FI_EFAULT is the errno (docs/user/reasons.md).
constexpr Row kRows[] = {
    {"UnknownKey", FI_EACCES, kRefusals + 1, nullptr, &BadAccess::unknown_key},
    {"ClosedKey", FI_EACCES, kRefusals + 1, nullptr, &BadAccess::closed_key},
    {"OtherDomain", FI_EACCES, kRefusals + 1, nullptr, &BadAccess::other_domain},
    {"BeforeStart", FI_EACCES, kRefusals + 2, "virt_addr", &BadAccess::before_start},
    {"PastEnd", FI_EACCES, kRefusals + 3, nullptr, &BadAccess::past_end},
    {"Wrapping", FI_EACCES, kRefusals + 4, nullptr, &BadAccess::wrapping},
    {"NoRight", FI_EACCES, kRefusals + 5, nullptr, &BadAccess::no_right},
    {"NotEnabled", FI_EACCES, kDisabledRegion, "rma_event", &BadAccess::not_enabled},
    {"OtherEndpoint", FI_EACCES, kOtherEndpoint, "endpoint", &BadAccess::other_endpoint},
    {"NotRefreshed", FI_EACCES, kNotRefreshed, "mmu_notify", &BadAccess::not_refreshed},
    {"NotMapped", FI_EACCES, kRefusals + 32, "raw", &BadAccess::not_mapped},
    {"OtherAuthorization", FI_EACCES, kRefusals + 12, nullptr, &BadAccess::other_authorization},
    {"Hole", FI_EFAULT, EFAULT, nullptr, &BadAccess::hole},
    {"ReadOnlyPage", FI_EFAULT, EFAULT, nullptr, &BadAccess::read_only_page},
};

TEST_P(BadAccess, EndsWithItsReasonAndChangesNothing) {
  ASSERT_TRUE(world_.ok());
  const Aim aim = (this->*point_.row->aim)();
  const Posted posted = peer().try_post({.kind = point_.kind,
                                         .length = point_.length,
                                         .seed = 99,
                                         .peer = world_.to_initiator(),
                                         .data = 5,
                                         .remote_address = aim.address,
                                         .key = aim.key});
  expect_error(posted);
  if (traits(point_.kind).read && point_.row->err == FI_EACCES) {
    peer().expect_data(posted.token, 0, 0);
  }
  world_.exchange();  // Packets of the access that were in flight have arrived.
  expect_nothing_written();
  expect_good_access();
  world_.exchange();
  EXPECT_EQ(world_.initiator().leftovers() + peer().leftovers(), 0u);
}

bool fit(const Row& row, Kind kind) {
  return row.aim != &BadAccess::read_only_page || kind != Kind::kRead;
}
bool fit(Kind kind, std::size_t length) {
  return length == kLengths[0] || (!traits(kind).inject && !traits(kind).atomic);
}

// `a` is of the lower dimension.
bool meet(Value a, Value b) {
  if (a.dimension > b.dimension) return meet(b, a);
  if (a.dimension == kRow && b.dimension == kAccess) {
    return fit(kRows[a.number], kAccesses[b.number]);
  }
  if (a.dimension == kAccess && b.dimension == kLength) {
    return fit(kAccesses[a.number], kLengths[b.number]);
  }
  return true;
}

// Points of all rows that are possible under the contract.
std::vector<BadPoint> points() {
  std::vector<const Row*> rows;
  for (const Row& row : kRows) {
    if (row.bit == nullptr || contract_lists(row.bit)) rows.push_back(&row);
  }
  const Matrix matrix{{rows.size(), std::size(kAccesses), std::size(kHomes), std::size(kReports),
                       std::size(kLengths)},
                      [&](Value a, Value b) {
                        if (a.dimension == kRow) a.number = rows[a.number] - kRows;
                        if (b.dimension == kRow) b.number = rows[b.number] - kRows;
                        return meet(a, b);
                      }};
  std::vector<BadPoint> all;
  for (const Choice& choice : chosen_points(matrix)) {
    all.push_back({rows[choice[kRow]], kAccesses[choice[kAccess]], kHomes[choice[kHome]],
                   kReports[choice[kReport]], kLengths[choice[kLength]]});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Accesses, BadAccess, testing::ValuesIn(points()),
                         [](const testing::TestParamInfo<BadPoint>& one) {
                           return name_of(one.param);
                         });

}  // namespace
}  // namespace weft::conformance
