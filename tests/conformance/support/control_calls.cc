// SPDX-License-Identifier: BSD-2-Clause
// What does a thread do that makes control calls while others move data?
#include "control_calls.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_eq.h>
#include <unistd.h>

#include <array>
#include <vector>

namespace weft::conformance {
namespace {

Options of_type(fi_ep_type type, fi_threading threading) {
  Options options = type == FI_EP_DGRAM ? datagrams() : Options();
  options.type = type;
  options.threading = threading;
  return options;
}

Info find(const Options& options) {
  int rc = 0;
  Info found = get_info(options, make_hints(options).get(), &rc);
  EXPECT_EQ(rc, 0) << "fi_getinfo: " << fi_strerror(-rc);
  return found;
}

Fid<fid_eq> open_events(const Domain& domain) {
  fi_eq_attr attributes{};
  attributes.wait_obj = FI_WAIT_UNSPEC;
  return open_fid<fid_eq>(
      [&](fid_eq** out) { return fi_eq_open(domain.fabric(), &attributes, out, nullptr); });
}

fi_threading threading_of(const Domain& domain) { return domain.info()->domain_attr->threading; }

}  // namespace

ControlCalls::ControlCalls(const Used& used, int thread)
    : used_(used),
      thread_(thread),
      threading_(threading_of(*used.domain)),
      connected_(find(of_type(FI_EP_MSG, threading_))) {}

void ControlCalls::exchange_addresses(int count) {
  std::vector<fi_addr_t> numbers;
  for (int i = 0; i < count; ++i) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(40000 + 1000 * thread_ + i));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    numbers.push_back(FI_ADDR_NOTAVAIL);
    EXPECT_EQ(fi_av_insert(used_.addresses, &address, 1, &numbers.back(), 0, nullptr), 1);
    sockaddr_in found{};
    std::size_t size = sizeof found;
    EXPECT_EQ(fi_av_lookup(used_.addresses, numbers.back(), &found, &size), 0);
    EXPECT_EQ(found.sin_port, address.sin_port);
  }
  EXPECT_EQ(fi_av_remove(used_.addresses, numbers.data(), numbers.size(), 0), 0);
}

// To what others use.
void ControlCalls::bind_and_enable(fid_ep* ep, const fi_info& info, fid_eq* events) {
  const bool connected = info.ep_attr->type == FI_EP_MSG;
  const bool reports_events = connected || (info.caps & FI_MULTICAST) != 0;
  if (reports_events) {
    EXPECT_EQ(fi_ep_bind(ep, &events->fid, 0), 0);
  }
  if (!connected) {
    EXPECT_EQ(fi_ep_bind(ep, &used_.addresses->fid, 0), 0);
  }
  EXPECT_EQ(fi_ep_bind(ep, &used_.queue->fid, FI_TRANSMIT | FI_RECV), 0);
  EXPECT_EQ(fi_enable(ep), 0);
}

void ControlCalls::open_endpoint() {
  fi_info* const info = used_.domain->info();
  const Fid<fid_eq> events = open_events(*used_.domain);
  const auto ep = open_fid<fid_ep>(
      [&](fid_ep** out) { return fi_endpoint(used_.domain->get(), info, out, nullptr); });
  ASSERT_NE(ep, nullptr);
  bind_and_enable(ep.get(), *info, events.get());
}

void ControlCalls::open_shared_contexts() {
  Options options = of_type(used_.domain->info()->ep_attr->type, threading_);
  options.shares = FI_TRANSMIT | FI_RECV;
  const Info info = find(options);
  fid_domain* const domain = used_.domain->get();
  const auto transmit = open_fid<fid_stx>(
      [&](fid_stx** out) { return fi_stx_context(domain, info->tx_attr, out, nullptr); });
  const auto receive = open_fid<fid_ep>(
      [&](fid_ep** out) { return fi_srx_context(domain, info->rx_attr, out, nullptr); });
  const Fid<fid_eq> events = open_events(*used_.domain);
  const auto ep =
      open_fid<fid_ep>([&](fid_ep** out) { return fi_endpoint(domain, info.get(), out, nullptr); });
  ASSERT_TRUE(transmit != nullptr && receive != nullptr && ep != nullptr);
  EXPECT_EQ(fi_ep_bind(ep.get(), &transmit->fid, 0), 0);
  EXPECT_EQ(fi_ep_bind(ep.get(), &receive->fid, 0), 0);
  bind_and_enable(ep.get(), *info, events.get());
}

