// SPDX-License-Identifier: BSD-2-Clause
// How does a test prepare regions of its own process call by call, and have the peer access them?
#include "own_region.h"

#include <sys/mman.h>
#include <unistd.h>

namespace weft::conformance {
namespace {

std::uint8_t* pages(std::size_t bytes) {
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(memory, MAP_FAILED);
  return static_cast<std::uint8_t*>(memory);
}

}  // namespace

Options OwnRegions::usual_options() {
  Options options;
  options.caps |= FI_RMA_EVENT | FI_ATOMIC;
  options.mr_mode = kRequirableModes;
  return options;
}

OwnRegions::OwnRegions(Placement placement, const Options& options)
    : world_(placement, options),
      page_size_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))),
      memory_(pages(kPages * page_size_)) {}

OwnRegions::~OwnRegions() { munmap(memory_, kPages * page_size_); }

Fid<fid_mr> OwnRegions::reg(std::uint64_t flags, std::uint64_t key) {
  return open_fid<fid_mr>([&](fid_mr** out) {
    return fi_mr_reg(domain(), memory_, kPages * page_size_, FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
                     key, flags, out, nullptr);
  });
}

Fid<fid_ep> OwnRegions::other_endpoint(bool enabled) {
  return endpoint_of(domain(), world_.endpoint().cq(), world_.endpoint().av(), enabled);
}

Fid<fid_ep> OwnRegions::endpoint_of(fid_domain* domain, fid_cq* cq, fid_av* av, bool enabled) {
  Endpoint& mine = world_.endpoint();
  auto opened = open_fid<fid_ep>(
      [&](fid_ep** out) { return fi_endpoint(domain, mine.info(), out, nullptr); });
  const bool connected = mine.options().type == FI_EP_MSG;
  EXPECT_EQ(fi_ep_bind(opened.get(), connected ? &mine.eq()->fid : &av->fid, 0), 0);
  EXPECT_EQ(fi_ep_bind(opened.get(), &cq->fid, FI_TRANSMIT | FI_RECV), 0);
  if (enabled) {
    EXPECT_EQ(fi_enable(opened.get()), 0);
  }
  return opened;
}

void OwnRegions::make_ready(fid_mr* mr) {
  if (required(FI_MR_ENDPOINT)) {
    EXPECT_EQ(fi_mr_bind(mr, &world_.ep()->fid, 0), 0);
  }
  if (required(FI_MR_ENDPOINT | FI_MR_RMA_EVENT)) {
    EXPECT_EQ(fi_mr_enable(mr), 0);
  }
}

void OwnRegions::map(std::size_t first, std::size_t count, int protection) {
  EXPECT_NE(mmap(page(first), count * page_size_, protection,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
            MAP_FAILED);
}

Operation OwnRegionTest::operation(Kind kind, std::uint64_t key, std::size_t offset,
                                   std::size_t length) {
  const auto base = reinterpret_cast<std::uint64_t>(page(0));
  return {.kind = kind,
          .length = length,
          .seed = 7,
          .peer = world_.to_initiator(),
          .data = 3,
          .remote_address = (required(FI_MR_VIRT_ADDR) ? base : 0) + offset,
          .key = key};
}

void OwnRegionTest::expect_granted(std::uint64_t key, std::size_t offset, std::size_t length) {
  Party& peer = world_.target();
  peer.wait_success(peer.post(operation(Kind::kWrite, key, offset, length)));
  const Token read = peer.post(operation(Kind::kRead, key, offset, length));
  peer.wait_success(read);
  peer.expect_data(read, 7, length);
}

void OwnRegionTest::expect_refused(std::uint64_t key, int reason, std::size_t offset,
                                   std::size_t length) {
  Party& peer = world_.target();
  for (const Kind kind : {Kind::kWrite, Kind::kRead, Kind::kWritedata, Kind::kWritemsg}) {
    SCOPED_TRACE(traits(kind).name);
    const Token token = peer.post(operation(kind, key, offset, length));
    const Completion c = peer.wait_error(token, FI_EACCES);
    EXPECT_EQ(c.prov_errno, reason);
    world_.exchange();
  }
}

}  // namespace weft::conformance
