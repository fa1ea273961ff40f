// SPDX-License-Identifier: BSD-2-Clause
// Where do requests for connections arrive?
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "device/engine.h"
#include "device/port.h"
#include "link/connection.h"
#include "link/inbox.h"
#include "os/clock.h"

namespace weft::connect {

class Listener;

// A request that a listener has received, for the endpoint that is to accept it.
struct Request {
  link::ConnectionRequest request;
  std::weak_ptr<Listener> listener;
  link::ConnectionNumber number = 0;  // of the listener's port
};

// The sink of requests. Called from within functions of Listener; must not call Listener.
class RequestSink {
 public:
  virtual ~RequestSink() = default;
  // A new request. False when it cannot be taken: it is dropped, and the requester times out.
  virtual bool requested(const Request& request) = 0;
  // It has ended: withdrawn, displaced by younger ones, or too old.
  virtual void withdrawn(link::ConnectionNumber number) = 0;
  // It was accepted or rejected.
  virtual void decided(link::ConnectionNumber number) = 0;
};

inline constexpr std::size_t kUsualBacklog = 128;

// The port that requests for connections arrive at (rdma_listen(3), fi_listen(3)). Any thread.
class Listener final : public device::Engine,
                       public std::enable_shared_from_this<Listener>,
                       link::InboxSink,
                       link::ListenerUser {
 public:
  // Makes `place` reachable, which peers know as `name`. `options` outlive it, and the sink until
  // end_reports(). Errors: those of device::Port::open().
  static Result<std::shared_ptr<Listener>> open(std::shared_ptr<device::Device> device,
                                                const link::Place& place,
                                                const os::SocketAddress& name,
                                                const Options& options, RequestSink& sink);
  // Rejects every request that is neither decided nor given to an endpoint.
  ~Listener() override;
  // The sink hears of no request any more. An endpoint that accepts at this moment keeps the rest.
  void end_reports();

  // How many requests may await a decision of the program; others wait unreported, and of 4096 the
  // oldest ends.
  void set_backlog(std::size_t count);
  // Rejects a request. Nothing happens when it has ended.
  void reject(link::ConnectionNumber number, std::span<const std::byte> data);
  // An endpoint is to decide about a request, even when this listener has closed; the program may
  // still reject it. False while another endpoint is to decide.
  bool give(link::ConnectionNumber number);
  // The endpoint has gone without a decision.
  void take_back(link::ConnectionNumber number);
  // Takes in what has arrived; false when a request has ended: its sender is gone, or younger ones
  // have displaced it.
  bool holds(link::ConnectionNumber number);
  // The endpoint accepts, or has found out that it has ended.
  void forward(link::ConnectionNumber number);

  void progress() override;
  bool fall_asleep() override;
  void wake_up() override;
  int wake_fd() const override { return port_->wake_set().fd(); }
  unsigned polls() override { return polls_.load(std::memory_order_relaxed); }

 private:
  enum class RequestStage : std::uint8_t {
    kWaiting,   // beyond the backlog: not reported yet
    kReported,  // to be decided by the program
    kGiven,     // to be decided by an endpoint, or by the program
  };
  struct ReceivedRequest {
    link::ConnectionNumber number = 0;
    RequestStage stage = RequestStage::kWaiting;
    link::ConnectionRequest request;
  };
  using RequestList = std::list<ReceivedRequest>;

  explicit Listener(RequestSink& sink) : sink_(&sink) {}
  void source_opened(std::uint32_t source, const os::SocketAddress& address) override;
  void source_closed(std::uint32_t source, bool died) override;
  void arrived(const link::Arrival& arrival) override;
  void received(void*, int) override {}
  void requested(link::ConnectionNumber number, link::ConnectionRequest request) override;
  void withdrawn(link::ConnectionNumber number) override;
  RequestList::iterator find(link::ConnectionNumber number);
  bool erase(link::ConnectionNumber number);
  void report();
  void take_in();

  std::mutex mutex_;
  RequestSink* sink_;  // null after end_reports()
  std::unique_ptr<device::Port> port_;
  RequestList undecided_;  // in the order of their arrival
  std::size_t backlog_ = kUsualBacklog;
  std::size_t reported_ = 0;
  std::unordered_map<std::uint32_t, os::SocketAddress> addresses_;  // by source
  int sleepers_ = 0;
  std::atomic<unsigned> polls_{0};
  os::Time next_check_{};
};

// Rejects a request in place of an accepting endpoint at `place` that does not exist any more, and
// of its listener.
void reject(std::shared_ptr<device::Device> device, const link::Place& place,
            const Options& options, const link::ConnectionRequest& request);

}  // namespace weft::connect
