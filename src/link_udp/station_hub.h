// SPDX-License-Identifier: BSD-2-Clause
// How do the packets of an endpoint find their channels?
#pragma once

#include <chrono>
#include <unordered_map>
#include <vector>

#include "hub.h"
#include "link_udp/station.h"
#include "operation.h"
#include "os/timer.h"
#include "peer_table.h"
#include "rdm_receiver.h"
#include "rdm_sender.h"
#include "roce/packet_port.h"

namespace weft::udp {

// The one Station there is.
class StationHub final : public Station, public Hub, roce::PacketHandler {
 public:
  StationHub(std::unique_ptr<roce::PacketPort> port, const StationOptions& options);
  ~StationHub() override;
  Status open();

  Result<std::unique_ptr<link::Flow>> connect(const os::SocketAddress& peer,
                                              bool persists) override;
  Activity activity() const override;
  const roce::PacketDrops& drops() const override { return port_->drops(); }
  Taken taken() const override;
  std::uint64_t sent() const override { return port_->trains().packets(); }

  unsigned poll(link::InboxSink& sink) override;
  bool accept(link::InboxSink& sink, const link::Offer& offer, std::span<const LocalRange> pieces,
              std::uint64_t length, void* cookie) override;
  void acknowledge(const link::Offer& offer) override;
  void refuse(link::InboxSink& sink, std::uint32_t source) override;
  void check_sources(link::InboxSink& sink) override;
  int wake_fd() const override { return port_->wake_fd(); }
  bool fall_asleep() override;
  void ring() override { port_->ring(); }
  void wake_up() override;

 private:
  friend class StationFlow;
  // A context, by whose number packets name their flow.
  struct Context {
    std::uint32_t number = 0;
    std::unique_ptr<RdmSender> out;
    std::unique_ptr<RdmReceiver> in;
    bool active = false;  // it is in active_
    bool seen_idle = false;
    os::Time watched_at{};   // when it is looked at whether its peer lives
    os::Time used{};         // when something was in flight last
    unsigned questions = 0;  // that its peer has not answered
  };
  struct Watch {
    os::Time at;
    std::uint32_t context;
    bool operator<(const Watch& other) const { return other.at < at; }
  };
  // A receive that has ended.
  struct Received {
    void* cookie = nullptr;
    int error = 0;
  };

  // What channels ask for (Hub).
  Introduction introduction() const override;
  const os::SocketAddress& name() const override { return options_.name; }
  link::Service service() const override { return options_.service; }
  std::size_t eager_limit() const override { return options_.eager_limit; }
  std::chrono::milliseconds connect_timeout() const override { return options_.connect_timeout; }
  std::chrono::milliseconds peer_timeout() const override { return options_.peer_timeout; }
  std::chrono::milliseconds raise_interval() const override { return options_.raise_interval; }
  os::Time emptied() const override { return emptied_; }
  bool counts(Access access) const override;
  memory::OwnMemory& memory() override { return memory_; }
  void narrow(const os::SocketAddress& peer, std::size_t path_mtu) override;
  std::size_t path_mtu_to(const os::SocketAddress& peer) const override;
  void activate(RdmSender& channel) override { activate(channel.context(), channel.due()); }
  void send_now(RdmSender& channel, os::Time now) override;
  void send_cm(const roce::Path& path, const ConnMessage& message) override;
  std::uint32_t name_exchange(Operation& operation) override;
  void forget_exchange(std::uint32_t exchange) override { exchanges_.erase(exchange); }
  Operation* find_exchange(std::uint32_t exchange, std::uint64_t flow) override;
  Operation* find_receive(std::uint32_t exchange, std::uint32_t source) override;
  Operation* find_taker(const link::Offer& offer) override;
  bool waits_for(std::uint64_t station) const override;
  RdmSender& return_path(const RdmReceiver& channel) override;
  bool owes_too_much(const RdmReceiver& channel) override;
  Budget& packet_memory() override { return packet_memory_; }
  Budget& message_memory() override { return message_memory_; }
  FreeOperations& free_operations() override { return free_operations_; }
  void received(void* cookie, int error) override { received_.push_back({cookie, error}); }
  bool closing() const override { return closing_; }
  link::InboxSink& sink() override { return *sink_; }

