// SPDX-License-Identifier: BSD-2-Clause
// Do packets carry the traffic class of their endpoint? (fi_endpoint(3), fi_domain(3))
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>

#include "support/placements.h"

namespace weft::conformance {
namespace {

// A socket that says which type of service the packets have that come to it.
class Witness {
 public:
  Witness() : fd_(socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address_;
    const int yes = 1;
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address_), length), 0);
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&address_), &length), 0);
    EXPECT_EQ(setsockopt(fd_, IPPROTO_IP, IP_RECVTOS, &yes, sizeof yes), 0);
  }
  ~Witness() { close(fd_); }
  Witness(const Witness&) = delete;
  Witness& operator=(const Witness&) = delete;

  const sockaddr_in& address() const { return address_; }
  // Of the next packet; -1 when there is none yet.
  int type_of_service() const {
    std::uint8_t byte = 0;
    iovec piece{&byte, 1};
    alignas(cmsghdr) std::uint8_t control[64];
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    if (recvmsg(fd_, &message, 0) < 0) return -1;
    for (cmsghdr* h = CMSG_FIRSTHDR(&message); h != nullptr; h = CMSG_NXTHDR(&message, h)) {
      if (h->cmsg_level == IPPROTO_IP && h->cmsg_type == IP_TOS) return *CMSG_DATA(h);
    }
    return 0;
  }

 private:
  const int fd_;
  sockaddr_in address_{};
};

class DatagramTrafficClass : public testing::TestWithParam<fi_ep_type> {
 protected:
  // The differentiated services code point of the first packet that an endpoint sends.
  static int code_point(const std::function<void(fi_info*)>& change) {
    Options options;
    if (GetParam() == FI_EP_DGRAM) options = datagrams();
    options.addr_format = FI_SOCKADDR_IN;
    const Info hints = make_hints(options);
    change(hints.get());
    fi_info* found = nullptr;
    EXPECT_EQ(fi_getinfo(options.api, "127.0.0.1", nullptr, FI_SOURCE | FI_NUMERICHOST, hints.get(),
                         &found),
              0);
    if (found == nullptr) return -1;
    const Info info(found);
    const auto fabric = open_fid<fid_fabric>(
        [&](fid_fabric** out) { return fi_fabric(info->fabric_attr, out, nullptr); });
    const auto domain = open_fid<fid_domain>(
        [&](fid_domain** out) { return fi_domain(fabric.get(), info.get(), out, nullptr); });
    fi_av_attr av_attr{};
    const auto av = open_fid<fid_av>(
        [&](fid_av** out) { return fi_av_open(domain.get(), &av_attr, out, nullptr); });
    fi_cq_attr cq_attr{};
    const auto cq = open_fid<fid_cq>(
        [&](fid_cq** out) { return fi_cq_open(domain.get(), &cq_attr, out, nullptr); });
    const auto ep = open_fid<fid_ep>(
        [&](fid_ep** out) { return fi_endpoint(domain.get(), info.get(), out, nullptr); });
    EXPECT_EQ(fi_ep_bind(ep.get(), &av->fid, 0), 0);
    EXPECT_EQ(fi_ep_bind(ep.get(), &cq->fid, FI_TRANSMIT | FI_RECV), 0);
    EXPECT_EQ(fi_enable(ep.get()), 0);
    return first_packet(ep.get(), cq.get(), av.get());
  }

  static int first_packet(fid_ep* ep, fid_cq* cq, fid_av* av) {
    const Witness witness;
    fi_addr_t peer = FI_ADDR_NOTAVAIL;
    EXPECT_EQ(fi_av_insert(av, &witness.address(), 1, &peer, 0, nullptr), 1);
    char byte = 0;
    fi_context2 context{};
    const auto deadline = std::chrono::steady_clock::now() + patience();
    while (std::chrono::steady_clock::now() < deadline) {
      fi_send(ep, &byte, 1, nullptr, peer, &context);
      fi_cq_tagged_entry entry{};
      fi_cq_read(cq, &entry, 1);
      const int type = witness.type_of_service();
      if (type >= 0) return type >> 2;
    }
    ADD_FAILURE() << "no packet came";
    return -1;
  }
};

TEST_P(DatagramTrafficClass, IsThatOfTheTransmitContextElseOfTheDomain) {
  if (!only_links("udp")) GTEST_SKIP() << "nothing leaves for peers within the host";
  EXPECT_EQ(code_point([](fi_info*) {}), 0);
  EXPECT_EQ(code_point([](fi_info* i) { i->tx_attr->tclass = fi_tc_dscp_set(26); }), 26);
  EXPECT_EQ(code_point([](fi_info* i) { i->tx_attr->tclass = FI_TC_LOW_LATENCY; }), 46);
  EXPECT_EQ(code_point([](fi_info* i) { i->domain_attr->tclass = FI_TC_BULK_DATA; }), 10);
  EXPECT_EQ(code_point([](fi_info* i) {
              i->domain_attr->tclass = FI_TC_BULK_DATA;
              i->tx_attr->tclass = FI_TC_SCAVENGER;
            }),
            1);
}

INSTANTIATE_TEST_SUITE_P(Endpoints, DatagramTrafficClass, testing::Values(FI_EP_RDM, FI_EP_DGRAM),
                         [](const testing::TestParamInfo<fi_ep_type>& one) {
                           return one.param == FI_EP_RDM ? "Reliable" : "Datagrams";
                         });

}  // namespace
}  // namespace weft::conformance
