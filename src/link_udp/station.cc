// SPDX-License-Identifier: BSD-2-Clause
// How does an endpoint send and receive over the network?
#include "link_udp/station.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "os/runtime_dir.h"
#include "os/udp_path.h"
#include "roce/route.h"
#include "station_hub.h"

namespace weft::udp {

// The way to one peer as an endpoint holds it.
class StationFlow final : public link::Flow {
 public:
  StationFlow(StationHub& hub, std::uint32_t context) : hub_(hub), context_(context) {}
  ~StationFlow() override {
    try {
      if (RdmSender* out = channel()) out->release();
    } catch (const std::bad_alloc&) {
      // It is forgotten with the station.
    }
  }

  link::Outcome send(const link::SendRequest& request) override {
    RdmSender* out = channel();
    return out == nullptr ? gone() : out->send(request);
  }
  link::Outcome access(const link::AccessRequest& request) override {
    RdmSender* out = channel();
    return out == nullptr ? gone() : out->access(request);
  }
  link::Outcome atomic(const link::AtomicRequest& request) override {
    RdmSender* out = channel();
    return out == nullptr ? gone() : out->atomic(request);
  }
  bool reached() const override {
    RdmSender* out = channel();
    return out == nullptr || out->state() != RdmSender::State::kAsking;
  }
  void doubt() override {
    if (RdmSender* out = channel()) out->doubt();
  }
  bool busy() const override {
    RdmSender* out = channel();
    return out != nullptr && (out->busy() || out->ready());
  }
  bool ready() const override {
    RdmSender* out = channel();
    return out != nullptr && out->ready();
  }
  void progress(link::FlowSink& sink) override {
    if (RdmSender* out = channel()) out->report(sink);
  }
  link::PeerState check_peer(link::FlowSink& sink) override {
    RdmSender* out = channel();
    if (out == nullptr) return link::PeerState::kDied;
    out->report(sink);
    return out->peer_state();
  }
  bool cancel(void* cookie, link::FlowSink& sink) override {
    RdmSender* out = channel();
    if (out == nullptr || !out->cancel(cookie)) return false;
    out->report(sink);
    return true;
  }
  void give_up(link::FlowSink& sink) override {
    RdmSender* out = channel();
    if (out == nullptr) return;
    out->give_up();
    out->report(sink);
  }
  int process() const override { return 0; }
  void set_asleep(bool) override {}

 private:
  static link::Outcome gone() { return link::Outcome::failed(ECONNRESET); }
  RdmSender* channel() const {
    StationHub::Context* context = hub_.find_context(context_);
    return context != nullptr ? context->out.get() : nullptr;
  }