  void part();

  // Contexts (contexts.cc).
  bool room_for_context() const;
  Context& new_context();
  std::shared_ptr<const roce::Path> path_between(const os::SocketAddress& from,
                                                 const os::SocketAddress& to);
  Context* find_context(std::uint32_t number);
  void close_context(Context& context);
  void destroy(std::unique_ptr<Context>& context);
  static void count_in(Taken& taken, const Context& context);
  void activate(std::uint32_t number, os::Time due);
  RdmSender* out_to(const os::SocketAddress& peer);
  std::vector<RdmReceiver*> in_from(const os::SocketAddress& peer);
  std::size_t carries(const os::SocketAddress& peer, std::size_t path_mtu);
  Result<RdmSender*> open_out(const os::SocketAddress& peer);
  RdmReceiver* source(std::uint32_t number) const;
  void forget(const os::SocketAddress& peer);
  void close_source(RdmReceiver& channel, bool died);
  void forget_places();
  void abandon_receives_from(std::uint32_t source);
  void tidy_up();

  // Packets (packets.cc).
  unsigned receive();
  void take(const roce::PacketArrival& arrival) override;
  void take_cnp(const roce::PacketArrival& arrival) override;
  void path_changed(const os::SocketAddress& peer) override;
  void unreachable(const os::UdpError& error) override;
  void take_conn_message(const roce::PacketArrival& arrival);
  void take_fragment(const roce::PacketArrival& arrival);
  void settle();
  void take_of_flow(const wire::Packet& packet, const roce::PacketArrival& arrival);
  void take_mark(Context& context, bool request);
  void on_req(const ConnReq& req, const roce::Path& back);
  void on_repeated_req(RdmReceiver& in, const ConnReq& req, const roce::Path& back);
  void on_rej(const ConnRej& rej, const roce::Path& back);
  void on_disconnect(const Disconnect& disconnect, const roce::Path& back);
  void emit(bool all);
  // A flow has something to do, or the socket had no room for what was to leave.
  bool has_to_emit() const { return emit_at_ <= now_ || !port_->trains().empty(); }
  os::Time due(const Context& context) const;
  void report_received();

  // Whether peers live (keepalive.cc).
  void watch(Context& context, os::Time at);
  void hasten(Context& context);
  void look_at_silent_ones();
  os::Time look_at(Context& context, RdmSender& out);
  os::Time look_at(Context& context, RdmReceiver& in);
  os::Time::duration patience(const Context& context, bool eager) const;
  unsigned most_questions() const;

  const std::unique_ptr<roce::PacketPort> port_;
  const StationOptions options_;
  const std::uint32_t queue_pair_;
  const std::uint32_t queue_key_;
  const std::uint64_t station_;  // drawn at random
  memory::OwnMemory memory_;
  bool asleep_ = false;
  bool closing_ = false;
  os::Timer timer_;
  Budget packet_memory_{options_.packet_memory};
  Budget message_memory_{options_.message_memory};
  FreeOperations free_operations_;
  std::vector<std::unique_ptr<Context>> contexts_;  // by index
  std::vector<std::uint32_t> free_;                 // indices of those that there are not
  std::vector<std::uint32_t> active_;               // numbers of contexts
  std::uint32_t touched_ = 0;                       // number of the context that has got packets
  std::vector<std::uint32_t> emitting_;             // the same, while they send
  os::Time emit_at_ = os::Time::max();              // when one of them has something to do
  os::Time emptied_{};                              // that the socket was
  os::Time next_rejection_{};
  std::uint32_t nowhere_ = 0;  // context of what cannot be sent
  std::vector<Watch> watches_;
  PeerTable peers_;
  std::vector<std::uint32_t> sources_;  // context by the inbox's number; 0: none
  std::unordered_map<std::uint32_t, Operation*> exchanges_;
  std::uint32_t next_exchange_ = 1;
  std::vector<Received> received_;
  link::InboxSink* sink_ = nullptr;
  Psn conn_psn_;
  os::Time now_{};
  Taken taken_;
};

}  // namespace weft::udp
