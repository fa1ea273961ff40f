// SPDX-License-Identifier: BSD-2-Clause
// What does an endpoint do that reaches its peers without packets?
#include "capture/recorder.h"

#include <utility>

#include "roce/route.h"

namespace weft::capture {
namespace {

using link::Outcome;
using wire::CaptureDirection;
using Groups = std::unordered_map<std::uint64_t, os::SocketAddress>;

std::uint64_t exchange_of(const void* cookie) { return reinterpret_cast<std::uintptr_t>(cookie); }

// The route to a peer from an endpoint of that name, or back.
wire::Route route_of(CaptureDirection direction, const os::SocketAddress& name,
                     const os::SocketAddress& peer) {
  os::SocketAddress own = name;
  if (name.is_any()) {
    const auto path = roce::path_from(name, peer);
    if (path) own = path.value().source;
  }
  return direction == CaptureDirection::kSent ? roce::route_between(own, peer)
                                              : roce::route_between(peer, own);
}

template <class Request>
Record record_of(RecordKind kind, const Request& request, const Outcome& outcome) {
  Record record{.kind = kind};
  record.has_data = request.has_data;
  record.outcome = outcome;
  record.data = request.data;
  record.length = request.length;
  return record;
}

// A flow that records what the endpoint asks of it.
class RecordedFlow final : public link::Flow {
 public:
  RecordedFlow(std::unique_ptr<link::Flow> flow, RecordWriter& records, const wire::Route& route)
      : flow_(std::move(flow)), records_(records), route_(route) {}

  Outcome send(const link::SendRequest& request) override {
    Record record = record_of(RecordKind::kSend, request, flow_->send(request));
    record.operation = static_cast<std::uint8_t>(request.operation);
    record.until_delivered = request.until_delivered;
    record.tag = request.tag;
    const bool pending = record.outcome.state == Outcome::State::kPending;
    if (pending) record.rendezvous_id = exchange_of(request.cookie);
    return write(record, request.sges);
  }
  Outcome access(const link::AccessRequest& request) override {
    const RecordKind kind = request.write ? RecordKind::kWrite : RecordKind::kRead;
    Record record = record_of(kind, request, flow_->access(request));
    record.remote = request.remote;
    const bool has_bytes = request.write || record.outcome.state == Outcome::State::kDone;
    return write(record, has_bytes ? request.local : std::span<const LocalRange>());
  }
  // The result may go to the buffer of the operands: those are copied beforehand.
  Outcome atomic(const link::AtomicRequest& request) override {
    records_.add(request.operand, request.length);
    records_.add(request.compare, request.length);
    Record record = record_of(RecordKind::kAtomic, request, flow_->atomic(request));
    record.operation = static_cast<std::uint8_t>(request.action.op);
    record.type = static_cast<std::uint8_t>(request.action.type);
    record.form = static_cast<std::uint8_t>(request.action.form);
    record.remote = request.remote;
    const bool has_result = record.outcome.state == Outcome::State::kDone;
    return write(record, has_result ? request.result : std::span<const LocalRange>());
  }
  bool cancel(void* cookie, link::FlowSink& sink) override {
    const bool withdrawn = flow_->cancel(cookie, sink);
    if (!withdrawn) return false;
    Record record{.kind = RecordKind::kWithdrawal};
    record.rendezvous_id = exchange_of(cookie);
    write(record, {});
    return true;
  }
  bool reached() const override { return flow_->reached(); }
  void suspect() override { flow_->suspect(); }
  bool busy() const override { return flow_->busy(); }
  bool settled() const override { return flow_->settled(); }
  bool ready() const override { return flow_->ready(); }
  void progress(link::FlowSink& sink) override { flow_->progress(sink); }
  link::PeerState check_peer(link::FlowSink& sink) override { return flow_->check_peer(sink); }
  void give_up(link::FlowSink& sink) override { flow_->give_up(sink); }
  int process() const override { return flow_->process(); }
  void set_asleep(bool asleep) override { flow_->set_asleep(asleep); }

 private:
  Outcome write(const Record& record, std::span<const LocalRange> bytes) {
    records_.add(bytes, record.length);
    records_.write(CaptureDirection::kSent, route_, record);
    return record.outcome;
  }

  const std::unique_ptr<link::Flow> flow_;
  RecordWriter& records_;
  const wire::Route route_;
};

// An inbox that records what comes out of it.
class RecordedInbox final : public link::Inbox, link::InboxSink {
 public:
  RecordedInbox(link::Inbox& inbox, RecordWriter& records, const os::SocketAddress& name,
                const Groups& groups)
      : inbox_(inbox), records_(records), name_(name), groups_(groups) {}

