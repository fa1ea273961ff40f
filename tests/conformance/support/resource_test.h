// SPDX-License-Identifier: BSD-2-Clause
// How is a resource filled and drained, while endpoints beside it go on? (fi_domain(3), resource
// management)
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "local_party.h"
#include "numbers.h"

namespace weft::conformance {

// A column of the manual page's table, and how the resource of a row is filled.
struct Cell {
  fi_ep_type type = FI_EP_RDM;
  Kind kind = Kind::kSend;
  std::size_t queue = 2;     // entries of the completion queue that is to be full
  std::uint64_t shares = 0;  // FI_RECV: the receive context is a shared one
  bool silent = false;       // the queue has selective completions, and no call asks for one
  fi_resource_mgmt management = FI_RM_ENABLED;  // of the domains
};

// Each type of endpoint in domains that were opened with each value.
inline auto managed() {
  constexpr std::uint64_t kNone = 0;
  return testing::Values(Cell{FI_EP_DGRAM, Kind::kSend, 2, kNone, false, FI_RM_UNSPEC},
                         Cell{FI_EP_RDM, Kind::kSend, 2, kNone, false, FI_RM_UNSPEC},
                         Cell{FI_EP_MSG, Kind::kSend, 2, kNone, false, FI_RM_UNSPEC},
                         Cell{FI_EP_DGRAM, Kind::kSend, 2, kNone, false, FI_RM_DISABLED},
                         Cell{FI_EP_RDM, Kind::kSend, 2, kNone, false, FI_RM_DISABLED},
                         Cell{FI_EP_MSG, Kind::kSend, 2, kNone, false, FI_RM_DISABLED});
}

// Sizes and helpers of the tests of resources.
class Resources {
 protected:
  static constexpr std::size_t kContext = 16;   // operations that a context is asked to hold
  static constexpr std::size_t kUsual = 1024;   // entries of a queue whose size is not asked for
  static constexpr std::size_t kRoomy = 16384;  // entries of a queue that is not the limit
  static constexpr std::size_t kWord = 8;       // bytes of a short message, or of an access
  // Of messages that share no packet, and of datagrams, which have one each.
  static constexpr std::size_t kMessage = 1500;
  static constexpr std::size_t kDatagram = 200;
  // More than any peer takes while its program does nothing.
  static constexpr std::size_t kFlood = 2500;

  static const char* column_of(fi_ep_type type);
  // Whether FI_WEFT_UNEXPECTED_LIMIT is set. Without it a peer takes 1 GiB of messages.
  static bool unexpected_are_limited();
  // Options for endpoints of that type whose contexts have the size kContext.
  static Options plain(fi_ep_type type);
  // Pump::until() without a pump.
  static bool until(const std::function<bool()>& done,
                    std::chrono::milliseconds limit = patience());
  // Progress that leaves the queue unread. The endpoint has a counter for FI_SEND.
  static void drive(const Endpoint& endpoint) { fi_cntr_read(endpoint.counter(FI_SEND)); }
  static std::uint64_t ends(const Endpoint& endpoint, std::uint64_t event) {
    return fi_cntr_read(endpoint.counter(event));
  }
  // The number of `to` for `from`; of FI_EP_MSG a connection, and 0.
  static fi_addr_t meet(Endpoint& from, Endpoint& to);
  // The datagrams that have been received: each was sent, came once and is whole.
  static void expect_datagrams(const Numbers& received, std::size_t sent);
};

// An endpoint here and one there, of two domains, with an endpoint beside each.
class ResourceTest : public testing::TestWithParam<Cell>, protected Resources {
 public:
  static std::string name(const testing::TestParamInfo<Cell>& one);

 protected:
  static bool lossy() { return GetParam().type == FI_EP_DGRAM; }
  static bool injects() { return traits(GetParam().kind).inject; }
  static bool is_access() { return traits(GetParam().kind).rma || traits(GetParam().kind).atomic; }
  static std::size_t queue() { return GetParam().queue; }
  static std::size_t length() { return lossy() ? kDatagram : kMessage; }
  // A roomy queue, counters, and receives enough for any test.
  static Options roomy();

  void open(const Options& near, const Options& far);
  // A message of the endpoints beside arrives.
  void others_go_on();
  // Receives of the far endpoint are posted here.
  fid_ep* receiver() const;
  // Messages of open() that the counters count.
  static std::uint64_t warmed() { return lossy() ? 0 : 1; }

  // Rows of operations between the two, which outlive them.
  Numbers& sends(Kind kind, std::size_t length);
  Numbers& accesses(Kind kind, const Region& region);
  Numbers& receives(Kind sent, std::size_t length);

  // Both sides read until all that was sent is received, in order. Receives are posted as needed.
  void drain(Numbers& sent, Numbers& received);
  // No message is under way any more: another receive ends by fi_cancel only.
  void expect_nothing_twice(Numbers& received);
  // Both sides read until all datagrams are received, unless the network may lose some.
  void hear_all(Numbers& received, Numbers& sent);
  // Another datagram arrives.
  void hear_another(Numbers& sent, Numbers& received);

  Pump pump_;  // of the endpoints beside
  std::deque<Numbers> rows_;
  std::shared_ptr<Domain> near_domain_;
  std::shared_ptr<Domain> far_domain_;
  std::unique_ptr<Endpoint> near_;
  std::unique_ptr<Endpoint> far_;
  std::unique_ptr<LocalParty> beside_near_;
  std::unique_ptr<LocalParty> beside_far_;
  fi_addr_t to_far_ = FI_ADDR_UNSPEC;

 private:
  void open_beside(const std::shared_ptr<Domain>& other);
  void warm_up();

  fi_addr_t to_beside_ = FI_ADDR_UNSPEC;
};

// Two such pairs of endpoints, which share what a test has them share.
class TwoResourcesTest : public ResourceTest {
 protected:
  // After open(). The queues may be those of the first pair.
  void open_second(const Options& near, fid_cq* near_queue, const Options& far);
  void TearDown() override;
  Numbers& other_sends();
  Numbers& other_receives();

  std::unique_ptr<Endpoint> other_near_;
  std::unique_ptr<Endpoint> other_far_;
  fi_addr_t to_other_ = FI_ADDR_UNSPEC;
};

}  // namespace weft::conformance
