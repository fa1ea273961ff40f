// SPDX-License-Identifier: BSD-2-Clause
// How does a test prepare regions of its own process call by call, and have the peer access them?
#pragma once

#include <cstddef>
#include <cstdint>

#include "placements.h"

namespace weft::conformance {

// prov_errno of refused accesses (docs/user/reasons.md).
inline constexpr int kRefusals = 1 << 16;
inline constexpr int kDisabledRegion = kRefusals + 9;
inline constexpr int kOtherEndpoint = kRefusals + 10;
inline constexpr int kNotRefreshed = kRefusals + 11;

// A world under whatever contract is required, and some pages of memory in this process.
class OwnRegions {
 protected:
  static constexpr std::size_t kPages = 8;

  // Options that fit every contract.
  static Options usual_options();
  OwnRegions(Placement placement, const Options& options);
  ~OwnRegions();
  OwnRegions(const OwnRegions&) = delete;
  OwnRegions& operator=(const OwnRegions&) = delete;

  fid_domain* domain() { return world_.endpoint().domain()->get(); }
  // Whether regions require this bit of mr_mode.
  bool required(int bit) { return (world_.endpoint().info()->domain_attr->mr_mode & bit) != 0; }
  std::uint8_t* page(std::size_t number) const { return memory_ + number * page_size_; }
  std::size_t page_size() const { return page_size_; }
  // Registers all pages, for reads and writes by peers.
  Fid<fid_mr> reg(std::uint64_t flags = 0, std::uint64_t key = Endpoint::next_key());
  // Another endpoint of the domain, enabled or not; or one of another domain of the fabric.
  Fid<fid_ep> other_endpoint(bool enabled);
  Fid<fid_ep> endpoint_of(fid_domain* domain, fid_cq* cq, fid_av* av, bool enabled);
  // Binds a region to the endpoint, and enables it, as far as that is required.
  void make_ready(fid_mr* mr);
  // Maps pages anew. With PROT_NONE nothing backs them; a hole would be filled by other mappings.
  void map(std::size_t first, std::size_t count, int protection);

  World world_;

 private:
  const std::size_t page_size_;
  std::uint8_t* const memory_;
};

class OwnRegionTest : public PlacementTest, protected OwnRegions {
 protected:
  OwnRegionTest() : OwnRegions(GetParam(), usual_options()) {}

  // The peer accesses bytes of the pages by that key: it succeeds, or is refused with that
  // prov_errno; then both endpoints go on.
  void expect_granted(std::uint64_t key, std::size_t offset = 0, std::size_t length = 64);
  void expect_refused(std::uint64_t key, int reason, std::size_t offset = 0,
                      std::size_t length = 64);

 private:
  Operation operation(Kind kind, std::uint64_t key, std::size_t offset, std::size_t length);
};

}  // namespace weft::conformance