  unsigned poll(link::InboxSink& sink) override { return through(sink).poll(*this); }
  bool accept(link::InboxSink& sink, const link::Offer& offer, std::span<const LocalRange> sges,
              std::uint64_t length, void* cookie) override {
    return through(sink).accept(*this, offer, sges, length, cookie);
  }
  void acknowledge(const link::Offer& offer) override { inbox_.acknowledge(offer); }
  void refuse(link::InboxSink& sink, std::uint32_t source) override {
    through(sink).refuse(*this, source);
  }
  bool reclaim_buffers() override { return inbox_.reclaim_buffers(); }
  void check_sources(link::InboxSink& sink) override { through(sink).check_sources(*this); }
  bool fall_asleep() override { return inbox_.fall_asleep(); }
  void wake_up() override { inbox_.wake_up(); }

 private:
  struct KnownSource {
    os::SocketAddress address;
    wire::Route route;  // to the endpoint
  };

  link::Inbox& through(link::InboxSink& sink) {
    sink_ = &sink;
    return inbox_;
  }
  void source_opened(std::uint32_t source, const os::SocketAddress& address) override {
    sources_[source] = {address, route_of(CaptureDirection::kReceived, name_, address)};
    sink_->source_opened(source, address);
  }
  void source_closed(std::uint32_t source, bool died) override {
    sources_.erase(source);
    sink_->source_closed(source, died);
  }
  unsigned room() const override { return sink_->room(); }
  unsigned room_for(std::uint32_t source) const override { return sink_->room_for(source); }
  bool takes_more_urgently(std::uint32_t source) const override {
    return sink_->takes_more_urgently(source);
  }
  void arrived(const link::Arrival& arrival) override {
    Record record = record_of(RecordKind::kArrival, arrival, {});
    record.operation = static_cast<std::uint8_t>(arrival.operation);
    record.until_delivered = arrival.wants_ack;
    record.offered = arrival.payload == nullptr && arrival.length != 0;
    record.tag = arrival.tag;
    if (record.offered || arrival.wants_ack) record.rendezvous_id = arrival.offer.rendezvous_id;
    if (!record.offered) records_.add(arrival.payload, arrival.length);
    write(arrival.source, record);
    sink_->arrived(arrival);
  }
  void accessed(std::uint32_t source, Access access, std::span<const RegionKey> regions) override {
    sink_->accessed(source, access, regions);
  }
  void received(void* cookie, int error) override { sink_->received(cookie, error); }
  void withdrawn(const link::Offer& offer) override {
    Record record{.kind = RecordKind::kWithdrawal};
    record.rendezvous_id = offer.rendezvous_id;
    write(offer.source, record);
    sink_->withdrawn(offer);
  }

  // The tag of a datagram to a group is the group's number.
  void write(std::uint32_t number, const Record& record) {
    const KnownSource& source = sources_[number];
    const bool datagram =
        record.operation == static_cast<std::uint8_t>(link::MessageOperation::kDatagram);
    const auto group = datagram ? groups_.find(record.tag) : groups_.end();
    records_.write(
        CaptureDirection::kReceived,
        group == groups_.end() ? source.route : roce::route_between(source.address, group->second),
        record);
  }

  link::Inbox& inbox_;
  RecordWriter& records_;
  const os::SocketAddress name_;
  const Groups& groups_;
  std::unordered_map<std::uint32_t, KnownSource> sources_;
  link::InboxSink* sink_ = nullptr;
};

}  // namespace

Recorder::Recorder(std::shared_ptr<Capture> capture, const os::SocketAddress& name,
                   std::unique_ptr<link::PortLink> link)
    : name_(name),
      link_(std::move(link)),
      records_(std::move(capture)),
      inbox_(std::make_unique<RecordedInbox>(link_->inbox(), records_, name_, groups_)) {}

Recorder::~Recorder() = default;

Result<std::unique_ptr<link::Flow>> Recorder::recorded(Result<std::unique_ptr<link::Flow>> flow,
                                                       const os::SocketAddress& peer) {
  if (!flow) return flow;
  return std::unique_ptr<link::Flow>(std::make_unique<RecordedFlow>(
      std::move(flow).value(), records_, route_of(CaptureDirection::kSent, name_, peer)));
}

Result<std::unique_ptr<link::Flow>> Recorder::connect(const os::SocketAddress& peer) {
  return recorded(link_->connect(peer), peer);
}

Result<link::Membership> Recorder::join(const os::SocketAddress& group) {
  groups_.emplace(link::group_number(group), group);
  return link_->join(group);
}

Result<std::unique_ptr<link::Flow>> Recorder::connect_group(const os::SocketAddress& group) {
  return recorded(link_->connect_group(group), group);
}

void Recorder::record_datagram(CaptureDirection direction, const os::SocketAddress& peer,
                               std::span<const std::byte> datagram) {
  Record record{.kind = RecordKind::kManagement};
  record.length = datagram.size();
  records_.add(datagram.data(), datagram.size());
  records_.write(direction, route_of(direction, name_, peer), record);
}

}  // namespace weft::capture