void ControlCalls::open_objects() {
  fid_domain* const domain = used_.domain->get();
  std::array<std::byte, 4096> memory{};
  const auto region = open_fid<fid_mr>([&](fid_mr** out) {
    return fi_mr_reg(domain, memory.data(), memory.size(), FI_REMOTE_WRITE, 0, Endpoint::next_key(),
                     0, out, nullptr);
  });
  fi_wait_attr waiting{FI_WAIT_UNSPEC, 0};
  const auto set = open_fid<fid_wait>(
      [&](fid_wait** out) { return fi_wait_open(used_.domain->fabric(), &waiting, out); });
  fi_cq_attr queued{};
  queued.wait_obj = FI_WAIT_SET;
  queued.wait_set = set.get();
  const auto queue =
      open_fid<fid_cq>([&](fid_cq** out) { return fi_cq_open(domain, &queued, out, nullptr); });
  fi_cntr_attr counted{};
  const auto counter = open_fid<fid_cntr>(
      [&](fid_cntr** out) { return fi_cntr_open(domain, &counted, out, nullptr); });
  fi_poll_attr polled{};
  const auto polls =
      open_fid<fid_poll>([&](fid_poll** out) { return fi_poll_open(domain, &polled, out); });
  ASSERT_TRUE(region != nullptr && queue != nullptr && counter != nullptr && polls != nullptr);
  for (fid* const member : {&queue->fid, &counter->fid, &used_.queue->fid}) {
    EXPECT_EQ(fi_poll_add(polls.get(), member, 0), 0);
    EXPECT_EQ(fi_poll_del(polls.get(), member, 0), 0);
  }
}

void ControlCalls::open_domain() {
  const Domain domain(of_type(used_.domain->info()->ep_attr->type, threading_));
  EXPECT_TRUE(domain.ok());
}

Fid<fid_ep> ControlCalls::open_connectable(fi_info* info, fid_eq* events) {
  auto ep = open_fid<fid_ep>(
      [&](fid_ep** out) { return fi_endpoint(used_.domain->get(), info, out, nullptr); });
  if (ep == nullptr) return ep;
  EXPECT_EQ(fi_ep_bind(ep.get(), &events->fid, 0), 0);
  EXPECT_EQ(fi_ep_bind(ep.get(), &used_.queue->fid, FI_TRANSMIT | FI_RECV), 0);
  return ep;
}

Info ControlCalls::next_event(fid_eq* events, std::uint32_t expected) {
  std::uint32_t event = 0;
  fi_eq_cm_entry entry{};
  const int limit = static_cast<int>(patience().count());
  EXPECT_GT(fi_eq_sread(events, &event, &entry, sizeof entry, limit, 0), 0);
  EXPECT_EQ(event, expected);
  return Info(entry.info);
}

void ControlCalls::connect() {
  const Fid<fid_eq> events = open_events(*used_.domain);
  const auto listener = open_fid<fid_pep>([&](fid_pep** out) {
    return fi_passive_ep(used_.domain->fabric(), connected_.get(), out, nullptr);
  });
  ASSERT_NE(listener, nullptr);
  ASSERT_EQ(fi_pep_bind(listener.get(), &events->fid, 0), 0);
  ASSERT_EQ(fi_listen(listener.get()), 0);
  const Address address = name_of(&listener->fid);
  const Fid<fid_ep> active = open_connectable(connected_.get(), events.get());
  ASSERT_NE(active, nullptr);
  ASSERT_EQ(fi_connect(active.get(), address.bytes.data(), nullptr, 0), 0);
  const Info request = next_event(events.get(), FI_CONNREQ);
  ASSERT_NE(request, nullptr);
  const Fid<fid_ep> passive = open_connectable(request.get(), events.get());
  ASSERT_NE(passive, nullptr);
  ASSERT_EQ(fi_accept(passive.get(), nullptr, 0), 0);
  next_event(events.get(), FI_CONNECTED);
  next_event(events.get(), FI_CONNECTED);
  EXPECT_EQ(fi_shutdown(active.get(), 0), 0);
}

void ControlCalls::join_group() {
  sockaddr_in group{};
  group.sin_family = AF_INET;
  group.sin_port = htons(static_cast<std::uint16_t>(20000 + (getpid() * 4 + thread_) % 40000));
  group.sin_addr.s_addr = inet_addr("224.0.1.129");
  fid_mc* joined = nullptr;
  ASSERT_EQ(fi_join(used_.ep, &group, 0, &joined, nullptr), 0);
  EXPECT_EQ(fi_close(&joined->fid), 0);
}

void ControlCalls::ask() {
  EXPECT_NE(find(of_type(used_.domain->info()->ep_attr->type, threading_)), nullptr);
  fi_atomic_attr attributes{};
  EXPECT_EQ(fi_query_atomic(used_.domain->get(), FI_UINT64, FI_SUM, &attributes, 0), 0);
  if (used_.ep == nullptr) return;
  EXPECT_GT(name_of(&used_.ep->fid).size, 0u);
  std::size_t least = 0;
  std::size_t size = sizeof least;
  EXPECT_EQ(fi_getopt(&used_.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, &size), 0);
  std::uint64_t flags = FI_TRANSMIT;
  EXPECT_EQ(fi_control(&used_.ep->fid, FI_GETOPSFLAG, &flags), 0);
  const auto alias = open_fid<fid_ep>(
      [&](fid_ep** out) { return fi_ep_alias(used_.ep, out, FI_TRANSMIT | FI_INJECT_COMPLETE); });
  EXPECT_NE(alias, nullptr);
}

void ControlCalls::make_each() {
  exchange_addresses(8);
  open_endpoint();
  ask();
  open_objects();
  connect();
  open_domain();
  open_shared_contexts();
  const fi_info& info = *used_.domain->info();
  if ((info.caps & FI_MULTICAST) != 0 && info.addr_format == FI_SOCKADDR_IN) join_group();
}

}  // namespace weft::conformance
