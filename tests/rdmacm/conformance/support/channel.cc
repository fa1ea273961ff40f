// SPDX-License-Identifier: BSD-2-Clause
// How does a test wait for events?
#include "channel.h"

#include <fcntl.h>
#include <poll.h>

#include <thread>

namespace weft::rdmacm_conformance {

std::chrono::seconds patience() { return std::chrono::seconds(20); }

Event::Event(const rdma_cm_event& event)
    : type(event.event), status(event.status), id(event.id), listen_id(event.listen_id) {
  const bool has_datagrams = event.id->qp_type == IBV_QPT_UD;
  if (has_datagrams) {
    ud = event.param.ud;
  } else {
    conn = event.param.conn;
  }
  const void* const bytes = has_datagrams ? ud.private_data : conn.private_data;
  const std::size_t length = has_datagrams ? ud.private_data_len : conn.private_data_len;
  EXPECT_EQ(bytes == nullptr, length == 0);
  if (bytes != nullptr) data.assign(static_cast<const char*>(bytes), length);
  ud.private_data = conn.private_data = nullptr;
}

Channel::Channel() : channel_(rdma_create_event_channel()) { EXPECT_NE(channel_, nullptr); }

bool Channel::is_readable_within(std::chrono::milliseconds time) const {
  pollfd look{fd(), POLLIN, 0};
  return ::poll(&look, 1, static_cast<int>(time.count())) == 1;
}

bool Channel::becomes_quiet() const {
  const auto end = std::chrono::steady_clock::now() + patience();
  while (is_readable()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

Owned<rdma_cm_event> Channel::take() {
  if (!is_readable_within(patience())) {
    ADD_FAILURE() << "no event in time";
    return nullptr;
  }
  rdma_cm_event* event = nullptr;
  EXPECT_EQ(errno_of(rdma_get_cm_event(get(), &event)), 0);
  return Owned<rdma_cm_event>(event);
}

Event Channel::next() {
  const Owned<rdma_cm_event> event = take();
  return event != nullptr ? Event(*event) : Event();
}

Event Channel::expect(rdma_cm_event_type type, int status) {
  Event event = next();
  EXPECT_EQ(event.type, type) << event.status;
  EXPECT_EQ(event.status, status);
  return event;
}

void Channel::set_nonblocking() {
  EXPECT_EQ(::fcntl(fd(), F_SETFL, ::fcntl(fd(), F_GETFL) | O_NONBLOCK), 0);
}

}  // namespace weft::rdmacm_conformance
