// SPDX-License-Identifier: BSD-2-Clause
// How does the partner of a process in shortage answer, and how does it drop peers that are
// gone?
#include "partner.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "failure.h"
#include "switchboard.h"

namespace weft::faults {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kPartnerLimit{20};
constexpr std::size_t kMostLines = 32;

// Answers one message at a time at one endpoint, until its peer is gone.
class Line final : public CompletionTarget {
 public:
  // Of an endpoint for anybody, or of a connection.
  Line(Node& node, fid_ep* endpoint) : node_(node), endpoint_(endpoint), memory_(kLargeLetter) {
    operation_.target = this;
  }

  void receive() {
    arrived_ = 0;
    const long status = fi_recv(endpoint_, memory_.data(), memory_.size(), nullptr, FI_ADDR_UNSPEC,
                                &operation_.context);
    require(status == 0 || gone(status), "fi_recv: " + error_text(status));
    operation_.pending = status == 0;
  }

  // Answers what has come, if anything.
  void step() {
    if (operation_.pending) return;
    if (arrived_ >= sizeof(Letterhead)) send_back();
    receive();
  }

  void completed(Operation&, const fi_cq_tagged_entry& entry) override {
    if ((entry.flags & FI_RECV) != 0) arrived_ = entry.len;
  }
  void failed(Operation&, const fi_cq_err_entry&) override {}

 private:
  bool gone(long status) const { return node_.connects() && status == -FI_ESHUTDOWN; }

  void send_back() {
    Letterhead letterhead{};
    std::memcpy(&letterhead, memory_.data(), sizeof letterhead);
    const fi_addr_t sender = node_.connects() ? 0 : node_.insert(letterhead.sender);
    const auto end = Clock::now() + kPartnerLimit;
    long status = -FI_EAGAIN;
    while (status == -FI_EAGAIN) {
      require(Clock::now() < end, "an answer to a process in shortage was not taken for 20 s");
      status = fi_send(endpoint_, memory_.data(), arrived_, nullptr, sender, &operation_.context);
      if (status == -FI_EAGAIN) node_.poll();
    }
    operation_.pending = status == 0;
    while (operation_.pending) {
      require(Clock::now() < end, "an answer to a process in shortage stayed pending for 20 s");
      node_.poll();
    }
    if (!node_.connects()) node_.remove(sender);
  }

  Node& node_;
  fid_ep* const endpoint_;
  std::vector<std::uint8_t> memory_;
  Operation operation_;
  std::size_t arrived_ = 0;
};

// A connection, from the attempt to its end.
struct Wire {
  std::unique_ptr<Line> line;  // a copy into its memory is under way until the endpoint is closed
  Owned<fid_ep> endpoint;
  bool made = false;
  bool over = false;
};

class Partner {
 public:
  explicit Partner(const Mode& mode)
      : mode_(mode), node_(mode.type), switchboard_(node_), numbers_(1) {}

  void live(const Channel& channel) {
    open();
    const Address& own = node_.connects() ? switchboard_.address() : node_.address();
    channel.send(&own, sizeof own);
    Notice notice;
    while (!notice.over) {
      step();
      if (channel.try_receive(&notice, sizeof notice) && !notice.over) ask(notice);
    }
    close();
  }

 private:
  void open() {
    if (node_.open(0) != 0) fail(std::string(node_.failed_call()) + " of the partner");
    if (!mode_.loses()) {
      require_ok(node_.register_memory({reinterpret_cast<std::uint8_t*>(numbers_.data()), 8},
                                       kCountKey, region_),
                 "fi_mr_reg of the partner");
    }
    if (node_.connects()) {
      require_ok(switchboard_.open(), switchboard_.failed_call());
    } else {
      anybody_ = std::make_unique<Line>(node_, node_.endpoint());
      anybody_->receive();
    }
  }

  void step() {
    if (anybody_) {
      anybody_->step();
      node_.wait(20);
      return;
    }
    while (std::optional<ConnectionEvent> event = switchboard_.read()) heed(*event);
    for (auto& wire : wires_) wire->line->step();
    while (node_.poll() != 0) {
    }
    // Completions of what is closed here have been read.
    std::erase_if(wires_, [](const auto& wire) { return wire->over; });
    node_.wait(1);
  }

  // An endpoint by which to connect or accept; null where shared memory is short here, too.
  fid_ep* add_wire(fi_info* request) {
    require(wires_.size() < kMostLines, "connections to a process in shortage are never ended");
    auto wire = std::make_unique<Wire>();
    if (switchboard_.open_endpoint(request, wire->endpoint) != 0) return nullptr;
    wire->line = std::make_unique<Line>(node_, wire->endpoint.get());
    wire->line->receive();
    wires_.push_back(std::move(wire));
    return wires_.back()->endpoint.get();
  }

  // A process that repeats the notice has not seen an attempt before.
  void ask(const Notice& notice) {
    for (auto& wire : wires_) wire->over = wire->over || !wire->made;
    fid_ep* const endpoint = add_wire(nullptr);
    if (endpoint == nullptr) return;
    require_ok(switchboard_.connect(*endpoint, notice.listener, notice.number), "fi_connect");
  }

  void accept(const ConnectionEvent& request) {
    fid_ep* const endpoint = add_wire(request.request.get());
    if (endpoint != nullptr) {
      require_ok(switchboard_.accept(*endpoint), "fi_accept");
    } else {
      switchboard_.reject(request);
    }
  }

  void heed(const ConnectionEvent& event) {
    if (event.what == FI_CONNREQ) {
      accept(event);
      return;
    }
    for (auto& wire : wires_) {
      if (event.endpoint != &wire->endpoint->fid) continue;
      wire->made = event.what == FI_CONNECTED;
      wire->over = !wire->made;
    }
  }

  void close() {
    wires_.clear();
    region_.reset();
    switchboard_.close();
    node_.close();
    anybody_.reset();
  }

  const Mode& mode_;
  Node node_;
  Switchboard switchboard_;
  std::vector<std::uint64_t> numbers_;
  Owned<fid_mr> region_;
  std::unique_ptr<Line> anybody_;
  std::vector<std::unique_ptr<Wire>> wires_;
};

}  // namespace

int live_as_partner(const Channel& channel, const Mode& mode) {
  name_this_process("partner");
  Partner(mode).live(channel);
  return kPassed;
}

}  // namespace weft::faults