  StationHub& hub_;
  const std::uint32_t context_;
};

Result<std::unique_ptr<Station>> Station::create(os::UdpSocket socket,
                                                 const StationOptions& options) {
  constexpr std::size_t kArrivals = 8;  // by one system call
  auto port = roce::PacketPort::open(std::move(socket), {options.capture, nullptr, kArrivals});
  if (!port) return port.error();
  auto hub = std::make_unique<StationHub>(std::move(port).value(), options);
  if (Status ok = hub->open(); !ok) return ok.error();
  return std::unique_ptr<Station>(std::move(hub));
}

StationHub::StationHub(std::unique_ptr<roce::PacketPort> port, const StationOptions& options)
    : port_(std::move(port)),
      options_(options),
      queue_pair_(roce::queue_pair_at(port_->address().port())),
      queue_key_(static_cast<std::uint32_t>(os::random_number())),
      station_(os::random_number() | 1),
      memory_(options.regions, options.domain, options.served),
      conn_psn_(static_cast<std::uint32_t>(os::random_number())) {
  port_->attach(queue_pair_, *this);
  port_->attach(wire::kCmQpn, *this);
}

Status StationHub::open() {
  auto timer = os::Timer::create();
  if (!timer) return timer.error();
  timer_ = std::move(timer).value();
  return port_->watch(timer_.fd());
}

// Without memory nothing can be sent: peers will notice. The flows of an inherited station are the
// parent's: a child that waited for acknowledgements, or set the timer, would change those.
StationHub::~StationHub() {
  closing_ = true;
  try {
    if (!port_->inherited()) part();
  } catch (const std::bad_alloc&) {
  }
  contexts_.clear();  // what breaks off says so to the others
}

// What was sent last must not be lost because the program ends. What has left lies in the peer's
// socket, even if that does not look: so it goes on as long as peers answer, and a little longer.
void StationHub::part() {
  struct Deaf final : link::InboxSink {
    void source_opened(std::uint32_t, const os::SocketAddress&) override {}
    void source_closed(std::uint32_t, bool) override {}
    unsigned room() const override { return 0; }
    void arrived(const link::Arrival&) override {}
    void received(void*, int) override {}
  } deaf;
  constexpr auto kPatience = std::chrono::seconds(2);
  constexpr auto kSilence = std::chrono::milliseconds(1200);  // a cable was pulled, and plugged in
  forget_places();
  const os::Time end = std::chrono::steady_clock::now() + kPatience;
  os::Time heard = end - kPatience;
  const auto quiet = [this] {
    return std::all_of(contexts_.begin(), contexts_.end(), [](const auto& context) {
      return context == nullptr || context->out == nullptr || !context->out->owes();
    });
  };
  do {
    if (poll(deaf) != 0) heard = now_;
    if (quiet()) break;
    if (fall_asleep()) os::wait_readable(wake_fd(), std::chrono::milliseconds(5));
  } while (now_ < end && now_ - heard < kSilence);
  sink_ = &deaf;
  emit(true);
  for (const auto& context : contexts_) {
    if (context != nullptr) close_context(*context);
  }
  port_->trains().flush();
}

Introduction StationHub::introduction() const {
  Introduction me;
  me.station = station_;
  me.queue_pair = queue_pair_;
  me.queue_key = queue_key_;
  me.room = static_cast<std::uint32_t>(std::min<std::size_t>(port_->receive_buffer(), 0xFFFF'FFFF));
  return me;
}

bool StationHub::counts(Access access) const {
  return access == Access::kRemoteRead ? options_.counts_reads : options_.counts_writes;
}

Result<std::unique_ptr<link::Flow>> StationHub::connect(const os::SocketAddress& peer,
                                                        bool persists) {
  auto out = open_out(peer);
  if (!out) return out.error();
  if (persists) out.value()->persist();
  out.value()->hold();
  return std::unique_ptr<link::Flow>(std::make_unique<StationFlow>(*this, out.value()->context()));
}

unsigned StationHub::poll(link::InboxSink& sink) {
  link::InboxSink* const before = std::exchange(sink_, &sink);
  now_ = std::chrono::steady_clock::now();
  if (has_to_emit()) emit(false);
  const unsigned count = receive();
  if (has_to_emit()) emit(false);
  look_at_silent_ones();
  report_received();
  sink_ = before;
  return count;
}

bool StationHub::accept(link::InboxSink& sink, const link::Offer& offer,
                        std::span<const LocalRange> pieces, std::uint64_t length, void* cookie) {
  RdmReceiver* from = source(offer.source);
  if (from == nullptr) {
    sink.received(cookie, ECONNRESET);
  } else if (offer.exchange == 0) {
    from->place(pieces, length, cookie);
  } else {
    return_path(*from).accept(offer, from->identity(), pieces, length, cookie);
  }
  return true;  // whether the offer stands is the peer's answer
}

void StationHub::acknowledge(const link::Offer& offer) {
  RdmReceiver* from = source(offer.source);
  if (from != nullptr) from->acknowledge(offer.exchange);
}

void StationHub::report_received() {
  if (received_.empty()) return;
  for (const Received& each : std::exchange(received_, {})) {
    const bool known = each.error == 0 || each.error == EFAULT;
    sink_->received(each.cookie, known ? each.error : ECONNRESET);
  }
}

void StationHub::refuse(link::InboxSink& sink, std::uint32_t number) {
  RdmReceiver* channel = source(number);
  if (channel == nullptr || channel->is_shut()) return;
  channel->shut();
  abandon_receives_from(number);
  sink.source_closed(number, false);
}

bool StationHub::fall_asleep() {
  now_ = std::chrono::steady_clock::now();
  port_->fall_asleep();
  emit(true);
  look_at_silent_ones();
  const os::Time next = watches_.empty() ? emit_at_ : std::min(emit_at_, watches_.front().at);
  if (next <= now_ || has_to_emit()) return false;
  timer_.set(next == os::Time::max() ? os::Timer::kNever : next - now_);
  asleep_ = received_.empty();
  return asleep_;
}

void StationHub::wake_up() {
  asleep_ = false;
  port_->silence();
}

}  // namespace weft::udp
