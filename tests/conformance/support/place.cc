// SPDX-License-Identifier: BSD-2-Clause
// How does a test make and end connections call by call?
#include "place.h"

#include <rdma/fi_eq.h>
#include <sched.h>

#include <chrono>
#include <cstring>

namespace weft::conformance {
namespace {

constexpr int kSilentLooks = 300;
constexpr std::size_t kRoom = 512;

}  // namespace

Options connected(fi_threading threading, std::uint32_t api) {
  Options options;
  options.type = FI_EP_MSG;
  options.threading = threading;
  options.api = api;
  if (api < FI_VERSION(1, 5)) options.mr_mode = FI_MR_UNSPEC;
  return options;
}

Place::Place(fi_wait_obj wait, fi_threading threading, std::uint32_t api)
    : Place(connected(threading, api), wait) {}

Place::Place(const Options& options, fi_wait_obj wait) : domain_(options) {
  if (!domain_.ok()) return;
  if (wait == FI_WAIT_SET) set_ = open_wait_set(domain_.fabric());
  fi_eq_attr eq{};
  eq.wait_obj = wait;
  eq.wait_set = set_.get();
  eq_ = open_fid<fid_eq>(
      [&](fid_eq** out) { return fi_eq_open(domain_.fabric(), &eq, out, nullptr); });
  fi_cq_attr cq{};
  cq.format = FI_CQ_FORMAT_TAGGED;
  cq_ =
      open_fid<fid_cq>([&](fid_cq** out) { return fi_cq_open(domain_.get(), &cq, out, nullptr); });
}

Fid<fid_pep> Place::open_passive() {
  Fid<fid_pep> pep = open_fid<fid_pep>(
      [&](fid_pep** out) { return fi_passive_ep(domain_.fabric(), info(), out, nullptr); });
  if (pep == nullptr) return pep;
  EXPECT_EQ(fi_pep_bind(pep.get(), &eq_->fid, 0), 0);
  return pep;
}

Fid<fid_pep> Place::listen() {
  Fid<fid_pep> pep = open_passive();
  if (pep == nullptr) return pep;
  EXPECT_EQ(fi_listen(pep.get()), 0);
  return pep;
}

Fid<fid_ep> Place::open(fi_info* info) {
  if (info == nullptr) info = domain_.info();
  Fid<fid_ep> ep = open_fid<fid_ep>(
      [&](fid_ep** out) { return fi_endpoint(domain_.get(), info, out, nullptr); });
  if (ep == nullptr) return ep;
  EXPECT_EQ(fi_ep_bind(ep.get(), &eq_->fid, 0), 0);
  EXPECT_EQ(fi_ep_bind(ep.get(), &cq_->fid, FI_TRANSMIT | FI_RECV), 0);
  return ep;
}

Fid<fid_ep> Place::connect(const Address& address, const std::string& data) {
  Fid<fid_ep> ep = open();
  EXPECT_EQ(fi_connect(ep.get(), address.bytes.data(), data.data(), data.size()), 0);
  return ep;
}

std::optional<Event> Place::read() {
  alignas(fi_eq_cm_entry) std::array<char, kRoom> raw{};
  Event event;
  const ssize_t got = fi_eq_read(eq(), &event.what, raw.data(), raw.size(), 0);
  if (got == -FI_EAGAIN) return std::nullopt;
  if (got == -FI_EAVAIL) {
    fi_eq_err_entry error{};
    EXPECT_EQ(fi_eq_readerr(eq(), &error, 0), static_cast<ssize_t>(sizeof error));
    event.what = 0;
    event.object = error.fid;
    event.err = error.err;
    event.data.assign(static_cast<const char*>(error.err_data), error.err_data_size);
    return event;
  }
  EXPECT_GE(got, static_cast<ssize_t>(sizeof(fi_eq_cm_entry))) << "fi_eq_read";
  if (got < 0) return event;
  fi_eq_cm_entry head{};
  std::memcpy(&head, raw.data(), sizeof head);
  event.object = head.fid;
  event.info.reset(head.info);
  event.data.assign(raw.data() + sizeof head, static_cast<std::size_t>(got) - sizeof head);
  return event;
}

Event Place::next() {
  const auto deadline = std::chrono::steady_clock::now() + patience();
  while (std::chrono::steady_clock::now() < deadline) {
    if (auto event = read()) return std::move(*event);
    sched_yield();
  }
  ADD_FAILURE() << "no event came";
  return {};
}

Event Place::expect(std::uint32_t what, const fid* object) {
  Event event = next();
  EXPECT_EQ(event.what, what) << "error " << event.err;
  EXPECT_EQ(event.object, object);
  return event;
}

Event Place::expect_error(int err, const fid* object) {
  Event event = next();
  EXPECT_EQ(event.what, 0u);
  EXPECT_EQ(event.err, err);
  EXPECT_EQ(event.object, object);
  return event;
}

void Place::expect_silence() {
  for (int i = 0; i < kSilentLooks; ++i) {
    const auto event = read();
    ASSERT_FALSE(event) << "event " << event->what << ", error " << event->err;
    sched_yield();
  }
}

std::optional<Completion> Place::take_completion() {
  fi_cq_tagged_entry entry{};
  const ssize_t got = fi_cq_read(cq(), &entry, 1);
  if (got == 1) return completion_of(entry);
  if (got != -FI_EAVAIL) return std::nullopt;
  fi_cq_err_entry error{};
  EXPECT_EQ(fi_cq_readerr(cq(), &error, 0), 1);
  return completion_of(error);
}

Completion Place::completion() {
  const auto deadline = std::chrono::steady_clock::now() + patience();
  while (std::chrono::steady_clock::now() < deadline) {
    if (const auto c = take_completion()) return *c;
    sched_yield();
  }
  ADD_FAILURE() << "no completion came";
  return {};
}

Address name_of(fid* object) {
  Address address;
  address.size = address.bytes.size();
  EXPECT_EQ(fi_getname(object, address.bytes.data(), &address.size), 0);
  return address;
}

Pair::Pair(Place& place) : pep(place.listen()), active(place.connect(name_of(&pep->fid))) {
  const Event event = place.expect(FI_CONNREQ, &pep->fid);
  if (event.info == nullptr) return;
  request = event.info->handle;
  passive = place.open(event.info.get());
  EXPECT_EQ(fi_accept(passive.get(), nullptr, 0), 0);
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(place.next().what, static_cast<std::uint32_t>(FI_CONNECTED));
}

}  // namespace weft::conformance
