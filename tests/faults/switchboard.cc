// SPDX-License-Identifier: BSD-2-Clause
// How are endpoints of connections opened, and events read?
#include "switchboard.h"

#include <array>
#include <cstring>
#include <utility>

#include "failure.h"

namespace weft::faults {

int Switchboard::note(int status, const char* call) {
  if (status != 0) failed_call_ = call;
  return status;
}

int Switchboard::open() {
  fi_eq_attr attributes = {};
  int status =
      note(open_into(events_,
                     [&](auto** o) { return fi_eq_open(node_.fabric(), &attributes, o, nullptr); }),
           "fi_eq_open");
  if (status == 0) {
    status = note(open_into(listener_,
                            [&](auto** o) {
                              return fi_passive_ep(node_.fabric(), node_.info(), o, nullptr);
                            }),
                  "fi_passive_ep");
  }
  if (status == 0) status = note(fi_pep_bind(listener_.get(), &events_->fid, 0), "fi_pep_bind");
  if (status == 0) status = note(fi_listen(listener_.get()), "fi_listen");
  std::size_t length = sizeof address_;
  if (status == 0) status = note(fi_getname(&listener_->fid, &address_, &length), "fi_getname");
  if (status != 0) close();
  return status;
}

void Switchboard::close() {
  listener_.reset();
  events_.reset();
}

int Switchboard::open_endpoint(fi_info* request, Owned<fid_ep>& endpoint) {
  fi_info* const info = request != nullptr ? request : node_.info();
  Owned<fid_ep> opened;
  int status = note(
      open_into(opened, [&](auto** o) { return fi_endpoint(node_.domain(), info, o, nullptr); }),
      "fi_endpoint");
  if (status == 0) status = note(fi_ep_bind(opened.get(), &events_->fid, 0), "fi_ep_bind");
  if (status == 0) {
    status =
        note(fi_ep_bind(opened.get(), &node_.queue()->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
  }
  if (status == 0) status = note(fi_enable(opened.get()), "fi_enable");
  if (status == 0) endpoint = std::move(opened);
  return status;
}

int Switchboard::connect(fid_ep& endpoint, const Address& listener, std::uint64_t id) {
  return note(fi_connect(&endpoint, &listener, &id, sizeof id), "fi_connect");
}

int Switchboard::accept(fid_ep& endpoint) {
  return note(fi_accept(&endpoint, nullptr, 0), "fi_accept");
}

int Switchboard::reject(const ConnectionEvent& request) {
  return note(fi_reject(listener_.get(), request.request->handle, nullptr, 0), "fi_reject");
}

std::optional<ConnectionEvent> Switchboard::read() {
  // Room for what the other side says, too.
  alignas(fi_eq_cm_entry) std::array<std::uint8_t, sizeof(fi_eq_cm_entry) + 256> room{};
  ConnectionEvent event;
  const long got = fi_eq_read(events_.get(), &event.what, room.data(), room.size(), 0);
  if (got == -FI_EAGAIN) return std::nullopt;
  if (got == -FI_EAVAIL) return read_error();
  if (got < static_cast<long>(sizeof(fi_eq_cm_entry))) fail("fi_eq_read: " + error_text(got));
  fi_eq_cm_entry entry{};
  std::memcpy(&entry, room.data(), sizeof entry);
  event.endpoint = entry.fid;
  event.request.reset(entry.info);
  if (event.what == FI_CONNREQ) {
    require(static_cast<std::size_t>(got) == sizeof entry + sizeof event.id,
            "a request came with other data than were given to fi_connect");
    std::memcpy(&event.id, room.data() + sizeof entry, sizeof event.id);
  }
  return event;
}

ConnectionEvent Switchboard::read_error() {
  fi_eq_err_entry entry = {};
  const long got = fi_eq_readerr(events_.get(), &entry, 0);
  if (got != static_cast<long>(sizeof entry)) fail("fi_eq_readerr: " + error_text(got));
  ConnectionEvent event;
  event.endpoint = entry.fid;
  event.error = entry.err;
  return event;
}

}  // namespace weft::faults
